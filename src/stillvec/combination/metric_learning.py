"""The closed form behind geometric meta-embeddings, and how its ridge is chosen from the data.

For `X`, `Z` (a row a word) the objective `‖X W Zᵀ - I‖² + C ‖W‖²` is convex in `W = Uᵀ B V`, and any `W` has such a
form, its singular value decomposition. With `XᵀX = Q Λ Qᵀ` and `ZᵀZ = R M Rᵀ` the minimum is

    W = Q [ (Qᵀ XᵀZ R) / (λ μᵀ + C) ] Rᵀ

C → 0 whitens both sides; C → ∞ gives `W ∝ XᵀZ`. The best lies between, and grows with the square of the words.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stillvec.combination.joint_space import Floats
from stillvec.numerics import unit_rows

_GRID = 10.0 ** np.arange(-2, 4.01, 0.5)  # times the median of λ μ
_JUDGED = 1024  # words that look for themselves


@dataclass
class Shared:
    """Sums over the words of two spaces: all that the closed form needs."""

    left: Floats  # XᵀX (a, a)
    right: Floats  # ZᵀZ (b, b)
    cross: Floats  # XᵀZ (a, b)
    words: int = 0
    half: Shared | None = None  # the same of every other word,
    held: tuple[Floats, Floats] | None = None  # and the vectors of (some of) the rest

    def __iadd__(self, rows: tuple[Floats, Floats]) -> Shared:
        x, z = rows
        self.left += x.T @ x
        self.right += z.T @ z
        self.cross += x.T @ z
        self.words += len(x)
        return self

    def solution(self, ridge: float) -> Floats:
        """W (a, b)."""
        return Spectra(self).solution(ridge)


class Spectra:
    """The eigenvectors of both sides, found once for all ridges."""

    def __init__(self, shared: Shared) -> None:
        left, self.q = np.linalg.eigh(shared.left)
        right, self.r = np.linalg.eigh(shared.right)
        self.products = np.maximum(np.outer(left, right), 0)  # λ μ (a, b)
        self.cross = self.q.T @ shared.cross @ self.r

    def solution(self, ridge: float) -> Floats:
        return np.asarray(self.q @ (self.cross / (self.products + ridge)) @ self.r.T)

    def scale(self) -> float:
        """The median of λ μ, leaving out directions in which nothing lies."""
        live = self.products[self.products > 1e-12 * self.products.max()]
        return float(np.median(live)) if len(live) else 1.0


def latent_maps(solution: Floats, *, metric: bool) -> tuple[Floats, Floats]:
    """`W = P Σ Rᵀ` → `P Σ^½` (a, k) and `R Σ^½` (b, k); without the metric rotations into the wider space."""
    p, values, rt = np.linalg.svd(solution, full_matrices=not metric)
    if metric:
        root = np.sqrt(values / max(values[0], np.finfo(np.float64).tiny))
        return p * root, rt.T * root
    wider = max(len(p), len(rt))
    return np.pad(p, ((0, 0), (0, wider - len(p)))), np.pad(rt.T, ((0, 0), (0, wider - len(rt))))


def ridge_from(shared: Shared) -> float:
    """The ridge with which words that were held out best find themselves in the other space.

    Fitted on every other word, judged on some of the rest by the mean reciprocal rank of a word's latent vector of one
    space among those of the other, both ways: what the objective asks for, of words it has not seen. A metric that
    keeps the noise of one space finds fewer, and so does one that drops what both know or follows what all words share.
    """
    half, held = shared.half, shared.held
    if half is None or held is None or len(held[0]) < 8 or not half.words:
        return Spectra(shared).scale()
    spectra = Spectra(half)
    scale = spectra.scale()
    some = np.linspace(0, len(held[0]) - 1, min(_JUDGED, len(held[0]))).astype(int)
    scores = []
    for share in _GRID.tolist():
        maps = latent_maps(spectra.solution(share * scale), metric=True)
        x, z = (unit_rows(rows[some] @ each) for rows, each in zip(held, maps, strict=True))
        cosines = x @ z.T  # (n, n)
        scores.append(_reciprocal_rank(cosines) + _reciprocal_rank(cosines.T))
    good = np.flatnonzero(np.array(scores) >= max(scores) - 1e-3)  # where nearly all are found, the middle of many
    return float(_GRID[good[len(good) // 2]] * scale * (shared.words / half.words) ** 2)


def _reciprocal_rank(cosines: Floats) -> float:
    """Of the diagonal in its rows, the mean."""
    return float((1 / (1 + (cosines > np.diag(cosines)[:, None]).sum(1))).mean())
