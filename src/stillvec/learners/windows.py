"""Skip-gram with the teacher in the centre: what `attentive_skipgram` and `context_to_vec` share.

The centre is the teacher's state of a word, projected; the words around it have rows of the table, which is the result.
Windows are exact: `window` words to each side, none beyond the ends of the sentence; words that the vocabulary lacks
keep their place and are read by the teacher, they only have no row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from stillvec.errors import UsageError
from stillvec.learners.context_blocks import ContextBlock, Sample
from stillvec.learners.row_optimizers import NegativeSampler, RowAdam, RowSgd, clip_gradient, keep_probability
from stillvec.learners.training_loop import Schedule
from stillvec.learners.whitening import Sums, Whitening


@dataclass(frozen=True)
class WindowConfig:
    """What a table with windows is told; the settings of both methods, by name."""

    dim: int
    window: int
    pool: str  # of the rows around a centre: attention, mean, sum, or each by itself
    attention: float  # scale of the attention's products
    own: bool  # whether the centre's own row stands in its window
    negatives: int
    shared: int
    power: float
    subsample: float
    batch: int
    shortest: int
    longest: int
    optimizer: str
    clip: float
    projection_rate: float  # of the projection, in rates of the table; 0: it stays
    whiten: bool
    ridge: float
    bias: bool
    start: str
    seed: int
    around: float = 0.0  # weight of the mean of the states around the centre, beside the centre's own
    squash: str = "none"  # what is done to that mean: none or tanh
    reward: float = 0.0  # weight of a long centre (eta 2)

    @classmethod
    def of(cls, learner: object) -> WindowConfig:
        """From a learner's settings of the same names, as far as it has them."""
        return cls(
            **{field.name: getattr(learner, field.name) for field in fields(cls) if hasattr(learner, field.name)}
        )

    def __post_init__(self) -> None:
        choices = {
            "pool": ("attention", "mean", "sum", "each"),
            "squash": ("none", "tanh"),
            "optimizer": ("adam", "sgd"),
            "start": ("closed", "random"),
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise UsageError(f"The setting {name} is {', '.join(known)}, and {getattr(self, name)!r} came.")
        least = dict.fromkeys(("dim", "window", "negatives", "batch"), 1)
        least |= dict.fromkeys(("shared", "subsample", "clip", "projection_rate", "ridge"), 0)
        for name, value in least.items():
            if not getattr(self, name) >= value:
                raise UsageError(f"The setting {name} is at least {value}, and {getattr(self, name)} came.")


class Window(NamedTuple):
    """The places around each word of some sentences."""

    place: Tensor  # (T, 2w) or with the own place (T, 2w + 1)
    there: Tensor  # (T, ...) whether it is inside the sentence


def windows(sentence: Tensor, reach: int, *, own: bool = False) -> Window:
    """`reach` places to each side of every word, as far as they lie in its sentence (T,)."""
    offsets = [offset for offset in range(-reach, reach + 1) if offset or own]
    at = torch.arange(len(sentence), device=sentence.device)
    place = at[:, None] + torch.tensor(offsets, device=sentence.device)
    there = (place >= 0) & (place < len(sentence))
    place = place.clamp(0, max(len(sentence) - 1, 0))
    return Window(place, there & (sentence[place] == sentence[:, None]))


def attention_weights(centres: Tensor, rows: Tensor, there: Tensor, scale: float) -> Tensor:
    """softmax over the window of scale * (centre . row): (T, d), (T, n, d), (T, n) -> (T, n); 0 where nobody is."""
    scores = torch.einsum("td,tnd->tn", centres, rows) * scale
    scores = scores.masked_fill(~there, -torch.inf)
    scores = scores.masked_fill(~there.any(1, keepdim=True), 0.0)
    return torch.softmax(scores, 1) * there


def centres_of(form: WindowConfig, states: Tensor, sentence: Tensor, projections: Sequence[Tensor]) -> Tensor:
    """u (T, dim): the projected state, and with `around` the projected mean of the states around it."""
    own = states @ projections[0]
    if not form.around:
        return own
    near = windows(sentence, form.window)
    total = F.embedding_bag(near.place, states, mode="sum", per_sample_weights=near.there.float())
    mean = total / near.there.sum(1, keepdim=True).clamp_min(1)
    if form.squash == "tanh":
        mean = torch.tanh(mean)
    return (1 - form.around) * own + form.around * (mean @ projections[1])


class WindowTable:
    """The table (V, dim), with a bias as last column where there is one, and the projections of the states."""

    def __init__(self, form: WindowConfig, counts: Tensor, sample: Sample, width: int, device: torch.device) -> None:
        form = replace(form, dim=min(form.dim, width))
        self.form = form
        self.noise = NegativeSampler(counts, form.power)
        self.keep = (
            keep_probability(counts, form.subsample) if form.subsample else torch.ones(len(counts), device=device)
        )
        generator = torch.Generator().manual_seed(form.seed)
        self.mean = torch.zeros(width, device=device)
        if form.whiten:
            whitening = _whitening(form, sample, width, device)
            self.mean, first = whitening.mean, whitening.matrix
        else:
            first = ((torch.rand(width, form.dim, generator=generator) - 0.5) * 2 * (3 / width) ** 0.5).to(device)
        self.projections = [first, first.clone()] if form.around else [first]
        table = torch.zeros(len(counts), form.dim + form.bias, device=device)
        if form.start == "random":
            noise = (torch.rand(len(counts), form.dim, generator=generator) - 0.5) / form.dim
            table[:, : form.dim] = noise.to(device)
        else:
            table[:, : form.dim] = self._closed(sample, len(counts), device)
        if form.bias:
            shares = (counts * self.keep) / (counts * self.keep).sum().clamp_min(1)
            odds = shares / (form.negatives * self.noise.shares).clamp_min(1e-30)
            table[:, form.dim] = odds.clamp(1e-6, 1e6).log()
        self.table = _optimizer(form, table)
        self.turning = [_optimizer(form, each) for each in self.projections]

    def tensors(self) -> dict[str, Tensor]:
        found = dict(self.table.tensors())
        for number, each in enumerate(self.turning):
            found |= {f"projection-{number}-{name}": tensor for name, tensor in each.tensors().items()}
        return found

    def result(self) -> dict[str, Tensor]:
        found = {f"projection-{number}": each for number, each in enumerate(self.projections)}
        return {"vectors": self.table.table[:, : self.form.dim], "table": self.table.table, "mean": self.mean, **found}

    def centres(self, states: Tensor, sentence: Tensor, projections: list[Tensor]) -> Tensor:
        return centres_of(self.form, states.float() - self.mean, sentence, projections)

    def learn(
        self, shard: ContextBlock, generator: torch.Generator, course: Schedule, begun: float, ended: float
    ) -> Iterator[tuple[Tensor, int, float]]:
        assert shard.states is not None
        lengths = shard.lengths.tolist()
        first = 0
        for begin in range(0, len(lengths), self.form.batch):
            some = lengths[begin : begin + self.form.batch]
            last = first + sum(some)
            words, states = shard.words[first:last], shard.states[first:last].float()
            first = last
            sizes = torch.tensor(some, device=words.device)
            sentence = torch.repeat_interleave(torch.arange(len(some), device=words.device), sizes)
            usable = (sizes >= self.form.shortest) & (sizes <= self.form.longest)
            rate = course.rate_at(begun + (ended - begun) * begin / len(lengths))
            loss, count = self.step(words, states, sentence, usable[sentence], generator, rate)
            if count:
                yield loss, count, begin / len(lengths)

    def step(
        self, words: Tensor, states: Tensor, sentence: Tensor, usable: Tensor, generator: torch.Generator, rate: float
    ) -> tuple[Tensor, int]:
        """One batch; gives its loss and the number of centres."""
        form = self.form
        near = windows(sentence, form.window, own=form.own)
        heard = (words >= 0) & usable
        if form.subsample:
            chance = torch.rand(len(words), device=words.device, generator=generator)
            heard &= chance < self.keep[words.clamp_min(0)]
        there = near.there & heard[near.place]
        count = int(there.any(1).sum())
        if not count:
            return torch.zeros((), device=words.device), 0
        drawn = self.noise.draw((form.shared,) if form.shared else (count, form.negatives), generator)
        mine = torch.where(heard & near.there.any(1), words, drawn.reshape(-1)[0])  # who is not there touches no row
        rows, place = torch.unique(torch.cat([mine, drawn.reshape(-1)]), return_inverse=True)
        ours = place[: len(words)][near.place]
        theirs = place[len(words) :].reshape(drawn.shape)
        leaf = self.table.table.index_select(0, rows).requires_grad_()
        turning = form.projection_rate > 0
        projections = [each.detach().requires_grad_(turning) for each in self.projections]
        loss = self.loss(leaf, projections, states, sentence, ours, there, theirs)
        wanted = [leaf, *(projections if turning else [])]
        gradients: Sequence[Tensor] = torch.autograd.grad(loss, wanted)
        if form.clip and form.optimizer == "sgd":
            gradients = clip_gradient(gradients, form.clip)
        self.table.update(rows, gradients[0], rate)
        for each, gradient in zip(self.turning, gradients[1:], strict=False):
            every = torch.arange(len(each.table), device=words.device)
            each.update(every, gradient, rate * form.projection_rate)
        return loss.detach(), count

    def loss(
        self,
        rows: Tensor,  # (R, dim)
        projections: list[Tensor],
        states: Tensor,  # (T, D)
        sentence: Tensor,  # (T,)
        ours: Tensor,  # (T, n) places of the window's words in `rows`
        there: Tensor,  # (T, n)
        theirs: Tensor,  # (K,) shared, or (L, k) negatives of the centres with a word around them, places in `rows`
    ) -> Tensor:
        """Summed over the centres that have a word around them.

        Rows are taken by F.embedding: with several threads, the gradient of `rows[places]` is added up in any order.
        """
        form = self.form
        centres = self.centres(states, sentence, projections)
        full = F.pad(centres, (0, 1), value=1.0) if form.bias else centres
        live = there.any(1)
        if form.pool in ("mean", "sum"):
            weight = there.float()
            if form.pool == "mean":
                weight = weight / weight.sum(1, keepdim=True).clamp_min(1)
            pooled = F.embedding_bag(ours, rows, mode="sum", per_sample_weights=weight)
            right = F.softplus(-(pooled * full).sum(1))[live].sum()
        else:
            near = F.embedding(ours, rows)  # (T, n, dim)
            if form.pool == "attention":
                weight = attention_weights(centres, near[..., : form.dim], there, form.attention)
                pooled = torch.einsum("tn,tnd->td", weight, near)
                right = F.softplus(-(pooled * full).sum(1))[live].sum()
            else:
                logits = torch.einsum("tnd,td->tn", near, full)
                each = F.softplus(-logits) * there
                right = (each.sum(1) / there.sum(1).clamp_min(1)).sum()
        if form.shared:
            wrong = F.softplus(full[live] @ F.embedding(theirs, rows).T).sum() * (form.negatives / len(theirs))
        else:
            wrong = F.softplus(torch.einsum("tkd,td->tk", F.embedding(theirs, rows), full[live])).sum()
        loss = right + wrong
        if form.reward:
            loss = loss + form.reward * F.softplus(-centres[live].square().sum(1)).sum()
        return loss

    def _closed(self, sample: Sample, words: int, device: torch.device) -> Tensor:
        """Each word's mean of the centres in whose windows it stands; of a word that stands alone, its own."""
        sums = torch.zeros(words, self.form.dim, device=device)
        heard = torch.zeros(words, device=device)
        for shard in sample():
            for ids, states, sentence in _pieces(shard):
                centres = self.centres(states, sentence, self.projections)
                near = windows(sentence, self.form.window, own=self.form.own)
                weight = near.there.float()
                total = F.embedding_bag(near.place, centres, mode="sum", per_sample_weights=weight)
                held = weight.sum(1)
                alone = held == 0
                total[alone], held[alone] = centres[alone], 1.0
                known = ids >= 0
                sums.index_add_(0, ids[known], total[known])
                heard.index_add_(0, ids[known], held[known])
        return sums / (heard[:, None] + _PRIOR)


_PRIOR = 8.0  # centres at the mean of all, beside a word's own
_AT_ONCE = 512  # sentences


def _pieces(shard: ContextBlock) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    assert shard.states is not None
    lengths = shard.lengths.tolist()
    first = 0
    for begin in range(0, len(lengths), _AT_ONCE):
        some = lengths[begin : begin + _AT_ONCE]
        last = first + sum(some)
        sizes = torch.tensor(some, device=shard.words.device)
        sentence = torch.repeat_interleave(torch.arange(len(some), device=shard.words.device), sizes)
        yield shard.words[first:last], shard.states[first:last].float(), sentence
        first = last


def _whitening(form: WindowConfig, sample: Sample, width: int, device: torch.device) -> Whitening:
    """Of the states of all words, in `dim` directions."""
    sums = Sums(device)
    for shard in sample():
        for _, states, _ in _pieces(shard):
            sums.add(states)
    return sums.whitening(form.ridge, form.dim) if sums.count else Whitening.identity(width, device)


def _optimizer(form: WindowConfig, table: Tensor) -> RowAdam | RowSgd:
    return RowAdam(table) if form.optimizer == "adam" else RowSgd(table)
