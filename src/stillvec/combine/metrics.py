"""The closed form behind geometric meta-embeddings, and how its ridge is chosen from the data.

For `X`, `Z` (a row a word) the objective `‖X W Zᵀ - I‖² + C ‖W‖²` is convex in `W = Uᵀ B V`, and any `W` has such a
form, its singular value decomposition. With `XᵀX = Q Λ Qᵀ` and `ZᵀZ = R M Rᵀ` the minimum is

    W = Q [ (Qᵀ XᵀZ R) / (λ μᵀ + C) ] Rᵀ

C → 0 whitens both sides; C → ∞ gives `W ∝ XᵀZ`. The best lies between, and grows with the square of the words.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from stillvec.combine.joining import Floats, unit_rows

_GRID = 10.0 ** np.arange(-2, 4.01, 0.5)  # times the median of λ μ
_PAIRS = 10_000


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
    """The ridge with which each space, seen through the metric, best foretells the cosines of the other as it came.

    Fitted on every other word, judged on the rest by Spearman's ρ over random pairs. The noise of the two spaces is
    not shared, so a metric that keeps noise of one foretells the other less well, and so does one that drops what both
    know.
    """
    half, held = shared.half, shared.held
    if half is None or held is None or len(held[0]) < 8 or not half.words:
        return Spectra(shared).scale()
    spectra = Spectra(half)
    scale = spectra.scale()
    first, second = np.random.default_rng(0).integers(0, len(held[0]), (2, _PAIRS))
    apart = first != second
    first, second = first[apart], second[apart]

    def ranks(rows: Floats) -> Floats:
        rows = unit_rows(rows)
        return np.asarray(rankdata(np.einsum("nd,nd->n", rows[first], rows[second])))

    truth = [ranks(rows) for rows in held]
    scores = []
    for share in _GRID.tolist():
        maps = latent_maps(spectra.solution(share * scale), metric=True)
        seen = [ranks(rows @ each) for rows, each in zip(held, maps, strict=True)]
        scores.append(_correlation(seen[0], truth[1]) + _correlation(seen[1], truth[0]))
    return float(_GRID[int(np.argmax(scores))] * scale * (shared.words / half.words) ** 2)


def _correlation(x: Floats, y: Floats) -> float:
    x, y = x - x.mean(), y - y.mean()
    length = float(np.linalg.norm(x) * np.linalg.norm(y))
    return float(x @ y) / length if length else 0.0
