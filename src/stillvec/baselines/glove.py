"""GloVe (Pennington et al. 2014): products of vectors approximate the logarithm of co-occurrence counts.

    J = sum over pairs (i, j) of f(X_ij) (w_i . c_j + b_i + b'_j - log X_ij)²,   f(x) = min(1, (x / x_max)^alpha)

X counts pairs within the window, 1/distance each, in both orders. AdaGrad pair by pair as in the authors' program: half
the gradient times the rate, over the root of one plus the squares before. Pairs are distributed at random over parts; a
part is trained in random order of its words, each with its pairs. Threads work on disjoint words and contexts at a time
(Gemulla et al. 2011), on contiguous ranges of contexts so that they share no cache line: the same number of threads
gives the same bytes. Co-occurrence counts are sparse matrices in bounded memory: counts beyond the bound are written to
disk as runs, which are summed a range of rows at a time and distributed over the parts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stillvec.baselines.baseline import Baseline, JobResult, Resources, loss_note, train_epochs
from stillvec.baselines.encoded_corpus import EncodedCorpus
from stillvec.progress import relay
from stillvec.registry import require
from stillvec.result import Result
from stillvec.training.schedule import TrainingProgress

BOUND = 20_000_000  # counts in memory, about: 8 bytes each, three times as much while they are summed
_WORDS = 500_000  # counted at once


def count_block(rows: NDArray[np.int32], ends: NDArray[np.int64], window: int, n_words: int) -> sparse.csr_matrix:
    """The counts of some sentences (V, V)."""
    sentence = np.repeat(np.arange(len(ends), dtype=np.int32), np.diff(ends, prepend=0))
    left, right, weight = [], [], []
    for distance in range(1, min(window, len(rows) - 1) + 1):
        together = np.flatnonzero(sentence[distance:] == sentence[:-distance])
        left.append(rows[together])
        right.append(rows[together + distance])
        weight.append(np.full(len(together), 1 / distance, np.float32))
    places = (np.concatenate(left), np.concatenate(right))
    pairs = sparse.coo_matrix((np.concatenate(weight), places), (n_words, n_words))
    pairs.has_canonical_format = True  # skips sorting: the transposition below sorts, and duplicates are summed then
    half = pairs.tocsr().tocsc()
    half.sum_duplicates()
    whole = (half + half.T).tocsr()
    whole.sort_indices()
    return whole


@dataclass(frozen=True)
class SortedRun:
    """Counts on disk, row by row."""

    starts: NDArray[np.int64]  # (V + 1,) of each row
    columns: NDArray[np.int32]  # (N,)
    counts: NDArray[np.float32]  # (N,)

    @classmethod
    def write(cls, counts: sparse.csr_matrix, path: Path) -> SortedRun:
        for name, array, dtype in (("columns", counts.indices, np.int32), ("counts", counts.data, np.float32)):
            # `tofile` may cut a file short on a full disk without an error
            path.with_suffix(f".{name}").write_bytes(np.ascontiguousarray(array, dtype).data)
        return cls.open(path, counts.indptr.astype(np.int64))

    @classmethod
    def open(cls, path: Path, starts: NDArray[np.int64]) -> SortedRun:
        size = int(starts[-1])
        if not size:  # an empty file cannot be mapped
            return cls(starts, np.zeros(0, np.int32), np.zeros(0, np.float32))
        columns = np.memmap(path.with_suffix(".columns"), np.int32, "r", shape=(size,))
        return cls(starts, columns, np.memmap(path.with_suffix(".counts"), np.float32, "r", shape=(size,)))

    def load(self) -> SortedRun:
        """The same in memory."""
        return SortedRun(self.starts, np.array(self.columns), np.array(self.counts))

    def rows(self, first: int, last: int) -> sparse.csr_matrix:
        """Some rows, in memory."""
        begin, end = int(self.starts[first]), int(self.starts[last])
        starts = self.starts[first : last + 1] - begin
        shape = (last - first, len(self.starts) - 1)
        return sparse.csr_matrix((np.array(self.counts[begin:end]), np.array(self.columns[begin:end]), starts), shape)


def count_pairs(
    corpus: EncodedCorpus, window: int, folder: Path, bound: int = BOUND
) -> Generator[int, None, list[SortedRun]]:
    """Count into runs that are still to be summed; yields the number of words counted."""
    runs: list[SortedRun] = []
    counts: Any = None
    n_counted = 0
    for rows, ends in corpus.blocks(_WORDS):
        more = count_block(rows, ends, window, len(corpus.vocabulary))
        counts = more if counts is None else counts + more
        n_counted += len(rows)
        if counts.nnz > bound or n_counted == corpus.n_words:
            runs.append(SortedRun.write(counts, folder / f"run-{len(runs)}"))
            counts = None
        yield n_counted
    return runs


def sum_runs(runs: Sequence[SortedRun], bound: int = BOUND) -> Iterator[tuple[int, sparse.csr_matrix]]:
    """The summed counts as (first row, some rows), of which no more than the bound or one row is in memory."""
    together = np.sum([run.starts for run in runs], axis=0)  # (V + 1,)
    first, size = 0, len(together) - 1
    while first < size:
        last = int(np.searchsorted(together, together[first] + bound, side="right")) - 1
        last = min(max(last, first + 1), size)
        total = runs[0].rows(first, last)
        for run in runs[1:]:
            total = total + run.rows(first, last)
        yield first, total
        first = last


def split_counts(runs: list[SortedRun], n_parts: int, folder: Path, seed: int, bound: int = BOUND) -> list[SortedRun]:
    """The summed counts, distributed at random over parts."""
    if len(runs) == n_parts == 1:
        return [*runs]
    paths = [folder / f"part-{number}" for number in range(n_parts)]
    row_sizes: list[list[NDArray[np.int64]]] = [[] for _ in paths]  # entries per row, range by range
    generator = np.random.default_rng(seed)
    for _, rows in sum_runs(runs, bound):
        part = generator.integers(n_parts, size=rows.nnz)
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        order = np.argsort(part, kind="stable")  # keeps the entries of a row together and in order
        cuts = np.searchsorted(part[order], np.arange(n_parts + 1))
        for number, path in enumerate(paths):
            chosen = order[cuts[number] : cuts[number + 1]]
            row_sizes[number].append(np.bincount(row[chosen], minlength=rows.shape[0]))
            with open(path.with_suffix(".columns"), "ab") as columns, open(path.with_suffix(".counts"), "ab") as counts:
                columns.write(rows.indices[chosen].astype(np.int32).tobytes())
                counts.write(rows.data[chosen].astype(np.float32).tobytes())
    starts = [np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64) for sizes in row_sizes]
    return [SortedRun.open(path, start) for path, start in zip(paths, starts, strict=True)]


_PART_PAIRS = 1 << 22  # about
_CACHE_LINE = 16  # floats
_FROZEN = 1e30  # sum of squares of a number that no step changes

Range = tuple[int, int]  # first, last (excluded)


@dataclass(frozen=True)
class Glove(Baseline):
    SUMMARY = "trained on co-occurrence counts (no teacher)"
    PAPERS = ("pennington-2014",)
    PRESETS: ClassVar = {"pennington-2014": {"epochs": 100, "x_max": 100.0, "add_contexts": True}}
    has_contexts = True
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
        contexts = model.contexts[:, 0, : self.dim]
        return Result(corpus.vectors(model.result(), contexts=contexts), {**loss_note(loss), "pairs": n_pairs})


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
