"""X2Static (Gupta & Jaggi 2021): a word's vector tells the contexts it stands in from those it does not.

    sum over sentences S, words w of S:   l(u_w . E) + sum over negatives w' of l(-u_w' . E),   l(x) = log(1 + e^-x)

E is the mean state of S, read alone or inside its paragraph; U is the only table, so the objective is one logistic
regression a word. Lazy Adam on the rows a batch touches, frequent targets left out at random, negatives drawn in
proportion to count^0.5: as in the paper (`settings=gupta-jaggi-2021`). What the defaults add, since they were made for
a thousand times fewer words (docs/results.md): contexts are whitened, a bias a word takes up how frequent it is, the
table starts from the closed form (`whitened_context`), and all sentences of a batch share their negatives, which
are then a matrix product.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from stillvec.errors import UsageError
from stillvec.learners.context_blocks import ContextBlock, Sample
from stillvec.learners.row_optimizers import NegativeSampler, RowAdam, keep_probability
from stillvec.learners.stored_contexts import StoredContexts
from stillvec.learners.trained_learner import TrainedLearner
from stillvec.learners.training_loop import Schedule
from stillvec.learners.whitening import Whitening


@dataclass(frozen=True)
class X2Static(TrainedLearner):
    PRESETS: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "gupta-jaggi-2021": {
            "decay": "constant",
            "batch": 128,
            "shared": 0,
            "subsample": 5e-6,
            "whiten": False,
            "bias": False,
            "start": "random",
            "directions": 0,
            "least": 3,
        }
    }
    context: str = "sentence"  # or "paragraph"
    least: int = 1  # sentences of a paragraph, where it is one
    batch: int = 1024  # sentences
    negatives: int = 10  # a target
    shared: int = 1024  # drawn for a whole batch, weighed to be `negatives` a target; 0: drawn for each target
    subsample: float = 1e-4  # t: a target is kept with probability sqrt(t/f) + t/f
    power: float = 0.5  # of the counts, for negatives
    whiten: bool = True
    ridge: float = 1.0  # of the whitening, in mean eigenvalues
    bias: bool = True
    start: str = "closed"  # from the closed form; or "zero", or "random"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.start not in ("closed", "zero", "random"):
            raise UsageError(f"X2Static starts from closed, zero or random, and {self.start!r} came.")
        if min(self.batch, self.negatives, self.subsample) <= 0 or min(self.shared, self.ridge) < 0:
            raise UsageError(
                "X2Static takes a batch, negatives and a subsampling above 0, shared and ridge of 0 or more."
            )

    def contexts(self) -> StoredContexts:
        return StoredContexts(self.layer, self.context, min_sentences=self.least if self.context == "paragraph" else 1)

    def model(self, counts: Tensor, sample: Sample, width: int, device: torch.device) -> Regression:
        return Regression(self, counts, sample, width, device)


class X2StaticBatch(NamedTuple):
    contexts: Tensor  # (B, D)
    words: Tensor  # (P,) targets
    sentence: Tensor  # (P,) of each target


class Regression:
    """The table, with the bias as a last column where there is one."""

    def __init__(self, settings: X2Static, counts: Tensor, sample: Sample, width: int, device: torch.device) -> None:
        self.settings = settings
        self.noise = NegativeSampler(counts, settings.power)
        self.keep = keep_probability(counts, settings.subsample)
        self.whitening = Whitening.identity(width, device)
        self.width = width
        table = torch.zeros(len(counts), width + settings.bias, device=device)
        usual = torch.zeros(len(counts), device=device)  # the logit of each word in a usual context
        if settings.whiten or settings.start == "closed":
            whitening, sums, heard = Whitening.of(sample(), len(counts), settings.ridge, device)
            if settings.start == "closed":
                closed = sums / (heard[:, None] + _PRIOR)
                table[:, :width] = closed if settings.whiten else closed @ whitening.matrix.T
                usual = closed.square().sum(1) / 2
            if settings.whiten:
                self.whitening = whitening
            else:
                usual = usual + table[:, :width] @ whitening.mean
        if settings.start == "random":
            generator = torch.Generator().manual_seed(settings.seed)
            table[:, :width] = ((torch.rand(len(counts), width, generator=generator) - 0.5) / width).to(device)
        if settings.bias:
            targets = counts * self.keep
            odds = targets / (settings.negatives * targets.sum() * self.noise.shares).clamp_min(1e-30)
            table[:, width] = odds.clamp(1e-6, 1e6).log() - usual
        self.adam = RowAdam(table)

    def tensors(self) -> dict[str, Tensor]:
        return self.adam.tensors()

    def result(self) -> dict[str, Tensor]:
        return {"vectors": self.adam.table[:, : self.width]}

    def learn(
        self, shard: ContextBlock, generator: torch.Generator, course: Schedule, begun: float, ended: float
    ) -> Iterator[tuple[Tensor, int, float]]:
        size = self.settings.batch
        contexts = self.whitening(shard.contexts)
        if self.settings.bias:
            contexts = F.pad(contexts, (0, 1), value=1.0)
        sentence = torch.repeat_interleave(torch.arange(len(contexts), device=contexts.device), shard.lengths)
        chance = torch.rand(len(shard.words), device=contexts.device, generator=generator)
        chosen = (shard.words >= 0) & (chance < self.keep[shard.words.clamp_min(0)])
        words, sentence = shard.words[chosen], sentence[chosen]
        edges = torch.arange(0, len(contexts) + size, size, device=contexts.device)
        cuts = torch.searchsorted(sentence, edges).tolist()
        for number, (first, last) in enumerate(itertools.pairwise(cuts)):
            if first == last:
                continue
            begin = number * size
            batch = X2StaticBatch(contexts[begin : begin + size], words[first:last], sentence[first:last] - begin)
            rate = course.rate_at(begun + (ended - begun) * begin / len(contexts))
            yield self.step(batch, generator, rate), last - first, begin / len(contexts)

    def step(self, batch: X2StaticBatch, generator: torch.Generator, rate: float) -> Tensor:
        """One batch; gives its loss."""
        if self.settings.shared:
            drawn = self.noise.draw((self.settings.shared,), generator)
            rows, gradient, loss = shared_gradient(self.adam.table, batch, drawn, self.settings.negatives)
        else:
            drawn = self.noise.draw((len(batch.words), self.settings.negatives), generator)
            rows, gradient, loss = gradient_of(self.adam.table, batch, drawn)
        self.adam.update(rows, gradient, rate)
        return loss


def gradient_of(table: Tensor, batch: X2StaticBatch, negatives: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The rows that a batch touches, the gradient of its loss in them, and the loss; negatives are (P, k)."""
    targets = torch.cat([batch.words, negatives.reshape(-1)])
    sentence = torch.cat([batch.sentence, batch.sentence.repeat_interleave(negatives.shape[1])])
    sign = torch.ones(len(targets), device=table.device)
    sign[len(batch.words) :] = -1
    order = torch.argsort(targets, stable=True)
    targets, sentence, sign = targets[order], sentence[order], sign[order]
    logits = sign * _products(table, targets, batch.contexts, sentence)
    rows, held = torch.unique_consecutive(targets, return_counts=True)
    gradient = _gathered(batch.contexts, sentence, held, -sign * torch.sigmoid(-logits))
    return rows, gradient, F.softplus(-logits).sum()


