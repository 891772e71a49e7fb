"""How often words stand near each other, counted in a stream: what is over the bound goes to disk and is merged.

A pair of words d apart in a sentence counts 1/d, in both orders. Counts are sparse matrices, a run each; runs are
added up a range of rows at a time, and dealt out at random into shares that are trained on one after the other.
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

BOUND = 20_000_000  # counts that are held in memory, about: 8 bytes each, and three times as much while they are added
_WORDS = 500_000  # counted at once


def near(rows: NDArray[np.int32], ends: NDArray[np.int64], window: int, words: int) -> sparse.csr_matrix:
    """The counts of some sentences (V, V)."""
    sentence = np.repeat(np.arange(len(ends), dtype=np.int32), np.diff(ends, prepend=0))
    left, right, weight = [], [], []
    for distance in range(1, min(window, len(rows) - 1) + 1):
        together = np.flatnonzero(sentence[distance:] == sentence[:-distance])
        left.append(rows[together])
        right.append(rows[together + distance])
        weight.append(np.full(len(together), 1 / distance, np.float32))
    places = (np.concatenate(left), np.concatenate(right))
    pairs = sparse.coo_matrix((np.concatenate(weight), places), (words, words))
    pairs.has_canonical_format = True  # so that nothing is sorted: turned over they lie in order, to be added up then
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
        for name, array, kind in (("columns", counts.indices, np.int32), ("counts", counts.data, np.float32)):
            array.astype(kind, copy=False).tofile(path.with_suffix(f".{name}"))
        return cls.open(path, counts.indptr.astype(np.int64))

    @classmethod
    def open(cls, path: Path, starts: NDArray[np.int64]) -> SortedRun:
        size = int(starts[-1])
        if not size:  # nothing can be mapped
            return cls(starts, np.zeros(0, np.int32), np.zeros(0, np.float32))
        columns = np.memmap(path.with_suffix(".columns"), np.int32, "r", shape=(size,))
        return cls(starts, columns, np.memmap(path.with_suffix(".counts"), np.float32, "r", shape=(size,)))

    def held(self) -> SortedRun:
        """The same in memory."""
        return SortedRun(self.starts, np.array(self.columns), np.array(self.counts))

    def rows(self, first: int, last: int) -> sparse.csr_matrix:
        """Some rows, in memory."""
        begin, end = int(self.starts[first]), int(self.starts[last])
        starts = self.starts[first : last + 1] - begin
        shape = (last - first, len(self.starts) - 1)
        return sparse.csr_matrix((np.array(self.counts[begin:end]), np.array(self.columns[begin:end]), starts), shape)


def count_pairs(
    text: EncodedCorpus, window: int, folder: Path, bound: int = BOUND
) -> Generator[int, None, list[SortedRun]]:
    """Runs of counts, which are still to be added up; yields the number of words that have gone by."""
    size = len(text.vocabulary)
    runs: list[SortedRun] = []
    held: Any = None
    passed = 0
    for rows, ends in text.blocks(_WORDS):
        more = near(rows, ends, window, size)
        held = more if held is None else held + more
        if held.nnz > bound:
            runs.append(SortedRun.write(held, folder / f"run-{len(runs)}"))
            held = None
        passed += len(rows)
        yield passed
    if held is not None:
        runs.append(SortedRun.write(held, folder / f"run-{len(runs)}"))
    return runs


def added(runs: Sequence[SortedRun], bound: int = BOUND) -> Iterator[tuple[int, sparse.csr_matrix]]:
    """All counts, (first row, some rows) at a time, no more than the bound of them held but for one row."""
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


def dealt(runs: Sequence[SortedRun], shares: int, folder: Path, seed: int, bound: int = BOUND) -> list[SortedRun]:
    """The counts added up and dealt out at random."""
    if len(runs) == shares == 1:
        return [*runs]
    paths = [folder / f"share-{number}" for number in range(shares)]
    held: list[list[NDArray[np.int64]]] = [[] for _ in paths]  # entries a row, range by range
    choose = np.random.default_rng(seed)
    for path in paths:
        path.with_suffix(".columns").touch()
        path.with_suffix(".counts").touch()
    for _, rows in added(runs, bound):
        share = choose.integers(shares, size=rows.nnz)
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        order = np.argsort(share, kind="stable")  # a row's entries stay together, in their order
        cuts = np.searchsorted(share[order], np.arange(shares + 1))
        for number, path in enumerate(paths):
            mine = order[cuts[number] : cuts[number + 1]]
            held[number].append(np.bincount(row[mine], minlength=rows.shape[0]))
            with open(path.with_suffix(".columns"), "ab") as columns, open(path.with_suffix(".counts"), "ab") as counts:
                columns.write(rows.indices[mine].astype(np.int32).tobytes())
                counts.write(rows.data[mine].astype(np.float32).tobytes())
    starts = [np.concatenate([[0], np.cumsum(np.concatenate(each))]).astype(np.int64) for each in held]
    return [SortedRun.open(path, start) for path, start in zip(paths, starts, strict=True)]
