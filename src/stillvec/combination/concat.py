"""Concatenation: the vectors of a word side by side (Yin & Schütze 2016)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stillvec.combination.joint_space import Words, join_spaces, resolve_weights
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Concat:
    """`[w₁ x₁, w₂ x₂, …]`, each `x` normalized first: cosines are means of the cosines, weighted by `w²`.

    A word that a space lacks has zeros there, which makes its cosines smaller.
    """

    SUMMARY: ClassVar[str] = "the concatenation of its vectors in all spaces"
    PAPERS: ClassVar[tuple[str, ...]] = ("yin-2016",)

    weights: tuple[float, ...] = ()  # one per space; empty: equal
    unit: bool = True  # false: a space of long vectors outweighs the others
    words: Words = "union"

    def __call__(self, *spaces: WordVectors) -> WordVectors:
        both = join_spaces(spaces, self.words)
        weights = resolve_weights(self.weights, len(spaces))
        matrix = both.empty(sum(both.dims))
        for rows, parts, _ in both.blocks(unit=self.unit):
            matrix[rows] = np.hstack([weight * part for weight, part in zip(weights, parts, strict=True)])
        return both.vectors(matrix)
