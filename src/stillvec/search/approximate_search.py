"""Approximate nearest neighbours by HNSW (Malkov & Yashunin 2018), from `usearch`, over unit vectors in half precision.

The index only proposes candidates, which are scored again with the vectors themselves: cosines are always exact, and a
neighbour can only be missed. The share found (recall) is measured when the index is built.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError
from stillvec.numerics import iterate_blocks, top_k, unit_rows
from stillvec.registry import require

_BLOCK_ROWS = 1024  # added between two checks for a stop
_N_SAMPLES = 100  # rows whose neighbours are compared
_K = 10  # of recall@10
_OVERSAMPLING = 3  # candidates per requested neighbour


class ApproximateIndex:
    """An index of the rows of a table (n, D) that are not zero; `build` fills it and measures its recall."""

    def __init__(self, matrix: NDArray[Any], *, seed: int = 0) -> None:
        self.matrix = matrix
        self.seed = seed
        self.recall: float | None = None
        self._lock = threading.Lock()  # concurrent searches would share usearch's scratch memory
        # usearch exports its own C++ library: SciPy's code for text files, loaded after it, fails with std::bad_cast
        importlib.import_module("scipy.io._fast_matrix_market._fmm_core")
        usearch = require("usearch.index", "serve", "Approximate search")
        self._index: Any = usearch.Index(ndim=matrix.shape[1], metric="cos", dtype="f16", connectivity=32)

    @classmethod
    def load(cls, path: Path, matrix: NDArray[Any], recall: float | None) -> ApproximateIndex:
        """Memory-map an index that `save` wrote; the caller has verified the file, since usearch does not."""
        index = cls(matrix)
        try:
            index._index.view(str(path))
        except RuntimeError as error:
            raise FormatError.expected("a graph of usearch", f"another file ({error})", path=path) from None
        n_rows = int(index._index.size and index._index.keys[:].max()) + 1
        if index._index.ndim != matrix.shape[1] or n_rows > len(matrix):
            got = f"rows of {n_rows:,} x {index._index.ndim}"
            raise FormatError.expected(f"a graph of {len(matrix):,} x {matrix.shape[1]}", got, path=path)
        index.recall = recall
        return index

    def save(self, path: Path) -> None:
        self._index.save(str(path))

    def build(self, is_stopped: Callable[[], bool] = lambda: False, threads: int | None = None) -> bool:
        """Add all rows and measure recall; False if stopped before the end."""
        threads = threads or max(1, (os.cpu_count() or 1) // 2)  # the others answer requests meanwhile
        for rows, block in iterate_blocks(self.matrix, np.float32, _BLOCK_ROWS):
            if is_stopped():
                return False
            nonzero = np.flatnonzero(block.any(axis=1))
            self._index.add(rows.start + nonzero, unit_rows(block[nonzero]), threads=threads)
        self.recall = self._measure_recall(is_stopped)
        return self.recall is not None

    def nearest(self, query: NDArray[np.float32], k: int, exclude: frozenset[int]) -> list[tuple[int, float]]:
        """The (row, cosine) of up to `k` rows near a vector that is not zero."""
        unit = unit_rows(query)  # (D,)
        n_candidates = min((k + len(exclude)) * _OVERSAMPLING, len(self._index))
        if not n_candidates:
            return []
        with self._lock:
            candidates = np.asarray(self._index.search(unit, n_candidates, threads=1).keys, np.int64)  # (C,)
        rows = np.sort(candidates)  # in the order of the file, which may be memory-mapped
        cosines = unit_rows(self.matrix[rows], np.float32) @ unit  # (C,)
        best = np.lexsort((rows, -cosines))
        pairs = zip(rows[best].tolist(), cosines[best].tolist(), strict=True)
        return [(row, cosine) for row, cosine in pairs if row not in exclude][:k]

    def _measure_recall(self, is_stopped: Callable[[], bool]) -> float | None:
        """recall@10: the share of the exact neighbours of sampled rows that the index finds; None if stopped."""
        sample = np.random.default_rng(self.seed).permutation(len(self.matrix))[:_N_SAMPLES]
        sample = sample[np.asarray(self.matrix[sample]).any(axis=1)]
        queries = unit_rows(self.matrix[sample], np.float32)  # (S, D)
        exact = self._find_exact(sample, queries, is_stopped)
        if exact is None:
            return None
        n_hits = 0
        for row, query, best in zip(sample.tolist(), queries, exact, strict=True):
            if is_stopped():
                return None
            n_hits += len(best & {other for other, _ in self.nearest(query, _K, frozenset([row]))})
        n_exact = sum(map(len, exact))
        return n_hits / n_exact if n_exact else 1.0

    def _find_exact(
        self, sample: NDArray[np.int64], queries: NDArray[np.float32], is_stopped: Callable[[], bool]
    ) -> list[set[int]] | None:
        """The nearest rows of each sampled row, without itself and zero rows, by brute force."""
        rows = np.zeros((len(sample), 0), np.int64)
        scores = np.zeros((len(sample), 0), np.float32)
        for block, part in iterate_blocks(self.matrix, np.float32, _BLOCK_ROWS):
            if is_stopped():
                return None
            numbers = np.arange(block.start, block.stop)
            cosines = queries @ unit_rows(part).T  # (S, B)
            cosines[(numbers == sample[:, None]) | ~part.any(axis=1)] = -np.inf
            rows = np.hstack([rows, np.broadcast_to(numbers, cosines.shape)])
            scores = np.hstack([scores, cosines])
            best = top_k(scores, _K)
            rows, scores = np.take_along_axis(rows, best, 1), np.take_along_axis(scores, best, 1)
        return [{*row[score > -np.inf].tolist()} for row, score in zip(rows, scores, strict=True)]
