"""Binary codes: one bit per dimension, `b = sign(R' (v - m))`, compared by Hamming distance.

m is the mean of the rows of unit length, and R one of

- itq: the first principal directions (at most 128), rotated so that the numbers are as near to their signs as possible,
  `min over R of ‖sign(Y R) - Y R‖²` by turns (iterative quantization, Gong & Lazebnik 2011);
- rotation: the same directions, rotated at random;
- planes: random orthogonal directions of the whole space (Charikar 2002).

More bits than directions are several such rotations, each from another random start. The result has the numbers 1 and
-1, so that the cosine of two words is `1 - 2 H / length`, H the Hamming distance. Folders store one bit per number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.numerics import iterate_blocks, principal_axes, second_moments, unit_rows
from stillvec.refinement.steps import measure_neighbours
from stillvec.registry import check_least
from stillvec.vectors import WordVectors

_DIRECTIONS = 128  # at most; 64 to 256 were tried on RG-65, WordSim-353 and SimLex-999, for 128 and 256 bits
_TRAINING_ROWS = 1 << 15  # at most, for itq
_MOST_BITS = 1 << 14  # as many as a vector of 512 floats has
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Bits:
    SUMMARY: ClassVar[str] = "one bit per dimension, compared by Hamming distance"
    PAPERS: ClassVar[tuple[str, ...]] = ("gong-2011",)
    stored: ClassVar[str] = "bits"
    loss = staticmethod(measure_neighbours)

    length: int = 128  # bits per word
    by: Literal["itq", "rotation", "planes"] = "itq"
    sweeps: int = 50  # for itq
    seed: int = 0

    def __post_init__(self) -> None:
        check_least(self, length=1, sweeps=1)
        if self.length > _MOST_BITS:
            raise UsageError.expected(f"at most {_MOST_BITS:,}", f"{self.length:,}", where="setting 'length'")
        if self.by not in ("itq", "rotation", "planes"):
            raise UsageError.unknown("kind of bits", self.by, ("itq", "rotation", "planes"), where="by")

    def __call__(self, vectors: WordVectors) -> WordVectors:
        if not vectors.dim:
            raise UsageError.expected("at least one dimension", 0, where="bits")
        units = unit_rows(vectors.matrix, np.float32)
        mean = units.mean(axis=0, dtype=np.float64)
        directions = self._learn(units, mean)  # (D, length)
        codes = np.empty((len(units), self.length), np.result_type(vectors.matrix.dtype, np.float32))
        for rows, block in iterate_blocks(units):
            codes[rows] = np.where((block - mean) @ directions >= 0, 1, -1)
        return vectors.with_matrix(codes)

    def _learn(self, units: NDArray[np.float32], mean: Array) -> Array:
        random = np.random.default_rng(self.seed)
        dim = units.shape[1] if self.by == "planes" else min(units.shape[1], _DIRECTIONS, self.length)
        axes = principal_axes(second_moments(units, mean))[1]  # (D, D)
        rows = np.sort(random.permutation(len(units))[:_TRAINING_ROWS])
        sample = units[rows] - mean
        blocks = []
        for first in range(0, self.length, dim):
            n_bits = min(dim, self.length - first)
            rotation = _draw_rotation(dim, random)
            if self.by == "itq":
                rotation = _fit_rotation(sample @ axes[:, :dim], rotation, self.sweeps)
            turned = rotation if self.by == "planes" else axes[:, :dim] @ rotation
            blocks.append(turned[:, :n_bits])
        return np.hstack(blocks)


def _draw_rotation(dim: int, random: np.random.Generator) -> Array:
    rotation, triangle = np.linalg.qr(random.standard_normal((dim, dim)))
    return np.asarray(rotation * np.where(np.diag(triangle) < 0, -1, 1))


def _fit_rotation(rows: Array, rotation: Array, sweeps: int) -> Array:
    """Signs for the rotation, then the rotation for the signs (Procrustes), by turns."""
    for _ in range(sweeps):
        signs = np.where(rows @ rotation >= 0, 1.0, -1.0)
        left, _, right = np.linalg.svd(rows.T @ signs)
        rotation = left @ right
    return rotation
