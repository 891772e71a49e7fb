"""Word embeddings as tuples of feature probabilities (Bhat et al. 2020): each dimension is a fuzzy feature.

`E = base^M`, divided by the sums of its columns (as in the paper: the share of a feature that belongs to the word) or
of its rows (as in the released code). `refinement.fuzzy_sets` has the operations on them.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from stillvec.errors import UsageError
from stillvec.numerics import iterate_blocks
from stillvec.numerics.array_types import Matrix
from stillvec.vectors import WordVectors

_BLOCK = 1 << 14  # rows converted to double precision per block
_LEAST, _MOST = float(np.finfo(np.float32).tiny), float(1 - np.finfo(np.float32).epsneg)  # logarithms stay finite


@dataclass(frozen=True)
class FeatureTuples:
    SUMMARY: ClassVar[str] = "dimensions as probabilities of fuzzy features"
    PAPERS: ClassVar[tuple[str, ...]] = ("bhat-2020",)

    over: Literal["column", "row"] = "column"
    base: float = math.e

    def __post_init__(self) -> None:
        if not 1 < self.base < math.inf:
            raise UsageError.expected("a finite number above 1", self.base, where="base")

    def __call__(self, vectors: WordVectors) -> WordVectors:
        matrix = vectors.matrix
        kind = np.result_type(matrix.dtype, np.float32)  # half precision cannot represent 1e-6
        result = np.empty(matrix.shape, kind)
        largest = matrix.max(0, initial=-np.inf).astype(np.float64)  # (D,)
        blocks = iterate_blocks(matrix, size=_BLOCK)
        sums = sum((self._powers(block, largest).sum(0) for _, block in blocks), np.zeros(vectors.dim))
        for rows, block in iterate_blocks(matrix, size=_BLOCK):
            if self.over == "row":
                powers = self._powers(block, block.max(1, keepdims=True))
                shares = powers / powers.sum(1, keepdims=True)
            else:
                shares = self._powers(block, largest) / sums
            result[rows] = np.clip(shares, _LEAST, _MOST)
        return vectors.with_matrix(result)

    def _powers(self, rows: Matrix, largest: Matrix) -> Matrix:
        """`base^rows`, scaled so that the largest is one."""
        return np.asarray(np.exp(math.log(self.base) * (rows - largest)))
