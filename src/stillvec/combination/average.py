"""Averaging without alignment (Coates & Bollegala 2018)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stillvec.combination.joint_space import Words, join_spaces, resolve_weights
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Average:
    """The weighted mean of the unit vectors of a word over the spaces that have it; narrow spaces are zero-padded.

    It works because vectors of different spaces are nearly orthogonal.
    """

    SUMMARY: ClassVar[str] = "the mean of its vectors in all spaces"
    PAPERS: ClassVar[tuple[str, ...]] = ("coates-2018",)

    weights: tuple[float, ...] = ()  # one per space; empty: equal
    unit: bool = True
    words: Words = "union"

    def __call__(self, *spaces: WordVectors) -> WordVectors:
        both = join_spaces(spaces, self.words)
        weights = np.array(resolve_weights(self.weights, len(spaces)))
        matrix = both.empty(max(both.dims))
        for rows, parts, has in both.blocks(unit=self.unit):
            shares = weights @ has  # (b,)
            shares = np.where(shares > 0, shares, 1)[:, None]
            for weight, part in zip(weights, parts, strict=True):
                matrix[rows, : part.shape[1]] += weight * part / shares
        return both.vectors(matrix)
