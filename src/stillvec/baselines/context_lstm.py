"""ContextLSTM, or context2vec (Melamud et al. 2016): two LSTMs, left and right of a word, predict the word.

    c_i = M2 relu(M1 [left state after w_1 ... w_i-1 ; right state after w_n ... w_i+1] + b1) + b2
    sum over words i:   l(c_i . u_i) + sum over negatives w' of l(-c_i . u_w')

All positions of a sentence are computed at once: the states of a target are those of its neighbours. Begin and end of a
sentence are read as words. The result is u, the vectors of targets. Adam on batches of sentences of similar length that
share their negatives. Threads share the tables without locks, so only a single thread gives the same bytes twice.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from stillvec.baselines.baseline import JobResult, Resources, SampledBaseline, loss_note, train_epochs
from stillvec.baselines.encoded_corpus import EncodedCorpus, Ends, Rows
from stillvec.result import Result
from stillvec.training.negative_sampling import NegativeSampler, keep_probability, negative_sampling_loss
from stillvec.training.optimizers import RowAdam, random_rows
from stillvec.training.schedule import Schedule, TrainingProgress

_BLOCK_WORDS = 100_000  # whose sentences are shuffled together and batched by length; a checkpoint may follow
_CHECKPOINT_NAMES = {"table": "rows", "mean": "first", "square": "second", "steps": "steps"}
_PAPER = {"dim": 600, "input_dim": 300, "hidden_dim": 600, "epochs": 3, "subsample": 0.0, "batch": 16_000, "rate": 0.01}


@dataclass(frozen=True)
class ContextLstm(SampledBaseline):
    SUMMARY = "trained with two LSTMs that read left and right of it (no teacher)"
    PAPERS = ("melamud-2016",)
    RENAMED: ClassVar = {"read": "input_dim", "hidden": "hidden_dim", "shared": "shared_negatives"}
    PRESETS: ClassVar = {"melamud-2016": _PAPER}
    epochs: int = 5  # passes over the corpus
    input_dim: int | None = None  # dimensions of the words that the LSTMs read; none: dim
    hidden_dim: int | None = None  # dimensions of each LSTM's states; none: dim
    shared_negatives: int = 1024  # drawn per batch and weighted to count as `negatives`; too few miss most words
    batch: int = 500  # words per step, about
    rate: float = 0.02  # initial learning rate of the vectors, a tenth of it for the LSTMs; falls to a hundredth

    def steps(self, corpus: EncodedCorpus, resources: Resources) -> Generator[TrainingProgress, None, Result]:
        model = LstmModel(self, corpus.vocabulary.counts)
        sentences = [*pairwise(corpus.cuts(_BLOCK_WORDS))]
        sizes = [len(corpus.block(*block)[0]) for block in sentences]
        total = self.epochs * corpus.n_words

        def blocks(number: int) -> Iterator[Iterator[LstmJob]]:
            epoch, place = divmod(number, len(sizes))
            done = epoch * corpus.n_words + sum(sizes[:place])
            yield model.jobs(*corpus.block(*sentences[place]), range(done, total), (self.seed, number + 1))

        loss = yield from train_epochs(self, model, blocks, sizes, corpus.n_words, resources)
        return Result(corpus.vectors(model.targets.table.numpy()), loss_note(loss))


class LstmBatch(NamedTuple):
    """Sentences, padded with ends to the length of the longest."""

    n_words: int
    forward: Tensor  # (S, L) what the left LSTM reads: the begin, the first word, ..., the last but one
    backward: Tensor  # (S, L) what the right LSTM reads: the end, the last word, ..., the second
    targets: Tensor  # (T,) words
    left: Tensor  # (T,) index of each target's left state among all S x L
    right: Tensor  # (T,)


class LstmJob(NamedTuple):
    batch: LstmBatch
    negatives: Tensor  # (K,)
    lr: float


class LstmReader(nn.Module):
    """From the vectors of words to the context vector of each target."""

    def __init__(self, input_dim: int, hidden_dim: int, dim: int, seed: int) -> None:
        super().__init__()
        self.left, self.right = (nn.LSTM(input_dim, hidden_dim, batch_first=True) for _ in range(2))
        self.inner, self.outer = nn.Linear(2 * hidden_dim, 2 * hidden_dim), nn.Linear(2 * hidden_dim, dim)
        generator, bound = torch.Generator().manual_seed(seed), 1 / math.sqrt(hidden_dim)
        for parameter in self.parameters():
            nn.init.uniform_(parameter.data, -bound, bound, generator=generator)

    def forward(self, forward: Tensor, backward: Tensor, batch: LstmBatch) -> Tensor:
        """Vectors of the words in both reading orders (S, L, R), twice; returns the contexts (T, D)."""
        before = self.left(forward)[0].flatten(0, 1)[batch.left]  # (T, H)
        after = self.right(backward)[0].flatten(0, 1)[batch.right]  # (T, H)
        contexts: Tensor = self.outer(torch.relu(self.inner(torch.cat([before, after], 1))))
        return contexts


class LstmModel:
    """The table of words as they are read, the LSTMs, and the table of targets."""

    def __init__(self, settings: ContextLstm, counts: NDArray[np.int64]) -> None:
        self.settings = settings
        self.schedule = Schedule(settings.epochs, settings.rate)
        self.sampler = NegativeSampler(counts, settings.power)
        self.keep = keep_probability(counts, settings.subsample).numpy()
        self.begin, self.end = len(counts), len(counts) + 1
        input_dim, seed = settings.input_dim or settings.dim, settings.seed
        self.words = RowAdam(random_rows(len(counts) + 2, input_dim, seed) * input_dim, per_row=True)
        self.targets = RowAdam(random_rows(len(counts), settings.dim, seed), per_row=True)
        self.reader = LstmReader(input_dim, settings.hidden_dim or settings.dim, settings.dim, seed)
        self.weights = {name: RowAdam(weight.data, per_row=True) for name, weight in self.reader.named_parameters()}

    def tensors(self) -> dict[str, Tensor]:
        optimizers = {"words": self.words, "targets": self.targets, **self.weights}
        return {
            f"{name}.{_CHECKPOINT_NAMES[part]}": tensor
            for name, optimizer in optimizers.items()
            for part, tensor in optimizer.tensors().items()
        }

    def jobs(self, rows: Rows, ends: Ends, left: range, seed: tuple[int, ...]) -> Iterator[LstmJob]:
        """The batches of a block; `left` numbers the words still to be read, over all epochs."""
        generator = np.random.default_rng(seed)
        done = left.start
        for batch in self.batches(rows, ends, generator):
            negatives = self.sampler.draw((self.settings.shared_negatives,), generator)
            yield LstmJob(batch, negatives, self.schedule.lr_at(done / left.stop))
            done += batch.n_words

    def train_job(self, job: LstmJob) -> JobResult:
        loss = self.step(*job) if len(job.batch.targets) else 0.0
        return JobResult(len(job.batch.targets), loss, job.batch.n_words)

    def batches(self, rows: Rows, ends: Ends, generator: np.random.Generator) -> Iterator[LstmBatch]:
        """Batches of whole sentences of similar length, in random order."""
        starts, lengths = np.concatenate([[0], ends[:-1]]), np.diff(ends, prepend=0)
        order = generator.permutation(len(ends))
        order = order[np.argsort(lengths[order], kind="stable")]
        batch_of = np.cumsum(lengths[order]) // self.settings.batch
        groups = np.split(order, np.flatnonzero(np.diff(batch_of)) + 1)
        for number in generator.permutation(len(groups)).tolist():
            group = groups[number]
            yield self.batch(rows, starts[group], lengths[group], generator)

    def batch(self, rows: Rows, starts: Ends, lengths: Ends, generator: np.random.Generator) -> LstmBatch:
        place = np.arange(lengths.max())  # (L,)
        inside = place < lengths[:, None]  # (S, L)
        before = np.where(inside, starts[:, None] + place - 1, 0)
        after = np.where(inside, starts[:, None] + lengths[:, None] - place, 0)
        forward, backward = (np.where(inside, rows[np.minimum(at, len(rows) - 1)], self.end) for at in (before, after))
        forward[:, 0], backward[:, 0] = self.begin, self.end
        sentence, here = np.nonzero(inside)
        words = rows[starts[sentence] + here]
        is_target = generator.random(len(words)) < self.keep[words]
        sentence, here = sentence[is_target], here[is_target]
        first = sentence * len(place)
        left, right = first + here, first + lengths[sentence] - 1 - here
        arrays = (forward, backward, words[is_target], left, right)
        return LstmBatch(len(words), *(torch.from_numpy(array.astype(np.int64)) for array in arrays))

    def contexts(self, batch: LstmBatch) -> tuple[Tensor, Tensor, Tensor]:
        """The context vectors of the targets (T, D); the distinct words that were read, and their vectors, a leaf."""
        words, place = torch.unique(torch.stack([batch.forward, batch.backward]), return_inverse=True)
        leaf = self.words.table[words].requires_grad_()
        return self.reader(*F.embedding(place, leaf), batch), words, leaf

    def step(self, batch: LstmBatch, negatives: Tensor, lr: float) -> float:
        """One step; returns its loss."""
        contexts, words, leaf = self.contexts(batch)
        loss, by_contexts, rows, by_rows = negative_sampling_loss(
            contexts.detach(), self.targets.table, batch.targets, negatives, self.settings.negatives
        )
        parameters = dict(self.reader.named_parameters())
        by_leaf, *gradients = torch.autograd.grad(contexts, [leaf, *parameters.values()], by_contexts)
        self.targets.update(rows, by_rows, lr)
        self.words.update(words, by_leaf, lr)
        for name, gradient in zip(parameters, gradients, strict=True):
            self.weights[name].update(torch.arange(len(gradient)), gradient, lr / 10)
        return float(loss)
