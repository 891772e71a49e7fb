"""Approximate nearest neighbours by HNSW (Malkov & Yashunin 2018), from `usearch`, over unit vectors in half precision.

The index only proposes candidates, which are scored again with the vectors themselves: cosines are always exact, and a
neighbour can only be missed. The share found (recall) is measured when the index is built.
"""

import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.numerics import iterate_blocks, unit_rows
from stillvec.registry import require
from stillvec.vectors import WordVectors

_BLOCK_ROWS = 1024  # added between two checks for a stop
_N_SAMPLES = 100  # words whose neighbours are compared
_K = 10  # of recall@10
_OVERSAMPLING = 3  # candidates per requested neighbour


class ApproximateIndex:
    """An index of the rows that are not zero; `build` fills it and measures its recall."""

    def __init__(self, vectors: WordVectors, *, seed: int = 0) -> None:
        self.vectors = vectors
        self.seed = seed
        self.recall: float | None = None
        self._lock = threading.Lock()  # concurrent searches would share usearch's scratch memory
        usearch = require("usearch.index", "serve", "Approximate search")
        self._index: Any = usearch.Index(ndim=vectors.dim, metric="cos", dtype="f16", connectivity=32)

    def build(self, is_stopped: Callable[[], bool] = lambda: False) -> bool:
        """Add all rows and measure recall; False if stopped before the end."""
        threads = max(1, (os.cpu_count() or 1) // 2)  # the others answer requests meanwhile
        for rows, block in iterate_blocks(self.vectors.matrix, np.float32, _BLOCK_ROWS):
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
        cosines = unit_rows(self.vectors.matrix[rows], np.float32) @ unit  # (C,)
        best = np.lexsort((rows, -cosines))
        pairs = zip(rows[best].tolist(), cosines[best].tolist(), strict=True)
        return [(row, cosine) for row, cosine in pairs if row not in exclude][:k]

    def _measure_recall(self, is_stopped: Callable[[], bool]) -> float | None:
        """recall@10: the share of the exact neighbours of sampled words that the index finds; None if stopped."""
        vectors, words = self.vectors, self.vectors.words
        sample = np.random.default_rng(self.seed).permutation(len(words))[:_N_SAMPLES].tolist()
        n_hits = n_exact = 0
        for row in sample:
            if is_stopped():
                return None
            query = vectors[words[row]]
            if not query.any():
                continue
            exact = {word for word, _ in vectors.nearest(words[row], _K) if vectors[word].any()}
            near = {words[other] for other, _ in self.nearest(query, _K, frozenset([row]))}
            n_hits += len(exact & near)
            n_exact += len(exact)
        return n_hits / n_exact if n_exact else 1.0
