"""Selection of dimensions: columns of the matrix, unchanged; unlike `pca`, without rotation or centring.

By default those of the largest variance. With development pairs, backward elimination by Spearman's ρ (the mean over
the files): each round removes the sixteenth of the remaining dimensions whose removal gives the best ρ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.lexicons import read_rated_pairs
from stillvec.numerics import column_variances, spearman
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

_LEAST = 20  # pairs per file
_ROUND_SHARE = 16  # one in 16 dimensions is removed per round

Array = NDArray[Any]


@dataclass(frozen=True)
class RatedPairs:
    """The pairs of one file whose words are known."""

    left: Array  # rows (n,)
    right: Array  # rows (n,)
    gold: Array  # human ratings (n,)


def read_known_pairs(vocabulary: Vocabulary, places: Sequence[str], least: int) -> list[RatedPairs]:
    """The pairs of each file that has at least `least` pairs of known words; `places` are files or folders."""
    usable, row = [], vocabulary.row
    for file in [file for place in places for file in read_rated_pairs(place).values()]:
        known = [(a, b, s) for x, y, s in file if (a := row(x)) is not None and (b := row(y)) is not None]
        if len(known) >= least:
            usable.append(RatedPairs(*(np.array(column) for column in zip(*known, strict=True))))
    if not usable:
        where = f"pairs {', '.join(places)}"
        raise UsageError.expected(f"a file with {least} pairs of known words", "fewer", where=where)
    return usable


@dataclass(frozen=True)
class SelectDims:
    SUMMARY: ClassVar[str] = "a selection of the dimensions"

    dim: int
    pairs: tuple[str, ...] = ()  # files or folders of files: word, word, number

    def __call__(self, vectors: WordVectors) -> WordVectors:
        if not 1 <= self.dim <= vectors.dim:
            raise UsageError.expected(f"1 to {vectors.dim}", self.dim, where="dim of select_dims")
        return vectors.with_matrix(np.take(vectors.matrix, np.sort(self._select(vectors)), axis=1))

    def _select(self, vectors: WordVectors) -> Array:
        order = np.argsort(-column_variances(vectors.matrix), kind="stable")  # (D,)
        if not self.pairs:
            return order[: self.dim]
        tables = [_Table(vectors, pairs) for pairs in read_known_pairs(vectors.vocabulary, self.pairs, _LEAST)]
        while len(order) > self.dim:
            scores = np.mean([table.without_each(order) for table in tables], axis=0)  # (d,)
            n_removed = min(len(order) - self.dim, max(1, len(order) // _ROUND_SHARE))
            worst = np.lexsort((-np.arange(len(order)), -scores.round(12)))[:n_removed]  # ties: the lower variance
            order = np.delete(order, worst)
        return order


class _Table:
    """Contribution of each dimension to the dot products and squared norms of the pairs of one file."""

    def __init__(self, vectors: WordVectors, pairs: RatedPairs) -> None:
        x, y = (np.asarray(vectors.matrix[rows], np.float64).T for rows in (pairs.left, pairs.right))
        self.dots, self.left, self.right, self.gold = x * y, x * x, y * y, pairs.gold  # (D, n)

    def without_each(self, dims: Array) -> Array:
        """ρ (d,) after removing one of the dimensions `dims` (d,)."""
        dots, left, right = (part[dims].sum(0) - part[dims] for part in (self.dots, self.left, self.right))
        lengths = np.sqrt(np.maximum(left, 0) * np.maximum(right, 0))
        cosines = np.divide(dots, lengths, out=np.zeros_like(dots), where=lengths > 0).round(12)
        return np.asarray(spearman(cosines, np.broadcast_to(self.gold, cosines.shape)))
