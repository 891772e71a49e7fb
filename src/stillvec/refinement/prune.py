"""Pruning by magnitude (Gordon et al. 2020, its part on embeddings): the smallest numbers become zero.

`sparsity` is the share that goes: of the whole table, of each word's row or of each dimension's column. What was lost
is measured, and stands in the manifest; random pruning is the control. If it is the last step and more than a third is
gone, the verb stores only what is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.refinement.loss import loss
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Prune:
    SUMMARY: ClassVar[str] = "small values set to zero"
    PAPERS: ClassVar[tuple[str, ...]] = ("gordon-2020",)

    sparsity: float = 0.3
    scope: Literal["matrix", "row", "column"] = "matrix"
    by: Literal["magnitude", "chance"] = "magnitude"
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.sparsity <= 1:
            raise UsageError(f"The share of numbers that go is 0 to 1, and {self.sparsity} came.")

    def __call__(self, vectors: WordVectors) -> WordVectors:
        matrix = np.array(vectors.matrix)
        chance = self.by == "chance"
        sizes = np.random.default_rng(self.seed).random(matrix.shape, np.float32) if chance else np.abs(matrix)
        if self.scope == "matrix":
            matrix.reshape(-1)[_smallest(sizes.reshape(-1), self.sparsity)] = 0
        else:
            axis = 1 if self.scope == "row" else 0
            count = round(self.sparsity * matrix.shape[axis])
            gone = np.take(np.argsort(sizes, axis, kind="stable"), range(count), axis)
            np.put_along_axis(matrix, gone, 0, axis)
        return vectors.with_matrix(matrix)

    @property
    def stored(self) -> str:
        return "sparse"

    def loss(self, before: WordVectors, after: WordVectors) -> dict[str, float]:
        return loss(before, after)


def _smallest(sizes: NDArray[Any], share: float) -> NDArray[np.bool_]:
    """Which numbers go: exactly so many, of those alike the first."""
    count = round(share * len(sizes))
    if count == 0:
        return np.zeros(len(sizes), bool)
    edge = np.partition(sizes, count - 1)[count - 1]
    gone = np.asarray(sizes < edge)
    gone[np.flatnonzero(sizes == edge)[: count - int(gone.sum())]] = True
    return gone
