"""Approximate neighbours by small worlds (Malkov & Yashunin 2018), `usearch`'s, over unit vectors in half precision.

The index only proposes: what it proposes is scored again with the vectors themselves, so cosines are always exact, and
only a neighbour can be missed. How many are is measured when the index is built.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.registry import require
from stillvec.vectors import WordVectors

_ROWS = 1024  # added at once; between them a stop is heard
_SAMPLE = 100  # words whose neighbours are compared
_AMONG = 10  # neighbours of each: recall@10
_PROPOSED = 3  # times as many as are asked for


class Approximate:
    """An index over the rows that are not zero; `build` fills it and says its recall."""

    def __init__(self, vectors: WordVectors, *, seed: int = 0) -> None:
        self.vectors = vectors
        self.seed = seed
        self.recall: float | None = None
        self._lock = threading.Lock()  # searches of several threads would share usearch's scratch memory
        usearch = require("usearch.index", "serve", "Approximate search")
        self._index: Any = usearch.Index(ndim=vectors.dim, metric="cos", dtype="f16", connectivity=32)

    def build(self, stopped: Callable[[], bool] = lambda: False) -> bool:
        """Add all rows, then measure; False if it was stopped before."""
        threads = max(1, (os.cpu_count() or 1) // 2)  # the others answer meanwhile
        for first in range(0, len(self.vectors), _ROWS):
            if stopped():
                return False
            rows = np.asarray(self.vectors.matrix[first : first + _ROWS], np.float32)  # (R, D)
            length = np.linalg.norm(rows, axis=1)  # (R,)
            held = np.flatnonzero(length)
            self._index.add(first + held, rows[held] / length[held, None], threads=threads)
        self.recall = self._measured(stopped)
        return self.recall is not None

    def nearest(self, query: NDArray[np.float32], k: int, left_out: frozenset[int]) -> list[tuple[int, float]]:
        """The (row, cosine) of up to `k` rows near a vector that is not zero."""
        unit = query / np.linalg.norm(query)  # (D,)
        wanted = min((k + len(left_out)) * _PROPOSED, len(self._index))
        if not wanted:
            return []
        with self._lock:
            proposed = np.asarray(self._index.search(unit, wanted, threads=1).keys, np.int64)  # (P,)
        rows = np.sort(proposed)  # in the order of the file, which may be memory-mapped
        near = np.asarray(self.vectors.matrix[rows], np.float32)  # (P, D)
        cosines = near @ unit / np.linalg.norm(near, axis=1)  # (P,)
        best = np.lexsort((rows, -cosines))
        pairs = zip(rows[best].tolist(), cosines[best].tolist(), strict=True)
        return [(row, cosine) for row, cosine in pairs if row not in left_out][:k]

    def _measured(self, stopped: Callable[[], bool]) -> float | None:
        """recall@10: of the exact neighbours of some words, the share that the index finds; None if it was stopped."""
        vectors, words = self.vectors, self.vectors.words
        sample = np.random.default_rng(self.seed).permutation(len(words))[:_SAMPLE].tolist()
        found = wanted = 0
        for row in sample:
            if stopped():
                return None
            query = vectors[words[row]]
            if not query.any():
                continue
            exact = {word for word, _ in vectors.nearest(words[row], _AMONG) if vectors[word].any()}
            near = {words[other] for other, _ in self.nearest(query, _AMONG, frozenset([row]))}
            found += len(exact & near)
            wanted += len(exact)
        return found / wanted if wanted else 1.0
