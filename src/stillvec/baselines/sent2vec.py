"""Sent2vec (Pagliardini et al. 2018): the mean of a sentence's other words and word n-grams tells each word.

    E = mean of the vectors of all n-grams of S without w;   l(u_w . E) + sum over negatives w' of l(-u_w' . E)

n-grams longer than a word share rows by their hash; those that have w in them are left out with it, and some of each
sentence at random (`dropped`). Frequent targets are left out at random, contexts are whole. Plain steps with a falling
rate, as in the paper: those of u target by target, those of the n-grams once a sentence, all targets together, which
spares most of the time. A word's vector is the one it has in contexts. Several threads share the tables without
locks, so only one gives the same bytes twice.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from stillvec.baselines.baseline import Resources, TrainingStep, check_settings, diverged
from stillvec.baselines.encoded_corpus import EncodedCorpus
from stillvec.baselines.negatives import SharedNegativeSampler, keep_probability
from stillvec.registry import require
from stillvec.result import Result
from stillvec.vocabulary.token_cache import ranges

_LONGEST = 100  # words of a sentence: one step on many repetitions of a word is too far a step
_WORDS = 400_000  # of a block, in which sentences are mixed
_JOB = 400  # sentences that a thread takes at a time


@dataclass(frozen=True)
class Sent2vec:
    resumes: ClassVar[bool] = True
    PRESETS: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "pagliardini-2018": {
            "dim": 700,
            "epochs": 9,
            "ngrams": 2,
            "negatives": 10,
            "subsample": 5e-6,
            "buckets": 2_000_000,
        },
    }
    settings: str = "stillvec"
    dim: int = 300
    epochs: int = 40
    ngrams: int = 1  # words of the longest; the paper tries 1 and 2
    dropped: int = 4  # n-grams of each sentence
    buckets: int | None = None  # rows for n-grams; None: 20 a word of the vocabulary, 2 million at most
    negatives: int = 5  # a target
    subsample: float = 1e-4  # t: a target is kept with probability sqrt(t/f) + t/f
    power: float = 0.5  # of the counts, for negatives
    rate: float = 0.2  # falls to a hundredth
    seed: int = 0

    def __post_init__(self) -> None:
        above: dict[str, float] = {"dim": self.dim, "epochs": self.epochs, "ngrams": self.ngrams, "rate": self.rate}
        above |= {"negatives": self.negatives, "buckets": self.buckets or 1}
        check_settings(self, above, {"dropped": self.dropped, "subsample": self.subsample, "seed": self.seed})

    def steps(self, text: EncodedCorpus, means: Resources) -> Generator[TrainingStep, None, Result]:
        model = Sent2vecModel(self, text.vocabulary.counts)
        total = self.epochs * text.words
        begun = means.checkpoint.restore(model) if means.checkpoint is not None else 0
        loss = math.nan
        with ThreadPoolExecutor(means.threads) as pool:
            apply = pool.map if means.threads > 1 else map
            for epoch in range(begun, self.epochs):
                sums = targets = 0.0
                done = epoch * text.words
                for number, (rows, ends) in enumerate(text.blocks(_WORDS)):
                    jobs = model.jobs(rows, ends, done / total, (self.seed, epoch, number))
                    for some, its_loss, words in apply(model.learn, jobs):
                        sums, targets, done = sums + its_loss, targets + some, done + words
                        yield TrainingStep(done, total, f"loss {sums / max(targets, 1):.4f}")
                if not math.isfinite(sums) or not model.finite():
                    raise diverged(self.rate)
                loss = sums / max(targets, 1)
                if means.checkpoint is not None:
                    means.checkpoint.write(model, epoch + 1)
        vectors = model.sources[: len(text.vocabulary)]
        return Result(text.learnt(vectors), {"loss": loss} if math.isfinite(loss) else {})


class Sent2vecJob(NamedTuple):
    """What a thread does at a time."""

    rows: NDArray[np.int64]  # (W,) words of some sentences, one after the other
    ends: NDArray[np.int64]  # (S,)
    rate: float
    seed: tuple[int, ...]


class Sent2vecModel:
    """A table of sources (words, buckets) and one of targets."""

    def __init__(self, settings: Sent2vec, counts: NDArray[np.int64]) -> None:
        require("numba", "train", "Sent2vec")
        from stillvec.baselines import sent2vec_kernel

        self._kernel = sent2vec_kernel
        self.settings = settings
        size = len(counts)
        asked = settings.buckets or min(2_000_000, 20 * size)
        buckets = asked if settings.ngrams > 1 else 0
        self.noise = SharedNegativeSampler(counts, settings.power)
        self.kept = keep_probability(counts, settings.subsample)
        choose = np.random.default_rng(settings.seed)
        self.sources = choose.random((size + buckets, settings.dim), np.float32)  # (V + B, D)
        self.sources -= 0.5
        self.sources /= settings.dim
        self.targets = np.zeros((size, settings.dim), np.float32)  # (V, D)

    def tensors(self) -> dict[str, torch.Tensor]:
        return {"sources": torch.from_numpy(self.sources), "targets": torch.from_numpy(self.targets)}

    def finite(self) -> bool:
        return bool(np.isfinite(self.targets).all() and np.isfinite(self.sources[: len(self.targets)]).all())

    def jobs(
        self, rows: NDArray[np.int32], ends: NDArray[np.int64], done: float, seed: tuple[int, ...]
    ) -> Iterator[Sent2vecJob]:
        """Whole sentences in a random order, some at a time; `done` is the share of all words that went before."""
        starts, lengths = _parted(np.diff(ends, prepend=0))
        order = np.random.default_rng(seed).permutation(len(starts))
        rate = self.settings.rate * max(0.01, 1 - done)
        for first in range(0, len(order), _JOB):
            some = order[first : first + _JOB]
            words = rows[ranges(starts[some], lengths[some])].astype(np.int64)
            yield Sent2vecJob(words, np.cumsum(lengths[some]), rate, (*seed, first))

    def learn(self, job: Sent2vecJob) -> tuple[int, float, int]:
        """Steps on some sentences; gives their targets, the loss of these, their words."""
        choose = np.random.default_rng(job.seed)
        told = choose.random(len(job.rows)) < self.kept[job.rows]
        targets = int(told.sum())
        drawn = self.noise.spread(targets * self.settings.negatives, choose).reshape(targets, -1)
        dropping = choose.random((len(job.ends), self.settings.dropped))
        loss = self._kernel.learn(
            self.sources, self.targets, job.rows, job.ends, told, drawn, dropping, self.settings.ngrams, job.rate
        )
        return targets, loss, len(job.rows)


def _parted(lengths: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where sentences begin, and their lengths, those that are too long in even parts."""
    parts = -(-lengths // _LONGEST)
    place = ranges(np.zeros_like(parts), parts)
    whole, of = np.repeat(lengths, parts), np.repeat(parts, parts)
    begin, end = place * whole // of, (place + 1) * whole // of
    return np.repeat(np.cumsum(lengths) - lengths, parts) + begin, end - begin
