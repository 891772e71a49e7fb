"""X2Static (Gupta & Jaggi 2021): a word's vector predicts which contexts the word occurs in.

    sum over sentences S, words w of S:   l(u_w . E) + sum over negatives w' of l(-u_w' . E),   l(x) = log(1 + e^-x)

E is the mean state of the words of S, read alone or inside its paragraph; U is the only table, so the objective is one
logistic regression per word. Lazy Adam on the rows that a batch touches, frequent targets subsampled: as in the paper
(`settings=gupta-jaggi-2021`, which also selects words and paragraphs as the paper does). Where the paper says nothing,
the preset draws negatives in proportion to count^0.5 as fastText does, keeps the learning rate and starts as word2vec.
The defaults train for more epochs, with a rate that falls, and remove common directions at the end. Options of ours:
contexts that are whitened, a bias per word that absorbs its frequency, negatives that all sentences of a batch share,
and a start from the closed form, `whitened_context`, which training hardly changes (docs/results.md).
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from stillvec.errors import MissingExtra, UsageError
from stillvec.learners.context_blocks import ContextBlock
from stillvec.learners.stored_contexts import StoredContexts
from stillvec.learners.table_memory import FinishScale
from stillvec.learners.trained_learner import TrainedLearner
from stillvec.learners.training_loop import BatchResult, RateAt
from stillvec.learners.whitened_context import WhitenedContext
from stillvec.learners.whitening import Whitening, whiten_contexts
from stillvec.registry import check_least, check_positive
from stillvec.training.loop_compiler import COMPILER_BYTES
from stillvec.training.negative_sampling import NegativeSampler, keep_probability
from stillvec.training.optimizers import RowAdam, split_rows, sum_segments
from stillvec.training.step_graph import (
    Inputs,
    StepGraph,
    pad_segments,
    round_capacity,
)

_MIN_COMPILED = 1 << 20  # numbers of a table; for fewer, compiling takes longer than it saves
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class X2Static(TrainedLearner):
    SUMMARY: ClassVar[str] = "trained to predict the contexts it occurs in"
    PAPERS: ClassVar[tuple[str, ...]] = ("gupta-jaggi-2021",)
    CLOSED_FORM: ClassVar[str] = "whitened_context"
    RENAMED: ClassVar[Mapping[str, str]] = {"shared": "shared_negatives", "least": "min_sentences"}
    PRESETS: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "gupta-jaggi-2021": {
            "context": "sentence",
            "layer": "last",
            "epochs": 1,
            "rate": 1e-3,
            "decay": "constant",
            "batch": 128,
            "negatives": 10,
            "shared_negatives": 0,
            "power": 0.5,
            "subsample": 5e-6,
            "min_sentences": 3,
            "whiten": False,
            "bias": False,
            "start": "random",
            "directions": 0,
        }
    }
    RUN_PRESETS: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "gupta-jaggi-2021": {
            "contexts": None,
            "min_count": 10,
            "max_words": 750_000,
            "min_sentences": 3,
            "min_characters": 140,
            "lowercase": True,
        }
    }
    context: str = "sentence"  # what the teacher reads at once: sentence or paragraph
    min_sentences: int = 1  # sentences of a paragraph, with context=paragraph
    batch: int = 128  # sentences per step
    negatives: int = 10  # negatives per target
    shared_negatives: int = 0  # drawn per batch and weighted to count as `negatives`; 0: drawn per target
    subsample: float = 5e-6  # t: a target is kept with probability sqrt(t/f) + t/f
    power: float = 0.5  # exponent of the word counts when negatives are drawn
    whiten: bool = False  # whiten the contexts before training
    ridge: float = 1.0  # added to the eigenvalues in the whitening, in units of their mean
    bias: bool = False  # whether each word has a bias, which absorbs its frequency
    start: str = "random"  # initial table: random, zero or closed (`whitened_context`)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.start not in ("closed", "zero", "random"):
            raise UsageError.expected("closed, zero or random", repr(self.start), where="setting 'start'")
        check_positive(self, "batch", "negatives", "subsample")
        check_least(self, shared_negatives=0, ridge=0)

    def contexts(self) -> StoredContexts:
        min_sentences = self.min_sentences if self.context == "paragraph" else 1
        return StoredContexts(self.layer, self.context, min_sentences=min_sentences)

    def model_bytes(self, scale: FinishScale) -> int:
        is_compiled = len(scale.vocabulary) * scale.dim >= _MIN_COMPILED and not self.shared_negatives
        return super().model_bytes(scale) + (COMPILER_BYTES if is_compiled else 0)

    def model(self, counts: Tensor, sample: Iterable[ContextBlock], width: int, device: torch.device) -> LogisticTable:
        return LogisticTable(self, counts, sample, width, device)


class X2StaticBatch(NamedTuple):
    contexts: Tensor  # (B, D)
    words: Tensor  # (P,) targets
    sentence: Tensor  # (P,) of each target


class LogisticTable:
    """The table (V, D), with the bias as an additional last column."""

    def __init__(
        self,
        settings: X2Static,
        counts: Tensor,
        sample: Iterable[ContextBlock],
        width: int,
        device: torch.device,
        *,
        padded: bool | None = None,  # train in steps of a fixed shape; default: on a GPU, with negatives per target
    ) -> None:
        self.settings = settings
        self.padded = (device.type == "cuda" and not settings.shared_negatives) if padded is None else padded
        self.capacity = 0  # targets of a padded step
        self.sampler = NegativeSampler(counts, settings.power)
        self.keep = keep_probability(counts, settings.subsample).float()
        self.whitening = Whitening.identity(width, device)
        self.width = width
        table = torch.zeros(len(counts), width + settings.bias, device=device)
        logit = torch.zeros(len(counts), device=device)  # of each word in an average context
        if settings.whiten or settings.start == "closed":
            whitening, sums, n_contexts = whiten_contexts(sample, len(counts), settings.ridge, device)
            if settings.start == "closed":
                closed = sums / (n_contexts[:, None] + WhitenedContext.prior)
                table[:, :width] = closed if settings.whiten else closed @ whitening.matrix.T
                logit = closed.square().sum(1) / 2
            if settings.whiten:
                self.whitening = whitening
            else:
                logit = logit + table[:, :width] @ whitening.mean
        if settings.start == "random":
            generator = torch.Generator().manual_seed(settings.seed)
            table[:, :width] = ((torch.rand(len(counts), width, generator=generator) - 0.5) / width).to(device)
        if settings.bias:
            n_targets = counts * self.keep
            n_negatives = settings.negatives * n_targets.sum() * self.sampler.probabilities
            odds = n_targets / n_negatives.clamp_min(1e-30)
            table[:, width] = odds.clamp(1e-6, 1e6).log() - logit
        self.optimizer = RowAdam(table, spare=self.padded)
        self.graph = StepGraph(self.step_padded, self.optimizer.whole)
        large = device.type == "cpu" and table.numel() >= _MIN_COMPILED
        self.update_rows = _find_compiled_step() if large and not settings.shared_negatives else None

    @property
    def table(self) -> Tensor:
        return self.optimizer.table

    def tensors(self) -> dict[str, Tensor]:
        return self.optimizer.tensors()

    def result(self) -> dict[str, Tensor]:
        return {"vectors": self.table[:, : self.width]}

    def train_block(self, block: ContextBlock, *, generator: torch.Generator, lr_at: RateAt) -> Iterator[BatchResult]:
        size = self.settings.batch
        contexts = self.whitening(block.contexts)
        if self.settings.bias:
            contexts = F.pad(contexts, (0, 1), value=1.0)
        sentence = torch.repeat_interleave(torch.arange(len(contexts), device=contexts.device), block.lengths)
        chance = torch.rand(len(block.words), device=contexts.device, generator=generator)
        chosen = (block.words >= 0) & (chance < self.keep[block.words.clamp_min(0)])
        words, sentence = block.words[chosen], sentence[chosen]
        edges = torch.arange(0, len(contexts) + size, size, device=contexts.device)
        cuts = torch.searchsorted(sentence, edges).tolist()
        if self.padded:
            yield from self._train_padded(contexts, words, sentence, cuts, generator, lr_at)
            return
        for number, (first, last) in enumerate(itertools.pairwise(cuts)):
            if first == last:
                continue
            begin = number * size
            batch = X2StaticBatch(contexts[begin : begin + size], words[first:last], sentence[first:last] - begin)
            progress = begin / len(contexts)
            yield BatchResult(self.step(batch, generator, lr_at(progress)), last - first, progress)

    def _train_padded(
        self,
        contexts: Tensor,
        words: Tensor,
        sentence: Tensor,
        cuts: list[int],
        generator: torch.Generator,
        lr_at: RateAt,
    ) -> Iterator[BatchResult]:
        """The batches of a block in steps of a fixed shape."""
        steps = [
            (number, last - first) for number, (first, last) in enumerate(itertools.pairwise(cuts)) if last > first
        ]
        if not steps:
            return
        lengths = torch.tensor([length for _, length in steps], device=words.device)
        starts = [number * self.settings.batch / len(contexts) for number, _ in steps]
        longest = max(length for _, length in steps)
        if longest > self.capacity:
            self.capacity = round_capacity(longest)
        pad = len(self.table)
        negatives = self.sampler.draw((len(steps), self.capacity, self.settings.negatives), generator)
        inputs = order_targets(
            pad_segments(words, lengths, self.capacity, pad),
            pad_segments(sentence, lengths, self.capacity, 0),
            negatives,
            pad,
        )
        inputs["size"] = self.optimizer.step_sizes([lr_at(start) for start in starts])
        fused_steps = _find_fused_steps(self.table.device)
        if fused_steps is None:
            losses = self.graph.run(inputs, {"contexts": contexts})
        else:
            losses = fused_steps(self.optimizer.whole, contexts, inputs, pad)
        yield BatchResult(losses[0], steps[0][1], 0.0)
        yield BatchResult(losses[1:].sum(), int(lengths[1:].sum()), starts[-1])

    def step_padded(self, batch: Inputs) -> Tensor:
        """One step on the targets of a batch that are no padding; returns its loss."""
        table, contexts, sentence, pad = self.optimizer.whole[0], batch["contexts"], batch["sentence"], len(self.table)
        sign, targets = torch.where(batch["is_right"], 1.0, -1.0), batch["words"].clamp_max(pad).long()
        is_real = targets != pad
        logits = sign * torch.linalg.vecdot(table.index_select(0, targets), contexts.index_select(0, sentence))
        weights = -sign * torch.sigmoid(-logits) * is_real
        starts = batch["starts"][:-2]
        gradient = F.embedding_bag(sentence, contexts, starts, mode="sum", per_sample_weights=weights)
        rows = F.pad(targets, (0, 1), value=pad)[starts]
        self.optimizer.update_padded(rows, gradient, batch["size"])
        return (F.softplus(-logits) * is_real).sum()

    def step(self, batch: X2StaticBatch, generator: torch.Generator, lr: float) -> Tensor:
        """One step; returns its loss."""
        settings = self.settings
        if settings.shared_negatives:
            negatives = self.sampler.draw((settings.shared_negatives,), generator)
            rows, gradient, loss = gradient_shared(self.table, batch, negatives, settings.negatives)
        else:
            negatives = self.sampler.draw((len(batch.words), settings.negatives), generator)
            if self.update_rows is not None:
                size = float(self.optimizer.step_sizes([lr]))
                words, sentence = join_targets(batch, negatives)
                state = self.optimizer.whole
                return torch.tensor(self.update_rows(state, batch.contexts, words, sentence, len(batch.words), size))
            rows, gradient, loss = gradient_per_target(self.table, batch, negatives)
        self.optimizer.update(rows, gradient, lr)
        return loss


@cache
def _find_compiled_step() -> Callable[..., float] | None:
    """The step as a compiled loop, where numba is installed."""
    try:
        from stillvec.learners.compiled_logistic_step import update_rows
    except MissingExtra:
        return None
    return update_rows


def order_targets(words: Tensor, sentence: Tensor, negatives: Tensor, pad: int) -> dict[str, Tensor]:
    """Targets (S, P) and negatives (S, P, k) of each step ordered by word, for all steps at once; N = P (1 + k).

    words: (S, N), those of padding are `pad` and more, each another one, since equal ones would be summed one by one;
    sentence: (S, N); is_right: (S, N), whether it is a target; starts: (S, N + 2), the first of each distinct word,
    then N; the last column means nothing.
    """
    n_steps, n_targets = words.shape
    negatives = torch.where((words != pad)[:, :, None], negatives, pad)
    ids = torch.cat([words, negatives.flatten(1)], 1)
    n_ids = ids.shape[1]
    place = torch.arange(n_ids, device=ids.device)
    ids, order = torch.sort(torch.where(ids < pad, ids, pad + place).int(), dim=1, stable=True)
    target = torch.where(order < n_targets, order, (order - n_targets) // negatives.shape[2])
    is_first = F.pad(ids[:, 1:] != ids[:, :-1], (1, 0), value=True)
    number = torch.where(is_first, is_first.cumsum(1) - 1, n_ids + 1)
    starts = ids.new_full((n_steps, n_ids + 2), n_ids, dtype=torch.int64)
    starts.scatter_(1, number, place.expand(n_steps, -1))
    return {
        "words": ids,
        "sentence": sentence.gather(1, target),
        "is_right": order < n_targets,
        "starts": starts,
    }


@cache
def _find_fused_steps(device: torch.device) -> Callable[..., Tensor] | None:
    """The steps as a Triton kernel, where it compiles and gives the right numbers; tried once per device."""
    if device.type != "cuda":
        return None
    try:
        from stillvec.learners.triton_logistic_step import run_steps, self_test

        self_test(device)
    except Exception as error:  # whatever is missing, torch can do it in more steps
        _log.warning("Triton is not used to train on %s, which is slower: %r", device, error)
        return None
    return run_steps


RowGradient = tuple[Tensor, Tensor, Tensor]  # the rows that a batch touches, the gradient by them, the loss


def join_targets(batch: X2StaticBatch, negatives: Tensor) -> tuple[Tensor, Tensor]:
    """The words and sentences of the targets (P,), then of their negatives (P, k)."""
    sentence = torch.cat([batch.sentence, batch.sentence.repeat_interleave(negatives.shape[1])])
    return torch.cat([batch.words, negatives.reshape(-1)]), sentence


def gradient_per_target(table: Tensor, batch: X2StaticBatch, negatives: Tensor) -> RowGradient:
    """The gradient of the loss of a batch, with negatives per target (P, k)."""
    targets, sentence = join_targets(batch, negatives)
    sign = torch.ones(len(targets), device=table.device)
    sign[len(batch.words) :] = -1
    order = torch.argsort(targets, stable=True)
    targets, sentence, sign = targets[order], sentence[order], sign[order]
    logits = sign * _products(table, targets, batch.contexts, sentence)
    rows, counts = torch.unique_consecutive(targets, return_counts=True)
    gradient = sum_segments(batch.contexts, sentence, counts, -sign * torch.sigmoid(-logits))
    return rows, gradient, F.softplus(-logits).sum()


def gradient_shared(table: Tensor, batch: X2StaticBatch, negatives: Tensor, per_target: int) -> RowGradient:
    """The same with negatives (K,) that all sentences share, weighted to count as `per_target` for each target."""
    order = torch.argsort(batch.words, stable=True)
    words, sentence = batch.words[order], batch.sentence[order]
    logits = _products(table, words, batch.contexts, sentence)
    distinct, counts = torch.unique_consecutive(words, return_counts=True)
    right = sum_segments(batch.contexts, sentence, counts, -torch.sigmoid(-logits))
    n_targets = torch.bincount(batch.sentence, minlength=len(batch.contexts))
    weight = n_targets.to(table) * (per_target / len(negatives))
    against = batch.contexts @ table.index_select(0, negatives).T  # (B, K)
    wrong = (torch.sigmoid(against) * weight[:, None]).T @ batch.contexts  # (K, D)
    rows, place = torch.unique(torch.cat([distinct, negatives]), return_inverse=True)
    gradient = table.new_zeros(len(rows), table.shape[1])
    gradient.index_add_(0, place[: len(distinct)], right).index_add_(0, place[len(distinct) :], wrong)
    return rows, gradient, F.softplus(-logits).sum() + weight @ F.softplus(against).sum(1)


def _products(table: Tensor, rows: Tensor, contexts: Tensor, sentence: Tensor) -> Tensor:
    """The product of each row with its context (P,)."""
    pairs = ((table.index_select(0, row), contexts.index_select(0, at)) for row, at in split_rows(rows, sentence))
    return torch.cat([torch.linalg.vecdot(*pair) for pair in pairs])
