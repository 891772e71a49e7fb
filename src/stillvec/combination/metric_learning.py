"""The closed form of geometric meta-embeddings, and the selection of its ridge.

For `X`, `Z` (one row per word) the objective `‖X W Zᵀ - I‖² + C ‖W‖²` is convex in `W = Uᵀ B V`, and any `W` has this
form by its singular value decomposition. With `XᵀX = Q Λ Qᵀ` and `ZᵀZ = R M Rᵀ` the minimum is

    W = Q [ (Qᵀ XᵀZ R) / (λ μᵀ + C) ] Rᵀ

C → 0 whitens both sides; C → ∞ gives `W ∝ XᵀZ`. The best C is in between and grows with the squared number of words.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stillvec.combination.joint_space import Floats
from stillvec.numerics import unit_rows

_GRID = 10.0 ** np.arange(-2, 4.01, 0.5)  # times the median of λ μ
_RETRIEVED = 1024  # held-out words for retrieval


@dataclass
class Shared:
    """Sums over the shared words of two spaces."""

    left: Floats  # XᵀX (a, a)
    right: Floats  # ZᵀZ (b, b)
    cross: Floats  # XᵀZ (a, b)
    n_words: int = 0
    half: Shared | None = None  # sums over every other word
    held_out: tuple[Floats, Floats] | None = None  # vectors of the other words

    def __iadd__(self, rows: tuple[Floats, Floats]) -> Shared:
        x, z = rows
        self.left += x.T @ x
        self.right += z.T @ z
        self.cross += x.T @ z
        self.n_words += len(x)
        return self


class Spectra:
    """The eigenvectors of both sides, computed once for all ridges."""

    def __init__(self, shared: Shared) -> None:
        left, self.q = np.linalg.eigh(shared.left)
        right, self.r = np.linalg.eigh(shared.right)
        self.products = np.maximum(np.outer(left, right), 0)  # λ μ (a, b)
        self.cross = self.q.T @ shared.cross @ self.r

    def solution(self, ridge: float) -> Floats:
        """W (a, b)."""
        return np.asarray(self.q @ (self.cross / (self.products + ridge)) @ self.r.T)

    def scale(self) -> float:
        """The median of λ μ, over directions with variance."""
        live = self.products[self.products > 1e-12 * self.products.max()]
        return float(np.median(live)) if len(live) else 1.0


def latent_maps(solution: Floats, *, metric: bool) -> tuple[Floats, Floats]:
    """`W = P Σ Rᵀ` → `P Σ^½` (a, k) and `R Σ^½` (b, k); without the metric, rotations into the wider space."""
    p, values, rt = np.linalg.svd(solution, full_matrices=not metric)
    if metric:
        root = np.sqrt(values / max(values[0], np.finfo(np.float64).tiny))
        return p * root, rt.T * root
    wider = max(len(p), len(rt))
    return np.pad(p, ((0, 0), (0, wider - len(p)))), np.pad(rt.T, ((0, 0), (0, wider - len(rt))))


def ridge_from(shared: Shared) -> float:
    """The ridge with the best retrieval of held-out words across the two spaces.

    Fitted on every other word; scored on some of the rest by the mean reciprocal rank, in both directions, of the
    latent vector of a word among those of the other space.
    """
    half, held_out = shared.half, shared.held_out
    if half is None or held_out is None or len(held_out[0]) < 8 or not half.n_words:
        return Spectra(shared).scale()
    spectra = Spectra(half)
    scale = spectra.scale()
    chosen = np.linspace(0, len(held_out[0]) - 1, min(_RETRIEVED, len(held_out[0]))).astype(int)
    scores = []
    for share in _GRID.tolist():
        maps = latent_maps(spectra.solution(share * scale), metric=True)
        x, z = (unit_rows(rows[chosen] @ latent) for rows, latent in zip(held_out, maps, strict=True))
        cosines = x @ z.T  # (n, n)
        scores.append(_reciprocal_rank(cosines) + _reciprocal_rank(cosines.T))
    good = np.flatnonzero(np.array(scores) >= max(scores) - 1e-3)  # the middle of nearly equal ones
    return float(_GRID[good[len(good) // 2]] * scale * (shared.n_words / half.n_words) ** 2)


def _reciprocal_rank(cosines: Floats) -> float:
    """Mean reciprocal rank of the diagonal in its rows."""
    return float((1 / (1 + (cosines > np.diag(cosines)[:, None]).sum(1))).mean())
