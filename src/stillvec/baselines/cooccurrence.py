"""Co-occurrence counts of a corpus, in bounded memory: counts beyond the bound go to disk and are merged.

A pair of words at distance d in a sentence counts 1/d, in both orders. Counts are sparse matrices, written as runs; the
runs are summed a range of rows at a time and distributed at random over parts, which are trained on one after another.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stillvec.baselines.encoded_corpus import EncodedCorpus

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
            array.astype(dtype, copy=False).tofile(path.with_suffix(f".{name}"))
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


def split_counts(
    runs: Sequence[SortedRun], n_parts: int, folder: Path, seed: int, bound: int = BOUND
) -> list[SortedRun]:
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
