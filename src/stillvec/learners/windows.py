"""Skip-gram with the teacher's state as the centre: what `attentive_skipgram` and `context_to_vec` share.

The centre is the teacher's state of a word, projected; the words around it have rows of the table, which is the result.
Windows are exact: `window` words to each side, within the sentence. A word outside the vocabulary keeps its position
and its state, but has no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from stillvec.errors import UsageError
from stillvec.learners.accumulators import to_numpy
from stillvec.learners.context_blocks import ContextBlock
from stillvec.learners.stored_contexts import StoredContexts
from stillvec.learners.trained_learner import TrainedLearner
from stillvec.learners.training_loop import BatchResult, RateAt
from stillvec.learners.whitened_window import WhitenedWindow
from stillvec.learners.whitening import Moments, Whitening
from stillvec.registry import check_least
from stillvec.statistics import Array
from stillvec.training.negative_sampling import NegativeSampler, keep_probability
from stillvec.training.optimizers import RowAdam, RowSgd, clip_gradients
from stillvec.training.step_graph import Inputs, StepGraph, pad_segments, round_capacity, unique_padded

_SENTENCES = 512  # read at once before training


@dataclass(frozen=True)
class WindowLearner(TrainedLearner):
    """The settings of both methods."""

    CLOSED_FORM: ClassVar[str] = "whitened_window"
    RENAMED: ClassVar[Mapping[str, str]] = {
        "own": "include_center",
        "shared": "shared_negatives",
        "shortest": "min_length",
        "longest": "max_length",
    }
    context_weight, activation, norm_reward, normalize = 0.0, "none", 0.0, False  # settings of context_to_vec only
    dim: int = 300  # dimensions of the vectors, at most those of the teacher
    window: int = 2  # words to each side of the centre
    pool: str = "mean"  # how the rows around a centre are pooled: mean, sum, each (scored one by one) or attention
    attention: float = 1.0  # factor of the attention scores, with pool=attention
    include_center: bool = False  # whether a word is part of its own window
    batch: int = 128  # sentences per step
    negatives: int = 5  # negatives per centre
    shared_negatives: int = 0  # drawn per batch and weighted to count as `negatives`; 0: drawn per centre
    power: float = 0.75  # exponent of the word counts when negatives are drawn
    subsample: float = 0.0  # t, subsampling of the words around a centre; 0: keep all
    min_length: int = 2  # words of a sentence
    max_length: int = 1_000_000  # words of a sentence
    optimizer: str = "adam"  # adam or sgd
    clip: float = 5.0  # largest norm of the gradient, with optimizer=sgd; 0: not clipped
    projection_rate: float = 1.0  # learning rate of the projections, relative to `rate`; 0: they are not trained
    whiten: bool = False  # start the projections as the whitening of the states; false: random
    ridge: float = 1.0  # added to the eigenvalues in the whitening, in units of their mean
    bias: bool = False  # whether each word has a bias, which absorbs its frequency
    start: str = "random"  # initial table: random or closed (`whitened_window`)

    def __post_init__(self) -> None:
        super().__post_init__()
        choices = {
            "pool": ("attention", "mean", "sum", "each"),
            "activation": ("none", "tanh"),
            "optimizer": ("adam", "sgd"),
            "start": ("closed", "random"),
        }
        for name, known in choices.items():
            if (value := getattr(self, name)) not in known:
                raise UsageError.expected(f"one of {', '.join(known)}", repr(value), where=f"setting {name!r}")
        check_least(self, dim=1, window=1, negatives=1, batch=1)
        check_least(self, shared_negatives=0, subsample=0, clip=0, projection_rate=0, ridge=0)

    def contexts(self) -> StoredContexts:
        return StoredContexts(self.layer, states=True)

    def model(self, counts: Tensor, sample: Iterable[ContextBlock], width: int, device: torch.device) -> WindowTable:
        return WindowTable(self, counts, sample, width, device)


class Window(NamedTuple):
    """The positions around each of T words."""

    position: Tensor  # (T, 2w), or (T, 2w + 1) with the centre
    mask: Tensor  # (T, ...) whether a position is inside the sentence


def make_windows(sentence: Tensor, reach: int, *, include_center: bool = False) -> Window:
    """`reach` positions to each side of every word, masked to its sentence; `sentence` (T,) numbers the sentences."""
    at = torch.arange(len(sentence), device=sentence.device)
    offsets = torch.arange(-reach, reach + include_center, device=sentence.device)
    position = at[:, None] + (offsets if include_center else offsets + (offsets >= 0))
    mask = (position >= 0) & (position < len(sentence))
    position = position.clamp(0, max(len(sentence) - 1, 0))
    return Window(position, mask & (sentence[position] == sentence[:, None]))


def sum_windows(window: Window, rows: Tensor) -> Tensor:
    """The sum of the rows (T, D) in each window (T, D)."""
    return F.embedding_bag(window.position, rows, mode="sum", per_sample_weights=window.mask.float())


def attend(centres: Tensor, rows: Tensor, mask: Tensor, scale: float) -> Tensor:
    """softmax over the window of scale * (centre . row): (T, d), (T, n, d), (T, n) -> (T, n); 0 where masked."""
    scores = torch.einsum("td,tnd->tn", centres, rows) * scale
    scores = scores.masked_fill(~mask, -torch.inf)
    scores = scores.masked_fill(~mask.any(1, keepdim=True), 0.0)
    return torch.softmax(scores, 1) * mask


def project_centres(config: WindowLearner, states: Tensor, sentence: Tensor, projections: Sequence[Tensor]) -> Tensor:
    """u (T, dim): the projected state, mixed by `context_weight` with the projected mean of the states around it."""
    own = states @ projections[0]
    if not config.context_weight:
        return own
    near = make_windows(sentence, config.window)
    mean = sum_windows(near, states) / near.mask.sum(1, keepdim=True).clamp_min(1)
    if config.activation == "tanh":
        mean = torch.tanh(mean)
    return (1 - config.context_weight) * own + config.context_weight * (mean @ projections[1])


class _Batch(NamedTuple):
    words: Tensor  # (T,) rows of the vocabulary, -1 for an unknown word
    states: Tensor  # (T, D)
    sentence: Tensor  # (T,) number of each word's sentence in the batch
    usable: Tensor  # (T,) whether the sentence has an allowed length
    progress: float  # the fraction of the block that came before


class WindowTable:
    """The table (V, dim), with the bias as an additional last column, and the projections of the states."""

    def __init__(
        self,
        config: WindowLearner,
        counts: Tensor,
        sample: Iterable[ContextBlock],
        width: int,
        device: torch.device,
        *,
        padded: bool | None = None,  # train in steps of a fixed shape; default: on a GPU, with negatives per centre
    ) -> None:
        self.config = config = replace(config, dim=min(config.dim, width))
        self.padded = (device.type == "cuda" and not config.shared_negatives) if padded is None else padded
        self.capacity = 0  # words of a padded step
        self.sampler = NegativeSampler(counts, config.power)
        self.keep = keep_probability(counts, config.subsample).float()
        generator = torch.Generator().manual_seed(config.seed)
        self.mean = torch.zeros(width, device=device)
        if config.whiten:
            whitening = self._whiten(sample, width, device)
            self.mean, projection = whitening.mean, whitening.matrix
        else:
            uniform = torch.rand(width, config.dim, generator=generator) - 0.5
            projection = (uniform * 2 * (3 / width) ** 0.5).to(device)
        self.projections = [projection, projection.clone()] if config.context_weight else [projection]
        table = torch.zeros(len(counts), config.dim + config.bias, device=device)
        if config.start == "random":
            uniform = torch.rand(len(counts), config.dim, generator=generator) - 0.5
            table[:, : config.dim] = (uniform / config.dim).to(device)
        else:
            table[:, : config.dim] = self._solve_start(sample, len(counts), device)
        if config.bias:
            n_kept = counts * self.keep
            odds = n_kept / n_kept.sum().clamp_min(1) / (config.negatives * self.sampler.probabilities).clamp_min(1e-30)
            table[:, config.dim] = odds.clamp(1e-6, 1e6).log()
        optimizer = RowAdam if config.optimizer == "adam" else RowSgd
        self.optimizer: RowAdam | RowSgd = optimizer(table, spare=self.padded)
        self.projection_optimizers = [optimizer(projection) for projection in self.projections]
        state = [tensor for each in (self.optimizer, *self.projection_optimizers) for tensor in each.whole]
        self.graph = StepGraph(self.step_padded, state)

    @property
    def table(self) -> Tensor:
        return self.optimizer.table

    def tensors(self) -> dict[str, Tensor]:
        tensors = self.optimizer.tensors()
        for number, optimizer in enumerate(self.projection_optimizers):
            tensors |= {f"projection-{number}-{name}": tensor for name, tensor in optimizer.tensors().items()}
        return tensors

    def result(self) -> dict[str, Tensor]:
        projections = {f"projection-{number}": tensor for number, tensor in enumerate(self.projections)}
        return {"vectors": self.table[:, : self.config.dim], "table": self.table, "mean": self.mean, **projections}

    def centres(self, states: Tensor, sentence: Tensor, projections: Sequence[Tensor]) -> Tensor:
        return project_centres(self.config, states - self.mean, sentence, projections)

    def train_block(self, block: ContextBlock, *, generator: torch.Generator, lr_at: RateAt) -> Iterator[BatchResult]:
        if self.padded:
            yield from self._train_padded(block, generator, lr_at)
            return
        for batch in self._batches(block, self.config.batch):
            loss, n_centres = self.step(batch, generator, lr_at(batch.progress))
            if n_centres:
                yield BatchResult(loss, n_centres, batch.progress)

    def _batches(self, block: ContextBlock, size: int) -> Iterator[_Batch]:
        """Some sentences at a time."""
        assert block.states is not None
        lengths, device = block.lengths.tolist(), block.words.device
        first = 0
        for begin in range(0, len(lengths), size):
            sizes = torch.tensor(lengths[begin : begin + size], device=device)
            last = first + sum(lengths[begin : begin + size])
            sentence = torch.repeat_interleave(torch.arange(len(sizes), device=device), sizes)
            usable = (sizes >= self.config.min_length) & (sizes <= self.config.max_length)
            words, states = block.words[first:last], block.states[first:last].float()
            yield _Batch(words, states, sentence, usable[sentence], begin / len(lengths))
            first = last

    def step(self, batch: _Batch, generator: torch.Generator, lr: float) -> tuple[Tensor, int]:
        """One step; returns its loss and the number of centres."""
        config, words = self.config, batch.words
        window = make_windows(batch.sentence, config.window, include_center=config.include_center)
        present = (words >= 0) & batch.usable
        if config.subsample:
            chance = torch.rand(len(words), device=words.device, generator=generator)
            present &= chance < self.keep[words.clamp_min(0)]
        mask = window.mask & present[window.position]
        used = mask.any(1)
        n_centres = int(used.sum())
        if not n_centres:
            return torch.zeros((), device=words.device), 0
        shape = (config.shared_negatives,) if config.shared_negatives else (n_centres, config.negatives)
        sampled = self.sampler.draw(shape, generator)
        # words outside every window point to a sampled row, so that the step touches no row of theirs
        own = torch.where(present & window.mask.any(1), words, sampled.reshape(-1)[0])
        rows, place = torch.unique(torch.cat([own, sampled.reshape(-1)]), return_inverse=True)
        near = place[: len(words)][window.position]
        negatives = place[len(words) :].reshape(sampled.shape)
        if not config.shared_negatives:
            negatives = negatives.new_zeros(len(words), config.negatives).masked_scatter(used[:, None], negatives)
        leaf = self.table.index_select(0, rows).requires_grad_()
        loss, gradients = self._gradients(leaf, batch.states, batch.sentence, near, mask, negatives)
        self.optimizer.update(rows, gradients[0], lr)
        for optimizer, gradient in zip(self.projection_optimizers, gradients[1:], strict=False):
            every_row = torch.arange(len(optimizer.table), device=words.device)
            optimizer.update(every_row, gradient, lr * config.projection_rate)
        return loss.detach(), n_centres

    def _gradients(
        self, rows: Tensor, states: Tensor, sentence: Tensor, near: Tensor, mask: Tensor, negatives: Tensor
    ) -> tuple[Tensor, Sequence[Tensor]]:
        """The loss, and its clipped gradients by the rows and, if they are trained, by the projections."""
        config = self.config
        trains = config.projection_rate > 0
        projections = [projection.detach().requires_grad_(trains) for projection in self.projections]
        loss = self.loss(rows, self.centres(states, sentence, projections), near, mask, negatives)
        gradients: Sequence[Tensor] = torch.autograd.grad(loss, [rows, *(projections if trains else [])])
        if config.clip and config.optimizer == "sgd":
            gradients = clip_gradients(gradients, config.clip)
        return loss.detach(), gradients

    def _train_padded(self, block: ContextBlock, generator: torch.Generator, lr_at: RateAt) -> Iterator[BatchResult]:
        """The sentences of a block that have an allowed length, in steps of a fixed shape."""
        assert block.states is not None
        config, device, lengths = self.config, block.words.device, block.lengths
        usable = (lengths >= config.min_length) & (lengths <= config.max_length)
        token = torch.arange(len(block.words), device=device)[usable.repeat_interleave(lengths)]
        lengths = lengths[usable]
        if not len(lengths):
            return
        sizes = torch.stack([part.sum() for part in torch.split(lengths, config.batch)])
        if int(sizes.max()) > self.capacity:
            self.capacity = round_capacity(int(sizes.max()))
        shape = (len(sizes), self.capacity)
        sentence = torch.arange(len(lengths), device=device).repeat_interleave(lengths)
        words = block.words[token]
        if config.subsample:
            chance = torch.rand(len(words), device=device, generator=generator)
            words = words.masked_fill(chance >= self.keep[words.clamp_min(0)], -1)
        starts = [number / len(sizes) for number in range(len(sizes))]
        inputs = {
            "words": pad_segments(words, sizes, self.capacity, -1),
            "token": pad_segments(token, sizes, self.capacity, 0),
            "sentence": pad_segments(sentence, sizes, self.capacity, -1),
            "negatives": self.sampler.draw((*shape, config.negatives), generator),
            "size": self.optimizer.step_sizes([lr_at(start) for start in starts]),
        }
        for optimizer in self.projection_optimizers:
            optimizer.step_sizes(starts)  # counts them
        results = self.graph.run(inputs, {"states": block.states})
        n_centres = results[:, 1].long().tolist()
        yield BatchResult(results[0, 0], n_centres[0], 0.0)
        yield BatchResult(results[1:, 0].sum(), sum(n_centres[1:]), starts[-1])

    def step_padded(self, batch: Inputs) -> Tensor:
        """One step on the words of a batch that are no padding; returns its loss and the number of centres."""
        config, words, sentence, pad = self.config, batch["words"], batch["sentence"], len(self.table)
        window = make_windows(sentence, config.window, include_center=config.include_center)
        present = words >= 0
        mask = window.mask & present[window.position]
        used = mask.any(1)
        own = torch.where(present & window.mask.any(1), words, pad)
        sampled = torch.where(used[:, None], batch["negatives"], pad)
        rows, place = unique_padded(torch.cat([own, sampled.reshape(-1)]), pad)
        leaf = self.optimizer.whole[0].index_select(0, rows).requires_grad_()
        near, negatives = place[: len(words)][window.position], place[len(words) :].reshape(sampled.shape)
        states = batch["states"].index_select(0, batch["token"]).float()
        loss, gradients = self._gradients(leaf, states, sentence, near, mask, negatives)
        self.optimizer.update_padded(rows, gradients[0], batch["size"])
        for optimizer, gradient in zip(self.projection_optimizers, gradients[1:], strict=False):
            every_row = torch.arange(len(optimizer.table), device=words.device)
            optimizer.update_padded(every_row, gradient, batch["size"] * config.projection_rate)
        return torch.stack([loss, used.sum().to(loss)])

    def loss(
        self,
        rows: Tensor,  # (R, dim or dim + 1)
        centres: Tensor,  # (T, dim)
        near: Tensor,  # (T, n) the window's words, as indices into `rows`
        mask: Tensor,  # (T, n)
        negatives: Tensor,  # (K,) shared, or (T, k) per centre, as indices into `rows`
    ) -> Tensor:
        """Summed over the centres with a word around them.

        Rows are looked up by F.embedding: with several threads, the gradient of `rows[near]` is summed in any order.
        """
        config = self.config
        full = F.pad(centres, (0, 1), value=1.0) if config.bias else centres
        used = mask.any(1).float()
        if config.pool == "each":
            logits = torch.einsum("tnd,td->tn", F.embedding(near, rows), full)
            right = ((F.softplus(-logits) * mask).sum(1) / mask.sum(1).clamp_min(1)).sum()
        else:
            pooled = self._pool(rows, centres, near, mask)
            dot = F.cosine_similarity(pooled, full) if config.normalize else torch.linalg.vecdot(pooled, full)
            right = F.softplus(-dot) @ used
        if config.shared_negatives:
            against = full @ F.embedding(negatives, rows).T
            wrong = F.softplus(against).sum(1) @ used * (config.negatives / len(negatives))
        else:
            wrong = F.softplus(torch.einsum("tkd,td->tk", F.embedding(negatives, rows), full)).sum(1) @ used
        loss = right + wrong
        if config.norm_reward:
            loss = loss + config.norm_reward * (F.softplus(-centres.square().sum(1)) @ used)
        return loss

    def _pool(self, rows: Tensor, centres: Tensor, near: Tensor, mask: Tensor) -> Tensor:
        """The rows of each window, summed, averaged or weighted by attention (T, dim or dim + 1)."""
        if self.config.pool == "attention":
            window_rows = F.embedding(near, rows)  # (T, n, dim)
            weights = attend(centres, window_rows[..., : self.config.dim], mask, self.config.attention)
            return torch.einsum("tn,tnd->td", weights, window_rows)
        weights = mask.float()
        if self.config.pool == "mean":
            weights = weights / weights.sum(1, keepdim=True).clamp_min(1)
        return F.embedding_bag(near, rows, mode="sum", per_sample_weights=weights)

    def _whiten(self, sample: Iterable[ContextBlock], width: int, device: torch.device) -> Whitening:
        """Of the states of all words, into `dim` directions."""
        moments = Moments(device)
        for block in sample:
            for batch in self._batches(block, _SENTENCES):
                moments.add(batch.states)
        if not moments.count:
            return Whitening.identity(width, device)
        return moments.whitening(self.config.ridge, self.config.dim)

    def _solve_start(self, sample: Iterable[ContextBlock], n_words: int, device: torch.device) -> Tensor:
        """Each word's mean of the centres in whose windows it is; of a word without neighbours, its own centre."""
        sums = torch.zeros(n_words, self.config.dim, device=device)
        counts = torch.zeros(n_words, device=device)
        for block in sample:
            for batch in self._batches(block, _SENTENCES):
                centres = self.centres(batch.states, batch.sentence, self.projections)
                window = make_windows(batch.sentence, self.config.window, include_center=self.config.include_center)
                total, n_centres = sum_windows(window, centres), window.mask.sum(1).float()
                alone = n_centres == 0
                total[alone], n_centres[alone] = centres[alone], 1.0
                known = batch.words >= 0
                sums.index_add_(0, batch.words[known], total[known])
                counts.index_add_(0, batch.words[known], n_centres[known])
        return sums / (counts[:, None] + WhitenedWindow.prior)


