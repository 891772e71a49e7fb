"""Quantisation: values rounded to few bits. The loss is recorded in the manifest.

- fp16: half precision, two bytes per value.
- int8: each row in 255 steps of its largest value, one byte per value and one scale per row. A scale has 17 bits, so
  that steps times scale is exact.
- pq: product quantisation (Jégou et al. 2011): a row is split into parts, and each part replaced by the nearest of
  `codes` k-means centres, one byte per part.

After int8 and pq the matrix has the rounded values in full precision. If this is the last step, folders store the codes
(`stored`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.numerics import iterate_blocks, kmeans, nearest_centres
from stillvec.numerics.array_types import Matrix
from stillvec.refinement.steps import measure_loss
from stillvec.vectors import WordVectors

_STEPS = 1 << 17  # 17 bits of a scale and 7 of a step are the 24 of single precision
_TRAINING_ROWS = 1 << 16  # at most, for k-means
_ROUNDS = 15

Centres = NDArray[np.float32]


@dataclass(frozen=True)
class Quantize:
    SUMMARY: ClassVar[str] = "values rounded to a few bits"
    PAPERS: ClassVar[tuple[str, ...]] = ("jegou-2011",)
    loss = staticmethod(measure_loss)

    to: Literal["fp16", "int8", "pq"] = "int8"
    parts: int | None = None  # for pq; None: one per four dimensions
    codes: int = 256  # centres per part, for pq
    seed: int = 0

    def __call__(self, vectors: WordVectors) -> WordVectors:
        round_values = {"fp16": _half, "int8": _bytes, "pq": self._product}[self.to]
        return vectors.with_matrix(round_values(vectors.matrix))

    @property
    def stored(self) -> str | None:
        return None if self.to == "fp16" else self.to

    def _product(self, matrix: Matrix) -> Matrix:
        parts = max(1, matrix.shape[1] // 4) if self.parts is None else self.parts
        if not 1 <= parts <= matrix.shape[1]:
            raise UsageError.expected(f"1 to {matrix.shape[1]}", parts, where="parts")
        if not 1 <= self.codes <= 256:
            raise UsageError.expected("1 to 256", self.codes, where="codes")
        return ProductCodes.learn(matrix, parts, self.codes, self.seed).decode().astype(_full(matrix))


def _half(matrix: Matrix) -> Matrix:
    largest = np.abs(matrix).max(initial=0)
    if largest > np.finfo(np.float16).max:
        raise UsageError.expected("values up to 65504", f"{largest:.3g}", where="to=fp16", cure="use normalize first")
    return matrix.astype(np.float16)


def _bytes(matrix: Matrix) -> Matrix:
    result = np.empty(matrix.shape, _full(matrix))
    for rows, block in iterate_blocks(matrix, result.dtype):
        halves, exponents = np.frexp(np.abs(block).max(1, keepdims=True, initial=0) / 127)  # (b, 1)
        scales = np.ldexp(np.rint(halves * _STEPS) / _STEPS, exponents).astype(result.dtype)
        scales[scales < np.finfo(result.dtype).tiny] = 0  # subnormal scales are inexact: such a row becomes zero
        codes = np.clip(np.rint(block / np.where(scales > 0, scales, 1)), -127, 127).astype(np.int8)
        result[rows] = codes * scales
    return result


def _full(matrix: Matrix) -> np.dtype[Any]:
    """At least single precision: half precision would round a second time."""
    return np.result_type(matrix.dtype, np.float32)


@dataclass(frozen=True)
class ProductCodes:
    """Product quantisation (Jégou et al. 2011): each part of a row is replaced by one of a few centres."""

    centres: list[Centres]  # (K, d) per part
    codes: NDArray[np.uint8]  # (V, parts)

    @classmethod
    def learn(cls, matrix: NDArray[Any], parts: int, size: int, seed: int) -> ProductCodes:
        """By k-means, started from `size` distinct rows of each part."""
        random = np.random.default_rng(seed)
        training = np.sort(random.permutation(len(matrix))[:_TRAINING_ROWS])
        centres, codes = [], np.empty((len(matrix), parts), np.uint8)
        for part, columns in enumerate(np.array_split(np.arange(matrix.shape[1]), parts)):
            inside = slice(int(columns[0]), int(columns[-1]) + 1)
            rows = np.asarray(matrix[training, inside], np.float32)
            distinct = np.unique(rows, axis=0)
            start = distinct[np.sort(random.permutation(len(distinct))[:size])]
            n_rounds = _ROUNDS if len(distinct) > size else 0
            learnt = kmeans(rows, size, random, centres=start, n_rounds=n_rounds).centres
            codes[:, part] = nearest_centres(matrix[:, inside], learnt)
            centres.append(learnt)
        return cls(centres, codes)

    def decode(self) -> NDArray[np.float32]:
        """The table reconstructed from the codes (V, D)."""
        return np.hstack([centres[self.codes[:, part]] for part, centres in enumerate(self.centres)])
