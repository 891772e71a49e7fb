"""What changed between two matrices, value by value (Gordon, Duh & Andrews 2020): masks, ranks of magnitudes, cosines.

For vectors before and after a step, for two pruned sets, and for any two matrices of one shape, such as a layer of a
model before and after fine-tuning.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError, VocabularyError
from stillvec.numerics import cosines, rank_values
from stillvec.refinement.prune import find_smallest
from stillvec.vectors import WordVectors

Matrix = NDArray[Any]
SPARSITIES = (0.2, 0.3, 0.4, 0.6, 0.9)
_TENTHS = 10


@dataclass(frozen=True)
class ValueChange:
    """Shares are of all values; chance is what two independent matrices would have."""

    n_rows: int
    n_columns: int
    zeros: tuple[float, float]  # share of zeros before and after
    mask_difference: float  # share of values that are zero in exactly one matrix
    mask_chance: float
    pruned_differences: dict[float, float]  # sparsity, above that of both → difference of the masks of pruning
    rank_movement: float  # mean distance of a value's places in both orders of magnitude, as a share; chance: 1/3
    rank_spread: float  # standard deviation of the distance
    movement_by_tenth: tuple[float, ...]  # mean distance of each tenth of the values before, smallest first
    mean_cosine: float  # of rows before and after
    lowest_cosine: float
    zeros_by_row: tuple[float, float]  # share of zeros after: the smallest and the largest of all rows
    zeros_by_column: tuple[float, float]


def compare_values(before: Matrix, after: Matrix) -> ValueChange:
    """Compare two matrices of one shape (n, d)."""
    if before.ndim != 2 or before.shape != after.shape or not before.size:
        raise UsageError.expected("two matrices of one shape", f"{before.shape} and {after.shape}")
    distance = move_ranks(before, after)  # (n, d)
    order = np.argsort(np.abs(before), axis=None, kind="stable")
    alike = cosines(before, after)
    masks = before == 0, after == 0
    shares = [float(mask.mean()) for mask in masks]
    return ValueChange(
        n_rows=len(before),
        n_columns=before.shape[1],
        zeros=(shares[0], shares[1]),
        mask_difference=differ(*masks),
        mask_chance=shares[0] * (1 - shares[1]) + shares[1] * (1 - shares[0]),
        pruned_differences={
            sparsity: compare_pruned_masks(before, after, sparsity)
            for sparsity in SPARSITIES
            if sparsity >= max(shares)
        },
        rank_movement=float(distance.mean()),
        rank_spread=float(distance.std()),
        movement_by_tenth=tuple(float(part.mean()) for part in np.array_split(distance.ravel()[order], _TENTHS)),
        mean_cosine=float(alike.mean()),
        lowest_cosine=float(alike.min()),
        zeros_by_row=_range(masks[1].mean(1)),
        zeros_by_column=_range(masks[1].mean(0)),
    )


def compare_vectors(before: WordVectors, after: WordVectors) -> ValueChange:
    """Compare the values of the common words."""
    if before.dim != after.dim:
        raise UsageError.expected(f"vectors of dimension {after.dim}", before.dim, where="against")
    rows = [(before.vocabulary.row(word), row) for row, word in enumerate(after.words)]
    common = np.array([pair for pair in rows if pair[0] is not None], np.int64).reshape(-1, 2)
    if not len(common):
        raise VocabularyError("The two sets have no word in common.", code="no-common-words")
    return compare_values(np.asarray(before.matrix[common[:, 0]]), np.asarray(after.matrix[common[:, 1]]))


def differ(before: NDArray[np.bool_], after: NDArray[np.bool_]) -> float:
    """The share of places at which two masks differ."""
    return float((before != after).mean())


def compare_pruned_masks(before: Matrix, after: Matrix, sparsity: float) -> float:
    """The share of places at which the masks of magnitude pruning differ."""
    masks = (find_smallest(np.abs(matrix).reshape(-1), sparsity) for matrix in (before, after))
    return differ(*masks)


def move_ranks(before: Matrix, after: Matrix) -> NDArray[np.float64]:
    """How far each value moves in the order of magnitude, as a share of the number of values; ties share a rank."""
    ranks = (rank_values(np.abs(matrix).reshape(-1)) for matrix in (before, after))
    return np.asarray(np.abs(np.subtract(*ranks)) / before.size).reshape(before.shape)


def _range(shares: NDArray[np.float64]) -> tuple[float, float]:
    return float(shares.min()), float(shares.max())
