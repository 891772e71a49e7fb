"""Generalised canonical correlation analysis, with words that some spaces lack (Rastogi, Van Durme & Arora 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.combination.joint_space import Floats, Joined, Words, checked_dim, joined, powers
from stillvec.errors import UsageError
from stillvec.numerics import principal_axes
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Gcca:
    """The `G` that linear maps of all spaces come nearest to: `min Σ_s ‖K_s (G - X_s U_s)‖²`, `Gᵀ (Σ K_s) G = I`.

    `K_s` is 1 for the words that space `s` has. In closed form: with `A_s = X_s (X_sᵀ X_s + r)^-½` beside one another
    and `k` the number of spaces that have a word, `k^-½ A = U S Vᵀ` and `G = k^-½ U`; that is, the mean over the spaces
    that have a word of their whitened vectors, turned. A word that a space lacks is the mean of what the others say.
    """

    SUMMARY: ClassVar[str] = "what linear maps of all spaces agree on"
    PAPERS: ClassVar[tuple[str, ...]] = ("rastogi-2015",)

    dim: int | None = None  # none: as many as the widest space has
    ridge: float = 1e-4  # r, as a share of the mean variance: directions of less variance do not count in full
    power: float = 0.0  # of S: G S^power; above 0, what the spaces agree on counts more
    center: bool = True
    words: Words = "union"

    def __call__(self, *spaces: WordVectors) -> WordVectors:
        if self.ridge < 0:
            raise UsageError(f"The ridge is 0 or more, and {self.ridge} came.")
        both = joined(spaces, self.words)
        dim = checked_dim(self.dim, both.dims)
        means = [np.zeros(width) for width in both.dims] if not self.center else _means(both)
        whitening = [self._whitening(gram) for gram in _grams(both, means)]
        gram = np.zeros((sum(both.dims),) * 2)
        for _, parts, has in both.blocks():
            white = _whitened(parts, has, means, whitening) / np.sqrt(has.sum(0))[:, None]
            gram += white.T @ white
        squares, axes = principal_axes(gram)
        axes = (axes * powers(squares, (self.power - 1) / 2))[:, :dim]
        matrix = both.empty(dim)
        scale = np.sqrt(len(both.vocabulary))  # lengths near one, whatever the number of words
        for some, parts, has in both.blocks():
            matrix[some] = scale * (_whitened(parts, has, means, whitening) @ axes) / has.sum(0)[:, None]
        return both.vectors(matrix)

    def _whitening(self, gram: Floats) -> Floats:
        """(Xᵀ X + r)^-½."""
        values, axes = principal_axes(gram)
        ridge = self.ridge * values.mean()
        return np.asarray((axes * powers(values + ridge, -0.5)) @ axes.T)


def _means(both: Joined) -> list[Floats]:
    """The mean of each space over the words it has."""
    sums = [np.zeros(width) for width in both.dims]
    for _, parts, _ in both.blocks():
        sums = [total + part.sum(0) for total, part in zip(sums, parts, strict=True)]
    counts = (both.rows >= 0).sum(1)
    return [total / max(int(count), 1) for total, count in zip(sums, counts, strict=True)]


def _grams(both: Joined, means: list[Floats]) -> list[Floats]:
    grams = [np.zeros((width, width)) for width in both.dims]
    for _, parts, has in both.blocks():
        for gram, part, known, mean in zip(grams, parts, has, means, strict=True):
            centred = part[known] - mean
            gram += centred.T @ centred
    return grams


def _whitened(parts: list[Floats], has: NDArray[np.bool_], means: list[Floats], whitening: list[Floats]) -> Floats:
    """The whitened parts side by side (b, ΣD), zero where a space lacks the word."""
    each = zip(parts, has, means, whitening, strict=True)
    return np.hstack([((part - mean) * known[:, None]) @ white for part, known, mean, white in each])
