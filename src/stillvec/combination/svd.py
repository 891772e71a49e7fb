"""The first singular directions of the concatenation (Yin & Schütze 2016)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stillvec.combination.joint_space import Words, join_spaces, powers, resolve_dim, resolve_weights
from stillvec.numerics import principal_axes
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Svd:
    """`C = U S Vᵀ`, `C` the concatenation of unit vectors; a word is its row of `U S^power`, cut to `dim`.

    Power 1 is the best approximation of the concatenation in `dim` dimensions; the paper uses `U`, power 0. A
    word that a space lacks has zeros in that part of `C`, as in `concat`.
    """

    SUMMARY: ClassVar[str] = "the first singular directions of its vectors in all spaces"
    PAPERS: ClassVar[tuple[str, ...]] = ("yin-2016",)

    dim: int | None = None  # None: the largest dimension of the spaces
    power: float = 1.0
    weights: tuple[float, ...] = ()  # one per space; empty: equal
    words: Words = "union"

    def __call__(self, *spaces: WordVectors) -> WordVectors:
        both = join_spaces(spaces, self.words)
        dim = resolve_dim(self.dim, both.dims)
        weights = np.repeat(resolve_weights(self.weights, len(spaces)), both.dims)  # (ΣD,)
        gram = np.zeros((len(weights), len(weights)))
        for _, parts, _ in both.blocks():
            side_by_side = np.hstack(parts) * weights
            gram += side_by_side.T @ side_by_side
        squares, axes = principal_axes(gram)
        axes = (axes * powers(squares, (self.power - 1) / 2))[:, :dim]  # C V = U S
        matrix = both.empty(dim)
        for rows, parts, _ in both.blocks():
            matrix[rows] = (np.hstack(parts) * weights) @ axes
        return both.vectors(matrix)
