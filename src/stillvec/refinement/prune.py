"""Magnitude pruning (Gordon et al. 2020, for embeddings): the smallest values become zero.

`sparsity` is the share of zeros: of the whole table, of each row or of each column. The loss is recorded in the
manifest; random pruning is the control. After a last step that removes more than a third, folders are stored sparse.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.refinement.steps import measure_loss
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Prune:
    SUMMARY: ClassVar[str] = "small values set to zero"
    PAPERS: ClassVar[tuple[str, ...]] = ("gordon-2020",)
    loss = staticmethod(measure_loss)
    stored: ClassVar[str] = "sparse"

    sparsity: float = 0.3
    scope: Literal["matrix", "row", "column"] = "matrix"
    by: Literal["magnitude", "chance"] = "magnitude"
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.sparsity <= 1:
            raise UsageError.expected("0 to 1", self.sparsity, where="sparsity")

    def __call__(self, vectors: WordVectors) -> WordVectors:
        matrix = np.array(vectors.matrix)
        random = self.by == "chance"
        sizes = np.random.default_rng(self.seed).random(matrix.shape, np.float32) if random else np.abs(matrix)
        if self.scope == "matrix":
            matrix.reshape(-1)[find_smallest(sizes.reshape(-1), self.sparsity)] = 0
        else:
            axis = 1 if self.scope == "row" else 0
            n_zeros = round(self.sparsity * matrix.shape[axis])
            removed = np.take(np.argsort(sizes, axis, kind="stable"), range(n_zeros), axis)
            np.put_along_axis(matrix, removed, 0, axis)
        return vectors.with_matrix(matrix)


def find_smallest(sizes: NDArray[Any], share: float) -> NDArray[np.bool_]:
    """Mask of the smallest values, exactly `share` of them; ties are broken by position."""
    n_zeros = round(share * len(sizes))
    if n_zeros == 0:
        return np.zeros(len(sizes), bool)
    edge = np.partition(sizes, n_zeros - 1)[n_zeros - 1]
    removed = np.asarray(sizes < edge)
    removed[np.flatnonzero(sizes == edge)[: n_zeros - int(removed.sum())]] = True
    return removed
