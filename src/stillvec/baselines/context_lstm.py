"""ContextLSTM, or context2vec (Melamud et al. 2016): two LSTMs, left and right of a word, predict the word.

    c_i = M2 relu(M1 [left state after w_1 ... w_i-1 ; right state after w_n ... w_i+1] + b1) + b2
    sum over words i:   l(c_i . u_i) + sum over negatives w' of l(-c_i . u_w')

All positions of a sentence are computed at once: the states of a target are those of its neighbours. Begin and end of a
sentence are read as words. The result is u, the vectors of targets. Adam on batches of sentences of similar length that
share their negatives. Threads share the tables without locks, so only a single thread gives the same bytes twice.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from stillvec.baselines.baseline import JobResult, Resources, check_settings, loss_note, map_jobs
from stillvec.baselines.encoded_corpus import EncodedCorpus
from stillvec.result import Result
from stillvec.teachers.threads import torch_threads
from stillvec.training.loss_monitor import EpochLoss
from stillvec.training.negative_sampling import NegativeSampler, keep_probability, negative_sampling_loss
from stillvec.training.optimizers import RowAdam, random_rows
from stillvec.training.schedule import Schedule, TrainingProgress, divergence_error

_BLOCK_WORDS = 100_000  # whose sentences are shuffled together and batched by length
_CHECKPOINT_NAMES = {"table": "rows", "mean": "first", "square": "second", "steps": "steps"}


@dataclass(frozen=True)
class ContextLstm:
    SUMMARY: ClassVar[str] = "trained with two LSTMs that read left and right of it (no teacher)"
    PAPERS: ClassVar[tuple[str, ...]] = ("melamud-2016",)
    resumes: ClassVar[bool] = True
    RENAMED: ClassVar[Mapping[str, str]] = {
        "read": "input_dim",
        "hidden": "hidden_dim",
        "shared": "shared_negatives",
    }
    PRESETS: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "melamud-2016": {
            "dim": 600,
            "input_dim": 300,
            "hidden_dim": 600,
            "epochs": 3,
            "subsample": 0.0,
            "batch": 16_000,
            "rate": 0.01,
        },
    }
    settings: str = "stillvec"  # or a paper's settings, by their name
    dim: int = 300  # dimensions of the vectors
    epochs: int = 5  # passes over the corpus
    input_dim: int | None = None  # dimensions of the words that the LSTMs read; none: dim
    hidden_dim: int | None = None  # dimensions of each LSTM's states; none: dim
    negatives: int = 10  # negatives per target
    shared_negatives: int = 1024  # drawn per batch and weighted to count as `negatives`; too few miss most words
    subsample: float = 1e-4  # t: a target is kept with probability sqrt(t/f) + t/f
    power: float = 0.75  # exponent of the word counts when negatives are drawn
    batch: int = 500  # words per step, about
    rate: float = 0.02  # initial learning rate of the vectors, a tenth of it for the LSTMs; falls to a hundredth
    seed: int = 0  # random seed

    def __post_init__(self) -> None:
        positive = ("dim", "epochs", "batch", "rate", "input_dim", "hidden_dim", "negatives", "shared_negatives")
        check_settings(self, positive, ("subsample", "seed"))

    def steps(self, corpus: EncodedCorpus, resources: Resources) -> Generator[TrainingProgress, None, Result]:
        model = LstmModel(self, corpus.vocabulary.counts)
        loss = yield from self._train(model, corpus, resources)
        matrix = model.targets.table.numpy()
        if not np.isfinite(matrix).all():
            raise divergence_error(self.rate)
        return Result(corpus.vectors(matrix), loss_note(loss))

    def _train(
        self, model: LstmModel, corpus: EncodedCorpus, resources: Resources
    ) -> Generator[TrainingProgress, None, float]:
        """Like `train_epochs`, with a checkpoint after each block: an epoch takes hours."""
        total, done, number = self.epochs * corpus.n_words, 0, 0
        n_blocks_done = resources.checkpoint.restore(model) if resources.checkpoint is not None else 0
        mean = math.nan
        with torch_threads(1), map_jobs(resources.threads) as apply:
            for _ in range(self.epochs):
                loss = EpochLoss(self.rate)
                for rows, ends in corpus.blocks(_BLOCK_WORDS):
                    number += 1
                    if number <= n_blocks_done:
                        done += len(rows)
                        continue
                    jobs = model.jobs(rows, ends, range(done, total), (self.seed, number))
                    for result in apply(model.train_job, jobs):
                        loss.add(result.loss, result.n_targets)
                        done += result.n_items
                        yield TrainingProgress(done, total, loss.remark)
                    if resources.checkpoint is not None:
                        resources.checkpoint.write(model, number)
                mean = mean if math.isnan(loss.mean) else loss.mean
        return mean


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

    def jobs(
        self, rows: NDArray[np.int32], ends: NDArray[np.int64], left: range, seed: tuple[int, ...]
    ) -> Iterator[LstmJob]:
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

    def batches(
        self, rows: NDArray[np.int32], ends: NDArray[np.int64], generator: np.random.Generator
    ) -> Iterator[LstmBatch]:
        """Batches of whole sentences of similar length, in random order."""
        starts, lengths = np.concatenate([[0], ends[:-1]]), np.diff(ends, prepend=0)
        order = generator.permutation(len(ends))
        order = order[np.argsort(lengths[order], kind="stable")]
        batch_of = np.cumsum(lengths[order]) // self.settings.batch
        groups = np.split(order, np.flatnonzero(np.diff(batch_of)) + 1)
        for number in generator.permutation(len(groups)).tolist():
            group = groups[number]
            yield self.batch(rows, starts[group], lengths[group], generator)

    def batch(
        self,
        rows: NDArray[np.int32],
        starts: NDArray[np.int64],
        lengths: NDArray[np.int64],
        generator: np.random.Generator,
    ) -> LstmBatch:
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
