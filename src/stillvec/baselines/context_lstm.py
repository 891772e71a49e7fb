"""ContextLSTM, or context2vec (Melamud et al. 2016): what two LSTMs read left and right of a word tells the word.

    c_i = M2 relu(M1 [left state after w_1 ... w_i-1 ; right state after w_n ... w_i+1] + b1) + b2
    sum over words i:   l(c_i . u_i) + sum over negatives w' of l(-c_i . u_w')

All places of a sentence at once: a state is that of the word before. A begin and an end are read as words of their own.
u, the vectors of targets, are the result. Adam on sentences of about the same length, which share their negatives.
Several threads share all that is learnt without locks, so only one gives the same bytes twice.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from stillvec.baselines.adam import Adam
from stillvec.baselines.baseline import Resources, TrainingStep, check_settings, diverged
from stillvec.baselines.encoded_corpus import EncodedCorpus
from stillvec.baselines.negatives import SharedNegativeSampler, keep_probability, negative_sampling_loss, random_rows
from stillvec.result import Result
from stillvec.teachers.threads import torch_threads

_WORDS = 100_000  # of a block, in which sentences are mixed and put beside others of their length


@dataclass(frozen=True)
class ContextLstm:
    resumes: ClassVar[bool] = True
    PRESETS: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "melamud-2016": {
            "dim": 600,
            "read": 300,
            "hidden": 600,
            "epochs": 3,
            "subsample": 0.0,
            "batch": 16_000,
            "rate": 0.01,
        },
    }
    settings: str = "stillvec"
    dim: int = 300
    epochs: int = 5
    read: int | None = None  # dimensions of words as they are read; None: dim
    hidden: int | None = None  # of each LSTM's states; None: dim
    negatives: int = 10  # a target
    shared: int = 1024  # drawn for a batch; of few, most words are hardly ever told from
    subsample: float = 1e-4  # t: a target is kept with probability sqrt(t/f) + t/f
    power: float = 0.75  # of the counts, for negatives
    batch: int = 500  # words, about
    rate: float = 0.02  # of words' vectors; of the reader a tenth of it; falls to a hundredth
    seed: int = 0

    def __post_init__(self) -> None:
        above: dict[str, float] = {"dim": self.dim, "epochs": self.epochs, "batch": self.batch, "rate": self.rate}
        above |= {name: value for name in ("read", "hidden") if (value := getattr(self, name)) is not None}
        above |= {"negatives": self.negatives, "shared": self.shared}
        check_settings(self, above, {"subsample": self.subsample, "seed": self.seed})

    def steps(self, text: EncodedCorpus, means: Resources) -> Generator[TrainingStep, None, Result]:
        model = LstmModel(self, text.vocabulary.counts)
        loss = yield from self._train(model, text, means)
        vectors = model.targets.rows.numpy()
        if not np.isfinite(vectors).all():
            raise diverged(self.rate)
        return Result(text.learnt(vectors), {"loss": loss} if math.isfinite(loss) else {})

    def _train(self, model: LstmModel, text: EncodedCorpus, means: Resources) -> Generator[TrainingStep, None, float]:
        total, done, passed = self.epochs * text.words, 0, 0
        learnt = means.checkpoint.restore(model) if means.checkpoint is not None else 0  # blocks
        loss = math.nan
        with torch_threads(1), ThreadPoolExecutor(means.threads) as pool:
            apply = pool.map if means.threads > 1 else map
            for _ in range(self.epochs):
                sums = targets = 0.0
                for number, (rows, ends) in enumerate(text.blocks(_WORDS), passed + 1):
                    passed = number
                    if number <= learnt:
                        done += len(rows)
                        continue
                    jobs = model.jobs(rows, ends, range(done, total), (self.seed, number))
                    for some, its_loss, words in apply(model.learn, jobs):
                        sums, targets, done = sums + its_loss, targets + some, done + words
                        if not math.isfinite(sums):
                            raise diverged(self.rate)
                        yield TrainingStep(done, total, f"loss {sums / max(targets, 1):.4f}")
                    if means.checkpoint is not None:
                        means.checkpoint.write(model, number)
                loss = sums / targets if targets else loss
        return loss


class LstmBatch(NamedTuple):
    """Sentences, filled up with ends to the length of the longest."""

    words: int
    forward: Tensor  # (S, L) what the left LSTM reads: the begin, the first word, ..., the last but one
    backward: Tensor  # (S, L) what the right LSTM reads: the end, the last word, ..., the second
    targets: Tensor  # (T,) words
    left: Tensor  # (T,) where each target's left state is, in all S x L
    right: Tensor  # (T,)


class LstmJob(NamedTuple):
    """What a thread does at a time."""

    batch: LstmBatch
    drawn: Tensor  # (K,)
    rate: float


class LstmReader(nn.Module):
    """From words to the vector of the gap that each target leaves."""

    def __init__(self, read: int, hidden: int, dim: int, seed: int) -> None:
        super().__init__()
        self.left, self.right = (nn.LSTM(read, hidden, batch_first=True) for _ in range(2))
        self.inner, self.outer = nn.Linear(2 * hidden, 2 * hidden), nn.Linear(2 * hidden, dim)
        choose = torch.Generator().manual_seed(seed)
        for part in self.parameters():
            nn.init.uniform_(part.data, -1 / math.sqrt(hidden), 1 / math.sqrt(hidden), generator=choose)

    def forward(self, forward: Tensor, backward: Tensor, batch: LstmBatch) -> Tensor:
        """Vectors of the words that are read (S, L, R), twice; gives the contexts (T, D)."""
        before = self.left(forward)[0].flatten(0, 1)[batch.left]  # (T, H)
        after = self.right(backward)[0].flatten(0, 1)[batch.right]  # (T, H)
        found: Tensor = self.outer(torch.relu(self.inner(torch.cat([before, after], 1))))
        return found


class LstmModel:
    """Words as they are read, the reader, words as targets."""

    def __init__(self, settings: ContextLstm, counts: NDArray[np.int64]) -> None:
        self.settings = settings
        self.noise = SharedNegativeSampler(counts, settings.power)
        self.kept = keep_probability(counts, settings.subsample)
        self.begin, self.end = len(counts), len(counts) + 1
        read, seed = settings.read or settings.dim, settings.seed
        self.words = Adam(random_rows(len(counts) + 2, read, seed) * read)
        self.targets = Adam(random_rows(len(counts), settings.dim, seed))
        self.reader = LstmReader(read, settings.hidden or settings.dim, settings.dim, seed)
        self.weights = {name: Adam(part.data) for name, part in self.reader.named_parameters()}

    def tensors(self) -> dict[str, Tensor]:
        named = {"words": self.words, "targets": self.targets, **self.weights}
        parts = ("rows", "first", "second", "steps")
        return {f"{name}.{part}": getattr(each, part) for name, each in named.items() for part in parts}

    def jobs(
        self, rows: NDArray[np.int32], ends: NDArray[np.int64], left: range, seed: tuple[int, ...]
    ) -> Iterator[LstmJob]:
        """The batches of a block, at a rate that falls; `left` are the words still to be read, of all epochs."""
        choose = np.random.default_rng(seed)
        done = left.start
        for batch in self.batches(rows, ends, choose):
            drawn = self.noise.draw(self.settings.shared, choose)
            yield LstmJob(batch, drawn, self.settings.rate * max(0.01, 1 - done / left.stop))
            done += batch.words

    def learn(self, job: LstmJob) -> tuple[int, float, int]:
        """One batch; gives its targets, their loss, its words."""
        loss = self.step(*job) if len(job.batch.targets) else 0.0
        return len(job.batch.targets), loss, job.batch.words

    def batches(
        self, rows: NDArray[np.int32], ends: NDArray[np.int64], choose: np.random.Generator
    ) -> Iterator[LstmBatch]:
        """Whole sentences beside others of about their length, in a random order."""
        starts, lengths = np.concatenate([[0], ends[:-1]]), np.diff(ends, prepend=0)
        order = choose.permutation(len(ends))
        order = order[np.argsort(lengths[order], kind="stable")]
        full = np.cumsum(lengths[order]) // self.settings.batch
        groups = np.split(order, np.flatnonzero(np.diff(full)) + 1)
        for number in choose.permutation(len(groups)).tolist():
            some = groups[number]
            yield self.batch(rows, starts[some], lengths[some], choose)

    def batch(
        self,
        rows: NDArray[np.int32],
        starts: NDArray[np.int64],
        lengths: NDArray[np.int64],
        choose: np.random.Generator,
    ) -> LstmBatch:
        place = np.arange(lengths.max())  # (L,)
        inside = place < lengths[:, None]  # (S, L)
        read = [np.where(inside, starts[:, None] + place - 1, 0)]
        read.append(np.where(inside, starts[:, None] + lengths[:, None] - place, 0))
        forward, backward = (np.where(inside, rows[np.minimum(each, len(rows) - 1)], self.end) for each in read)
        forward[:, 0], backward[:, 0] = self.begin, self.end
        sentence, here = np.nonzero(inside)
        words = rows[starts[sentence] + here]
        told = choose.random(len(words)) < self.kept[words]
        sentence, here, row = sentence[told], here[told], sentence[told] * len(place)
        left, right = row + here, row + lengths[sentence] - 1 - here
        arrays = (forward, backward, words[told], left, right)
        return LstmBatch(len(words), *(torch.from_numpy(each.astype(np.int64)) for each in arrays))

    def contexts(self, batch: LstmBatch) -> tuple[Tensor, Tensor, Tensor]:
        """The vectors of the gaps (T, D); the different words that were read, and their vectors, a leaf."""
        own, place = torch.unique(torch.stack([batch.forward, batch.backward]), return_inverse=True)
        leaf = self.words.rows[own].requires_grad_()
        return self.reader(*F.embedding(place, leaf), batch), own, leaf

    def step(self, batch: LstmBatch, drawn: Tensor, rate: float) -> float:
        """One batch; gives its loss."""
        found, own, leaf = self.contexts(batch)
        loss, by_found, rows, by_rows = negative_sampling_loss(
            found.detach(), self.targets.rows, batch.targets, drawn, self.settings.negatives
        )
        parts = dict(self.reader.named_parameters())
        by_leaf, *slopes = torch.autograd.grad(found, [leaf, *parts.values()], by_found)
        self.targets.update(by_rows, rate, rows)
        self.words.update(by_leaf, rate, own)
        for name, slope in zip(parts, slopes, strict=True):
            self.weights[name].update(slope, rate / 10)
        return float(loss)
