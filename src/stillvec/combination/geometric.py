"""Geometric meta-embeddings: spaces turned towards one another, and seen through a metric (Jawanpuria et al. 2020)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.combination.joint_space import Floats, Joined, Words, joined
from stillvec.combination.metric_learning import Shared, latent_maps, ridge_from
from stillvec.errors import UsageError, VocabularyError
from stillvec.numerics import unit_rows
from stillvec.vectors import WordVectors

_HELD_OUT = 4096  # words on which the ridge is chosen, at most


@dataclass(frozen=True)
class Geometric:
    """Latent vectors `B^½ U x` and `B^½ V z` at length one, averaged or laid end to end.

    Orthogonal `U`, `V` and the positive definite `B` minimise `‖Xᵀ Uᵀ B V Z - I‖² + ridge ‖B‖²` over the words of both
    spaces: a word should be like itself and unlike the others. The minimum has a closed form (`metrics.py`). More
    spaces follow one after the other, each fitted to the mean of those before it, in the order given. The latent space
    is as wide as the narrowest, or with rotations only as the widest. A word that a space lacks is, averaged,
    the mean of what the others say; laid end to end, it has that mean in the empty place.
    """

    SUMMARY: ClassVar[str] = "its vectors in all spaces, rotated onto one another and scaled by a metric"
    PAPERS: ClassVar[tuple[str, ...]] = ("jawanpuria-2020",)

    output: Literal["average", "concat"] = "average"
    metric: bool = True  # false: rotations only, B = I
    ridge: float | Literal["auto"] = "auto"  # the paper's C; auto: chosen from the data
    unit: bool = True  # rows at length one before fitting
    words: Words = "union"

    def __post_init__(self) -> None:
        if self.ridge != "auto" and not self.ridge > 0:
            raise UsageError(f"The ridge is above 0 or 'auto', and {self.ridge} came.")

    def __call__(self, *spaces: WordVectors) -> WordVectors:
        both = joined(spaces, self.words)
        maps = self.fit(both)
        width = maps[0].shape[1]
        matrix = both.empty(width * (len(spaces) if self.output == "concat" else 1))
        for some, parts, has in both.blocks(unit=self.unit):
            mean, latents = _mean_latent(parts, has, maps)
            if self.output == "concat":
                filled = [np.where(known[:, None], each, mean) for each, known in zip(latents, has, strict=True)]
                matrix[some] = np.hstack(filled)
            else:
                matrix[some] = mean
        return both.vectors(matrix)

    def fit(self, both: Joined) -> list[Floats]:
        """The map (D_s, k) of each space into the latent one."""
        maps = [np.eye(both.dims[0])]
        for number in range(1, len(both.spaces)):
            left, right = self._pair(shared_sums(both, maps, number, self.unit), number)
            maps = [each @ left for each in maps] + [right]
        return maps

    def _pair(self, shared: Shared, number: int) -> tuple[Floats, Floats]:
        if not shared.words:
            raise VocabularyError(f"Vectors number {number + 1} have no word of those before them; nothing ties them.")
        if not self.metric:
            return latent_maps(shared.cross, metric=False)
        ridge = ridge_from(shared) if self.ridge == "auto" else self.ridge
        return latent_maps(shared.solution(ridge), metric=True)


def _mean_latent(
    parts: Sequence[Floats], has: NDArray[np.bool_], maps: Sequence[Floats]
) -> tuple[Floats, list[Floats]]:
    """The mean (b, k) of a word's latent vectors, and these, of the first `len(maps)` spaces."""
    latents = [unit_rows(part @ each) for part, each in zip(parts, maps, strict=False)]  # (b, k)
    known = np.maximum(has[: len(maps)].sum(0), 1)[:, None]
    return np.asarray(sum(latents) / known), latents


def shared_sums(both: Joined, maps: list[Floats], number: int, unit: bool) -> Shared:
    """What the words say that space `number` shares with those before it; every other one is held out."""
    width = maps[0].shape[1], both.dims[number]
    shared = Shared(np.zeros((width[0],) * 2), np.zeros((width[1],) * 2), np.zeros(width))
    half = Shared(np.zeros_like(shared.left), np.zeros_like(shared.right), np.zeros_like(shared.cross))
    held: list[tuple[Floats, Floats]] = []
    for x, z in _pairs(both, maps, number, unit):
        shared += (x, z)
        half += (x[::2], z[::2])
        if sum(len(each) for each, _ in held) < _HELD_OUT:
            held.append((x[1::2][:_HELD_OUT], z[1::2][:_HELD_OUT]))
    shared.half = half
    shared.held = (np.vstack([x for x, _ in held]), np.vstack([z for _, z in held])) if held else None
    return shared


def _pairs(both: Joined, maps: list[Floats], number: int, unit: bool) -> Iterator[tuple[Any, Any]]:
    """Vectors of the words on both sides: the mean of the spaces before, and space `number`."""
    for _, parts, has in both.blocks(unit=unit):
        common = has[:number].any(0) & has[number]
        if common.any():
            before = parts[0] if number == 1 else _mean_latent(parts, has, maps)[0]
            yield before[common], parts[number][common]
