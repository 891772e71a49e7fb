"""A whole folder in at most so many bytes: int8 if it fits, else fewer dimensions whose parts are shared by words.

The candidates are product codes (`quantize`) after principal components (`pca`), each with as many bytes per word as
fit. The one that keeps most of the ten nearest neighbours, among a sample of words, is used. No labels are needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from stillvec.errors import UsageError
from stillvec.refinement.pca import Pca
from stillvec.refinement.quantize import Quantize
from stillvec.refinement.steps import Step, measure_neighbours
from stillvec.registry import check_positive
from stillvec.vectors import WordVectors

_RESERVED = 32_000  # bytes for the manifest, the model card and headers
_DIMENSIONS = (384, 256, 192, 128, 96, 64, 48, 32, 16)
_CENTRE_BYTES = 4 * 256  # per dimension, of product codes
_SAMPLE = 4096  # words that candidates are compared on


@dataclass(frozen=True)
class Shrink:
    SUMMARY: ClassVar[str] = "dimensions and codes chosen for a given size"
    PAPERS: ClassVar[tuple[str, ...]] = ("jegou-2011",)

    kilobytes: int = 1000  # of the folder, with its words
    seed: int = 0

    def __post_init__(self) -> None:
        check_positive(self, "kilobytes")

    def __call__(self, vectors: WordVectors) -> WordVectors:
        for step, _ in self.choose(vectors):
            vectors = step(vectors)
        return vectors

    def choose(self, vectors: WordVectors) -> Iterator[tuple[Step, dict[str, Any]]]:
        """The steps that give the size."""
        n_bytes = 1000 * self.kilobytes - _RESERVED - _count_bytes(vectors)
        if len(vectors) * (vectors.dim + 4) <= n_bytes:
            yield Quantize("int8"), {"chosen_by": "shrink"}
            return
        kept = {steps: self._keep(vectors, steps) for steps in self._candidates(vectors, n_bytes)}
        if not kept:
            least = len(vectors) + _CENTRE_BYTES * min(vectors.dim, *_DIMENSIONS)
            needed = 1000 * self.kilobytes - n_bytes + least
            got = f"{len(vectors):,} words, which need at least {needed // 1000 + 1:,}"
            cure = "give more kilobytes or fewer words"
            raise UsageError.expected(f"words that fit into {self.kilobytes:,} kilobytes", got, cure=cure)
        best = max(kept, key=lambda steps: kept[steps])
        for step in best:
            yield step, {"chosen_by": "shrink", "neighbours_kept": round(kept[best], 4)}

    def _candidates(self, vectors: WordVectors, n_bytes: int) -> Iterator[tuple[Step, ...]]:
        """Dimensions with as many parts as fit; less than a part per sixteen dimensions is not tried if others fit."""
        dims = [vectors.dim, *(dim for dim in _DIMENSIONS if dim < vectors.dim)]
        parts = {dim: min(dim, (n_bytes - _CENTRE_BYTES * dim) // len(vectors)) for dim in dims}
        fitting = {dim: count for dim, count in parts.items() if count >= 1}
        useful = {dim: count for dim, count in fitting.items() if 16 * count >= dim}
        for dim, count in (useful or fitting).items():
            quantize = Quantize("pq", parts=count, seed=self.seed)
            yield (Pca(dim), quantize) if dim < vectors.dim else (quantize,)

    def _keep(self, vectors: WordVectors, steps: tuple[Step, ...]) -> float:
        """The share of the nearest neighbours that the steps keep, learnt and measured on a sample."""
        rows = slice(None, None, max(1, len(vectors) // _SAMPLE))
        sample = WordVectors(vectors.words[rows], np.asarray(vectors.matrix[rows], np.float32))
        return measure_neighbours(sample, reduce(lambda given, step: step(given), steps, sample))["neighbours kept"]


def _count_bytes(vectors: WordVectors) -> int:
    """Of the words and counts, a line each."""
    counts = sum(map(len, map(str, vectors.vocabulary.counts.tolist())))
    return sum(len(word.encode("utf-8", "surrogatepass")) + 2 for word in vectors.words) + counts
