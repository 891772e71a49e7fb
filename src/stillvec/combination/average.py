"""The average of spaces that were never aligned, frustratingly easy and often good (Coates & Bollegala 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stillvec.combination.joint_space import Words, checked_weights, joined
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Average:
    """The weighted mean of a word's vectors, each at length one; narrow spaces are filled up with zeros on the right.

    It works because vectors of different spaces are nearly orthogonal. A word that a space lacks is the mean of what
    the others say.
    """

    SUMMARY: ClassVar[str] = "the mean of its vectors in all spaces"
    PAPERS: ClassVar[tuple[str, ...]] = ("coates-2018",)

    weights: tuple[float, ...] = ()  # one a space; none: all alike
    unit: bool = True
    words: Words = "union"

    def __call__(self, *spaces: WordVectors) -> WordVectors:
        both = joined(spaces, self.words)
        weights = np.array(checked_weights(self.weights, len(spaces)))
        matrix = both.empty(max(both.dims))
        for some, parts, has in both.blocks(unit=self.unit):
            shares = weights @ has  # (b,)
            shares = np.where(shares > 0, shares, 1)[:, None]
            for weight, part in zip(weights, parts, strict=True):
                matrix[some, : part.shape[1]] += weight * part / shares
        return both.vectors(matrix)
