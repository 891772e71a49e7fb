"""GloVe (Pennington et al. 2014): products of vectors approximate the logarithm of co-occurrence counts.

    J = sum over pairs (i, j) of f(X_ij) (w_i . c_j + b_i + b'_j - log X_ij)²,   f(x) = min(1, (x / x_max)^alpha)

X counts pairs within the window, 1/distance each, in both orders. AdaGrad pair by pair as in the authors' program: half
the gradient times the rate, over the root of one plus the squares before. Pairs are distributed at random over parts; a
part is trained in random order of its words, each with its pairs. Threads work on disjoint words and contexts at a time
(Gemulla et al. 2011), on contiguous ranges of contexts so that they share no cache line: the same number of threads
gives the same bytes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stillvec.baselines.baseline import Baseline, JobResult, Resources, loss_note, train_epochs
from stillvec.baselines.cooccurrence import SortedRun, count_pairs, split_counts
from stillvec.baselines.encoded_corpus import EncodedCorpus
from stillvec.progress import relay
from stillvec.registry import require
from stillvec.result import Result
from stillvec.training.schedule import TrainingProgress

_PART_PAIRS = 1 << 22  # about
_CACHE_LINE = 16  # floats
_FROZEN = 1e30  # sum of squares of a number that no step changes

Range = tuple[int, int]  # first, last (excluded)


@dataclass(frozen=True)
class Glove(Baseline):
    SUMMARY = "trained on co-occurrence counts (no teacher)"
    PAPERS = ("pennington-2014",)
    PRESETS: ClassVar = {"pennington-2014": {"epochs": 100, "x_max": 100.0, "add_contexts": True}}
    epochs: int = 20  # passes over the co-occurrence counts
    window: int = 10  # largest distance of two words that count as a pair
    x_max: float = 10.0  # count from which a pair has full weight; the paper's 100 is for a thousand times more text
    alpha: float = 0.75  # exponent of the weight of rarer pairs
    rate: float = 0.05  # initial learning rate of AdaGrad
    add_contexts: bool = False  # add each word's context vector to its own, as in the paper

    def steps(self, corpus: EncodedCorpus, resources: Resources) -> Generator[TrainingProgress, None, Result]:
        total = self.epochs * corpus.n_words
        model = GloveModel(self, len(corpus.vocabulary))
        with tempfile.TemporaryDirectory(dir=corpus.folder) as name:
            counting = count_pairs(corpus, self.window, Path(name))
            runs = yield from relay(counting, lambda n: TrainingProgress(0, total, f"{n:,} words counted"))
            n_parts = -(-sum(len(run.counts) for run in runs) // _PART_PAIRS)
            parts = split_counts(runs, n_parts, Path(name), self.seed)
            n_pairs = sum(len(part.counts) for part in parts)

            def blocks(epoch: int) -> Iterator[list[GloveJob]]:
                generator = np.random.default_rng([self.seed, epoch])
                for number in generator.permutation(len(parts)).tolist():
                    part = parts[number].load()
                    yield from thread_rounds(part, generator.permutation(len(part.starts) - 1), resources.threads)

            loss = yield from train_epochs(self, model, blocks, [n_pairs], corpus.n_words, resources)
        return Result(corpus.vectors(model.result()), {**loss_note(loss), "pairs": n_pairs})


class GloveJob(NamedTuple):
    part: SortedRun
    words: NDArray[np.int64]
    contexts: Range


class GloveModel:
    """The tables of words and contexts, (2, W) per word: the vector, and AdaGrad's sums of squares.

    A word's vector is followed by its bias and a one, a context's by a one and its bias, so that the product of two
    rows includes both biases.
    """

    def __init__(self, settings: Glove, n_words: int) -> None:
        require("numba", "train", "GloVe")
        from stillvec.baselines.compiled_loops import train_glove

        self._train = train_glove
        self.settings = settings
        dim = settings.dim
        generator = np.random.default_rng(settings.seed)
        self.words, self.contexts = (_allocate_aligned(n_words, dim + 2) for _ in range(2))  # (V, 2, W)
        for table, bias, one in ((self.words, dim, dim + 1), (self.contexts, dim + 1, dim)):
            start = (generator.random((n_words, dim + 1), np.float32) - np.float32(0.5)) / np.float32(dim)
            table[:, 0, :dim], table[:, 0, bias], table[:, 0, one] = start[:, :dim], start[:, dim], 1
            table[:, 1], table[:, 1, one] = 1, _FROZEN

    def tensors(self) -> dict[str, NDArray[np.float32]]:
        return {"words": self.words, "contexts": self.contexts}

    def result(self) -> NDArray[np.float32]:
        vectors = self.words[:, 0] + self.contexts[:, 0] if self.settings.add_contexts else self.words[:, 0]
        return np.ascontiguousarray(vectors[:, : self.settings.dim])

    def train_job(self, job: GloveJob) -> JobResult:
        """Steps on the pairs of some words of a part with some contexts."""
        settings, pairs = self.settings, (job.part.starts, job.part.columns, job.part.counts)
        rest = (*job.contexts, *pairs, settings.x_max, settings.alpha, settings.rate)
        n_pairs, loss = self._train(self.words, self.contexts, job.words, *rest)
        return JobResult(n_pairs, loss, n_pairs)


def _allocate_aligned(n_rows: int, width: int) -> NDArray[np.float32]:
    """Zeros (n_rows, 2, width or a little more) whose rows each start a cache line."""
    width = -(-width // _CACHE_LINE) * _CACHE_LINE
    raw = np.zeros(n_rows * 2 * width + _CACHE_LINE, np.float32)
    start = -raw.ctypes.data % (_CACHE_LINE * raw.itemsize) // raw.itemsize
    return raw[start : start + n_rows * 2 * width].reshape(n_rows, 2, width)


def thread_rounds(part: SortedRun, order: NDArray[np.int64], threads: int) -> Iterator[list[GloveJob]]:
    """The jobs of the threads, round by round: after all rounds each pair was trained once."""
    words = [order[first:last] for first, last in split_evenly(np.diff(part.starts)[order], threads)]
    contexts = split_evenly(np.bincount(part.columns, minlength=len(order)), threads)
    for number in range(threads):
        yield [GloveJob(part, *ranges) for ranges in zip(words, contexts[number:] + contexts[:number], strict=True)]


def split_evenly(counts: NDArray[np.int64], n_ranges: int) -> list[Range]:
    """Contiguous ranges of about the same total count."""
    total = np.cumsum(counts)
    edges = np.searchsorted(total, np.linspace(0, total[-1], n_ranges + 1)[1:-1])
    return [*pairwise([0, *edges.tolist(), len(counts)])]