def shared_gradient(
    table: Tensor, batch: X2StaticBatch, drawn: Tensor, negatives: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The same where all sentences share the negatives `drawn` (K,), each weighed to be negatives / K of a target's."""
    order = torch.argsort(batch.words, stable=True)
    words, sentence = batch.words[order], batch.sentence[order]
    logits = _products(table, words, batch.contexts, sentence)
    own, held = torch.unique_consecutive(words, return_counts=True)
    right = _gathered(batch.contexts, sentence, held, -torch.sigmoid(-logits))
    weight = torch.bincount(batch.sentence, minlength=len(batch.contexts)).to(table) * (negatives / len(drawn))
    against = batch.contexts @ table.index_select(0, drawn).T  # (B, K)
    wrong = (torch.sigmoid(against) * weight[:, None]).T @ batch.contexts  # (K, D)
    rows, place = torch.unique(torch.cat([own, drawn]), return_inverse=True)
    gradient = table.new_zeros(len(rows), table.shape[1])
    gradient.index_add_(0, place[: len(own)], right).index_add_(0, place[len(own) :], wrong)
    return rows, gradient, F.softplus(-logits).sum() + weight @ F.softplus(against).sum(1)


def _products(table: Tensor, rows: Tensor, contexts: Tensor, sentence: Tensor) -> Tensor:
    """The product of each row with its context (P,), a piece at a time: what a cache holds."""
    step = max(1, len(rows)) if table.is_cuda else 1024
    found = [
        torch.linalg.vecdot(table.index_select(0, some), contexts.index_select(0, here))
        for some, here in zip(torch.split(rows, step), torch.split(sentence, step), strict=True)
    ]
    return torch.cat(found)


def _gathered(contexts: Tensor, sentence: Tensor, held: Tensor, weights: Tensor) -> Tensor:
    """For each of the runs `held`, the weighted sum of its contexts."""
    offsets = torch.cumsum(held, 0) - held
    return F.embedding_bag(sentence, contexts, offsets, mode="sum", per_sample_weights=weights)


_PRIOR = 4.0  # contexts at the mean of all, beside a word's own: a mean of few is mostly noise
