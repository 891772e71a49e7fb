"""Generalised canonical correlation analysis, with missing words (Rastogi, Van Durme & Arora 2015)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.combination.joint_space import Floats, JointSpace, Words, join_spaces, powers, resolve_dim
from stillvec.numerics import principal_axes
from stillvec.registry import check_least
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Gcca:
    """The `G` closest to linear maps of all spaces: `min Σ_s ‖K_s (G - X_s U_s)‖²`, `Gᵀ (Σ K_s) G = I`.

    `K_s` is 1 for the words that space `s` has. In closed form: with the `A_s = X_s (X_sᵀ X_s + r)^-½` side by side
    and `k` the number of spaces that have a word, `k^-½ A = U S Vᵀ` and `G = k^-½ U`; that is, the mean of the
    whitened vectors of a word over the spaces that have it, rotated.
    """

    SUMMARY: ClassVar[str] = "what linear maps of all spaces agree on"
    PAPERS: ClassVar[tuple[str, ...]] = ("rastogi-2015",)

    dim: int | None = None  # None: the largest dimension of the spaces
    ridge: float = 1e-4  # r, as a share of the mean variance
    power: float = 0.0  # G S^power; above 0 emphasizes directions that the spaces agree on
    center: bool = True
    words: Words = "union"

    def __call__(self, *spaces: WordVectors) -> WordVectors:
        check_least(self, ridge=0)
        both = join_spaces(spaces, self.words)
        dim = resolve_dim(self.dim, both.dims)
        means = [np.zeros(width) for width in both.dims] if not self.center else _means(both)
        whitening = []
        for gram in _grams(both, means):
            values, axes = principal_axes(gram)
            whitening.append(np.asarray((axes * powers(values + self.ridge * values.mean(), -0.5)) @ axes.T))
        gram = np.zeros((sum(both.dims),) * 2)
        for _, parts, has in both.blocks():
            white = _whiten(parts, has, means, whitening) / np.sqrt(has.sum(0))[:, None]
            gram += white.T @ white
        squares, axes = principal_axes(gram)
        axes = (axes * powers(squares, (self.power - 1) / 2))[:, :dim]
        matrix = both.empty(dim)
        scale = np.sqrt(len(both.vocabulary))  # norms near one for any number of words
        for rows, parts, has in both.blocks():
            matrix[rows] = scale * (_whiten(parts, has, means, whitening) @ axes) / has.sum(0)[:, None]
        return both.vectors(matrix)


def _means(both: JointSpace) -> list[Floats]:
    """The mean vector of each space."""
    sums = [np.zeros(width) for width in both.dims]
    for _, parts, _ in both.blocks():
        sums = [total + part.sum(0) for total, part in zip(sums, parts, strict=True)]
    counts = (both.rows >= 0).sum(1)
    return [total / max(int(count), 1) for total, count in zip(sums, counts, strict=True)]


def _grams(both: JointSpace, means: list[Floats]) -> list[Floats]:
    grams = [np.zeros((width, width)) for width in both.dims]
    for _, parts, has in both.blocks():
        for gram, part, known, mean in zip(grams, parts, has, means, strict=True):
            centred = part[known] - mean
            gram += centred.T @ centred
    return grams


def _whiten(parts: list[Floats], has: NDArray[np.bool_], means: list[Floats], whitening: list[Floats]) -> Floats:
    """The whitened parts side by side (b, ΣD), zero where a space lacks the word."""
    spaces = zip(parts, has, means, whitening, strict=True)
    return np.hstack([((part - mean) * known[:, None]) @ white for part, known, mean, white in spaces])
