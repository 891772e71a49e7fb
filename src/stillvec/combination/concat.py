"""Concatenation: a word's vectors laid end to end (Yin & Schütze 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stillvec.combination.joint_space import Words, checked_weights, joined
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Concat:
    """`[w₁ x₁, w₂ x₂, …]`, each `x` at length one first, so that cosines are means weighted by `w²` of the cosines.

    A word that a space lacks has zeros there: its cosines come from the spaces that have it, and are smaller.
    """

    SUMMARY: ClassVar[str] = "the concatenation of its vectors in all spaces"
    PAPERS: ClassVar[tuple[str, ...]] = ("yin-2016",)

    weights: tuple[float, ...] = ()  # one a space; none: all alike
    unit: bool = True  # false: lengths as they come, and a space of long vectors outweighs the others
    words: Words = "union"

    def __call__(self, *spaces: WordVectors) -> WordVectors:
        both = joined(spaces, self.words)
        weights = checked_weights(self.weights, len(spaces))
        matrix = both.empty(sum(both.dims))
        for some, parts, _ in both.blocks(unit=self.unit):
            matrix[some] = np.hstack([weight * part for weight, part in zip(weights, parts, strict=True)])
        return both.vectors(matrix)
