"""Selection of dimensions: some columns of the table, as they are; unlike `pca`, nothing is turned or centred.

Kept are those of the largest variance. With development pairs, dimensions go in rounds, a sixteenth of what is left at
a time: those without which cosines order the pairs best (backward elimination by Spearman's ρ, the mean over the
files). What is chosen so is judged on other pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.numerics import column_variances, spearman
from stillvec.refinement.pair_correlation import RatedPairs, known_pairs
from stillvec.vectors import WordVectors

_LEAST = 20  # pairs that order anything
_AT_ONCE = 16  # the share of dimensions that goes in a round: one in so many

Array = NDArray[Any]


@dataclass(frozen=True)
class SelectDims:
    SUMMARY: ClassVar[str] = "a selection of the dimensions"

    dim: int
    pairs: tuple[str, ...] = ()  # files, or folders of them: word, word, number

    def __call__(self, vectors: WordVectors) -> WordVectors:
        if not 1 <= self.dim <= vectors.dim:
            raise UsageError(f"Of {vectors.dim} dimensions {self.dim} cannot be kept; give 1 to {vectors.dim}.")
        kept = np.sort(self._chosen(vectors))
        return vectors.with_matrix(np.take(vectors.matrix, kept, axis=1))

    def _chosen(self, vectors: WordVectors) -> Array:
        order = np.argsort(-column_variances(vectors.matrix), kind="stable")  # (D,)
        if not self.pairs:
            return order[: self.dim]
        tables = [_Table(vectors, pairs) for pairs in known_pairs(vectors.vocabulary, self.pairs, _LEAST)]
        while len(order) > self.dim:
            scores = np.mean([table.without_each(order) for table in tables], axis=0)  # (d,)
            count = min(len(order) - self.dim, max(1, len(order) // _AT_ONCE))
            gone = np.lexsort((-np.arange(len(order)), -scores.round(12)))[:count]  # of two alike, the lesser variance
            order = np.delete(order, gone)
        return order


class _Table:
    """What each dimension adds to the dot product and the squares of each pair of one file."""

    def __init__(self, vectors: WordVectors, pairs: RatedPairs) -> None:
        x, y = (np.asarray(vectors.matrix[rows], np.float64).T for rows in (pairs.left, pairs.right))
        self.dots, self.left, self.right, self.gold = x * y, x * x, y * y, pairs.gold  # (D, n)

    def without_each(self, kept: Array) -> Array:
        """ρ (d,) when one of the kept dimensions goes."""
        dots, left, right = (part[kept].sum(0) - part[kept] for part in (self.dots, self.left, self.right))
        lengths = np.sqrt(np.maximum(left, 0) * np.maximum(right, 0))
        cosines = np.divide(dots, lengths, out=np.zeros_like(dots), where=lengths > 0).round(12)
        return np.asarray(spearman(cosines, np.broadcast_to(self.gold, cosines.shape)))
