"""Geometric meta-embeddings: spaces rotated onto one another and scaled by a metric (Jawanpuria et al. 2020)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.combination.joint_space import Floats, JointSpace, Words, join_spaces
from stillvec.combination.metric_learning import Shared, Spectra, latent_maps, ridge_from
from stillvec.errors import UsageError, VocabularyError
from stillvec.numerics import unit_rows
from stillvec.vectors import WordVectors

_HELD_OUT = 4096  # words at most, to select the ridge


@dataclass(frozen=True)
class Geometric:
    """Latent vectors `B^½ U x` and `B^½ V z` normalized, then averaged or concatenated.

    Orthogonal `U`, `V` and the positive definite `B` minimise `‖Xᵀ Uᵀ B V Z - I‖² + ridge ‖B‖²` over the words of both
    spaces: a word should be similar to itself and to no other. The minimum has a closed form (`metric_learning`). Each
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
            message = f"Vectors number {number + 1} share no word with those before."
            raise VocabularyError(message, code="no-common-words")
        if not self.metric:
            return latent_maps(shared.cross, metric=False)
        ridge = ridge_from(shared) if self.ridge == "auto" else self.ridge
        return latent_maps(Spectra(shared).solution(ridge), metric=True)


def _mean_latent(
    parts: Sequence[Floats], has: NDArray[np.bool_], maps: Sequence[Floats]
) -> tuple[Floats, list[Floats]]:
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
