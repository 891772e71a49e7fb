"""Quantisation: numbers are rounded to what few bits can say. What was lost is measured, and stands in the manifest.

- fp16: half precision, so two bytes a number.
- int8: each row in 255 steps of its largest number, so a byte a number and a scale a row. A scale has 17 bits, so that
  steps times scale is exact.
- pq: product quantisation (Jégou et al. 2011): a row is cut into parts, and each part is the nearest of `codes` centres
  found by k-means, so a byte a part.

After int8 and pq the table holds the rounded numbers in full precision, as all else that takes vectors wants them. If
this is the last step, the verb stores the codes (`stored`), and the folder is as small as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from stillvec.errors import UsageError
from stillvec.refinement.loss import loss
from stillvec.refinement.product_codes import ProductCodes
from stillvec.vectors import Matrix, WordVectors

_BLOCK = 1 << 14
_STEPS = 1 << 17  # 17 bits of a scale and 7 of a step are the 24 of single precision


@dataclass(frozen=True)
class Quantize:
    SUMMARY: ClassVar[str] = "values rounded to a few bits"
    PAPERS: ClassVar[tuple[str, ...]] = ("jegou-2011",)

    to: Literal["fp16", "int8", "pq"] = "int8"
    parts: int | None = None  # of a row, for pq; None: one for every four dimensions
    codes: int = 256  # centres of a part, for pq
    seed: int = 0

    def __call__(self, vectors: WordVectors) -> WordVectors:
        rounded = {"fp16": _half, "int8": _bytes, "pq": self._product}[self.to]
        return vectors.with_matrix(rounded(vectors.matrix))

    @property
    def stored(self) -> str | None:
        return None if self.to == "fp16" else self.to

    def loss(self, before: WordVectors, after: WordVectors) -> dict[str, float]:
        return loss(before, after)

    def _product(self, matrix: Matrix) -> Matrix:
        parts = max(1, matrix.shape[1] // 4) if self.parts is None else self.parts
        if not 1 <= parts <= matrix.shape[1]:
            raise UsageError(f"A row of {matrix.shape[1]} numbers cannot be cut into {parts} parts; give fewer.")
        if not 1 <= self.codes <= 256:
            raise UsageError(f"A byte tells 1 to 256 centres apart, and codes is {self.codes}.")
        return ProductCodes.learn(matrix, parts, self.codes, self.seed).decode().astype(_full(matrix))


def _half(matrix: Matrix) -> Matrix:
    largest = np.abs(matrix).max(initial=0)
    if largest > np.finfo(np.float16).max:
        raise UsageError(
            f"Half precision ends at 65504, and the vectors hold {largest:.3g}; make them of unit length first."
        )
    return matrix.astype(np.float16)


def _bytes(matrix: Matrix) -> Matrix:
    result = np.empty(matrix.shape, _full(matrix))
    for start in range(0, len(matrix), _BLOCK):
        block = np.asarray(matrix[start : start + _BLOCK], result.dtype)
        halves, exponents = np.frexp(np.abs(block).max(1, keepdims=True, initial=0) / 127)  # (b, 1)
        scales = np.ldexp(np.rint(halves * _STEPS) / _STEPS, exponents).astype(result.dtype)
        scales[scales < np.finfo(result.dtype).tiny] = 0  # smaller ones have lost bits: such a row is zero
        codes = np.clip(np.rint(block / np.where(scales > 0, scales, 1)), -127, 127).astype(np.int8)
        result[start : start + _BLOCK] = codes * scales
    return result


def _full(matrix: Matrix) -> np.dtype[Any]:
    """At least single precision: half of it would round once more."""
    return np.result_type(matrix.dtype, np.float32)
