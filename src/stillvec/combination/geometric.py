"""Geometric meta-embeddings: spaces rotated onto one another and scaled by a metric (Jawanpuria et al. 2020).

For `X`, `Z` (one row per word) the objective `‖X W Zᵀ - I‖² + C ‖W‖²` is convex in `W = Uᵀ B V`, and any `W` has this
form by its singular value decomposition. With `XᵀX = Q Λ Qᵀ` and `ZᵀZ = R M Rᵀ` the minimum is

    W = Q [ (Qᵀ XᵀZ R) / (λ μᵀ + C) ] Rᵀ

C → 0 whitens both sides; C → ∞ gives `W ∝ XᵀZ`. The best C is in between and grows with the squared number of words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.combination.joint_space import Floats, JointSpace, Words, join_spaces
from stillvec.errors import UsageError, VocabularyError
from stillvec.numerics import unit_rows
from stillvec.vectors import WordVectors

_HELD_OUT = 4096  # words at most, to select the ridge
_GRID = 10.0 ** np.arange(-2, 4.01, 0.5)  # times the median of λ μ
_RETRIEVED = 1024  # held-out words for retrieval


@dataclass(frozen=True)
class Geometric:
    """Latent vectors `B^½ U x` and `B^½ V z` normalized, then averaged or concatenated.

    Orthogonal `U`, `V` and the positive definite `B` minimise `‖Xᵀ Uᵀ B V Z - I‖² + ridge ‖B‖²` over the words of both
    spaces: a word should be similar to itself and to no other. The minimum has a closed form (above). Each
    further space is fitted to the mean of those before it, in the order given. The latent space has the dimension of
    the narrowest space, or with rotations only of the widest. A missing word gets the mean of the others.
    """

    SUMMARY: ClassVar[str] = "its vectors in all spaces, rotated onto one another and scaled by a metric"
    PAPERS: ClassVar[tuple[str, ...]] = ("jawanpuria-2020",)

    output: Literal["average", "concat"] = "average"
    metric: bool = True  # false: rotations only, B = I
    ridge: float | Literal["auto"] = "auto"  # C of the paper; auto: selected on held-out words
    unit: bool = True  # normalize rows before fitting
    words: Words = "union"

    def __post_init__(self) -> None:
        if self.ridge != "auto" and not self.ridge > 0:
            raise UsageError.expected("a number above 0 or 'auto'", self.ridge, where="ridge")

    def __call__(self, *spaces: WordVectors) -> WordVectors:
        both = join_spaces(spaces, self.words)
        maps = self.fit(both)
        width = maps[0].shape[1]
        matrix = both.empty(width * (len(spaces) if self.output == "concat" else 1))
        for rows, parts, has in both.blocks(unit=self.unit):
            mean, latents = _mean_latent(parts, has, maps)
            if self.output == "concat":
                filled = [np.where(known[:, None], latent, mean) for latent, known in zip(latents, has, strict=True)]
                matrix[rows] = np.hstack(filled)
            else:
                matrix[rows] = mean
        return both.vectors(matrix)

    def fit(self, both: JointSpace) -> list[Floats]:
        """The map (D_s, k) of each space into the latent space."""
        maps = [np.eye(both.dims[0])]
        for number in range(1, len(both.spaces)):
            left, right = self._pair(sum_shared(both, maps, number, self.unit), number)
            maps = [*(space_map @ left for space_map in maps), right]
        return maps

    def _pair(self, shared: Shared, number: int) -> tuple[Floats, Floats]:
        if not shared.n_words:
            message = f"Set {number + 1} of the vectors has no word in common with the sets before it."
            raise VocabularyError(message, code="no-common-words")
        if not self.metric:
            return latent_maps(shared.cross, metric=False)
        ridge = ridge_from(shared) if self.ridge == "auto" else self.ridge
        return latent_maps(Spectra(shared).solution(ridge), metric=True)


def _mean_latent(parts: list[Floats], has: NDArray[np.bool_], maps: list[Floats]) -> tuple[Floats, list[Floats]]:
    """The mean (b, k) of the latent vectors of the first `len(maps)` spaces, and these vectors."""
    latents = [unit_rows(part @ space_map) for part, space_map in zip(parts, maps, strict=False)]  # (b, k)
    known = np.maximum(has[: len(maps)].sum(0), 1)[:, None]
    return np.asarray(sum(latents) / known), latents


def sum_shared(both: JointSpace, maps: list[Floats], number: int, unit: bool) -> Shared:
    """Sums over the words that space `number` shares with those before it; every other word is held out."""
    width = maps[0].shape[1], both.dims[number]
    shared = Shared(np.zeros((width[0],) * 2), np.zeros((width[1],) * 2), np.zeros(width))
    half = Shared(np.zeros_like(shared.left), np.zeros_like(shared.right), np.zeros_like(shared.cross))
    rest: list[tuple[Floats, Floats]] = []
    for x, z in _pairs(both, maps, number, unit):
        shared += (x, z)
        half += (x[::2], z[::2])
        if sum(len(rows) for rows, _ in rest) < _HELD_OUT:
            rest.append((x[1::2][:_HELD_OUT], z[1::2][:_HELD_OUT]))
    shared.half = half
    shared.held_out = (np.vstack([x for x, _ in rest]), np.vstack([z for _, z in rest])) if rest else None
    return shared


def _pairs(both: JointSpace, maps: list[Floats], number: int, unit: bool) -> Iterator[tuple[Any, Any]]:
    """Vectors of the shared words: the mean of the spaces before, and space `number`."""
    for _, parts, has in both.blocks(unit=unit):
        common = has[:number].any(0) & has[number]
        if common.any():
            before = parts[0] if number == 1 else _mean_latent(parts, has, maps)[0]
            yield before[common], parts[number][common]


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