def compute_attention(config: WindowLearner, model: Mapping[str, Array], words: Array, states: Array) -> Array:
    """The attention of a trained model in a sentence: the weight (n, n) that each word gives to those around it.

    `words` (n,) are rows of the vocabulary, -1 for an unknown word; `states` (n, D) are the teacher's. Outside the
    window and for unknown words the weight is NaN.
    """
    rows = torch.from_numpy(words.astype(np.int64))
    sentence = torch.zeros_like(rows)
    tensors = {name: torch.from_numpy(np.array(array)) for name, array in model.items()}
    projections = [tensors[name] for name in sorted(tensors) if name.startswith("projection-")]
    centred = torch.from_numpy(states).float() - tensors["mean"]
    centres = project_centres(config, centred, sentence, projections)
    window = make_windows(sentence, config.window, include_center=config.include_center)
    mask = window.mask & (rows[window.position] >= 0)
    near = tensors["table"][rows[window.position].clamp_min(0), : projections[0].shape[1]]  # (n, positions, dim)
    weights = to_numpy(attend(centres, near, mask, config.attention))
    matrix = np.full((len(words), len(words)), np.nan, np.float32)
    centre, place = np.nonzero(to_numpy(mask))
    matrix[centre, to_numpy(window.position)[centre, place]] = weights[centre, place]
    return matrix
