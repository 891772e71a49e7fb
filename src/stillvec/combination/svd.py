"""The first singular directions of the concatenation (Yin & Schütze 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stillvec.combination.joint_space import Words, checked_dim, checked_weights, joined, powers
from stillvec.numerics import principal_axes
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Svd:
    """`C = U S Vᵀ`, `C` the concatenation of vectors at length one; a word is its row of `U S^power`, cut to `dim`.

    At power 1 this is the concatenation in fewer dimensions at the least squared loss; the paper takes `U`, power 0. A
    word that a space lacks has zeros in that part of `C`, as in `concat`.
    """

    SUMMARY: ClassVar[str] = "the first singular directions of its vectors in all spaces"
    PAPERS: ClassVar[tuple[str, ...]] = ("yin-2016",)

    dim: int | None = None  # none: as many as the widest space has
    power: float = 1.0
    weights: tuple[float, ...] = ()  # one a space; none: all alike
    words: Words = "union"

    def __call__(self, *spaces: WordVectors) -> WordVectors:
        both = joined(spaces, self.words)
        dim = checked_dim(self.dim, both.dims)
        weights = np.repeat(checked_weights(self.weights, len(spaces)), both.dims)  # (ΣD,)
        gram = np.zeros((len(weights), len(weights)))
        for _, parts, _ in both.blocks():
            side_by_side = np.hstack(parts) * weights
            gram += side_by_side.T @ side_by_side
        squares, axes = principal_axes(gram)
        axes = (axes * powers(squares, (self.power - 1) / 2))[:, :dim]  # C V = U S
        matrix = both.empty(dim)
        for some, parts, _ in both.blocks():
            matrix[some] = (np.hstack(parts) * weights) @ axes
        return both.vectors(matrix)
