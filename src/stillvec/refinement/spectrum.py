"""Second moments of a table and their directions, in double precision, a block of rows at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1 << 14  # rows in double precision at once

Array = NDArray[np.float64]


def weighted_mean(matrix: NDArray[Any], weights: Array) -> Array:
    """`Σ_i w_i x_i` (D,)."""
    total = np.zeros(matrix.shape[1])
    for start in range(0, len(matrix), _BLOCK):
        total += weights[start : start + _BLOCK] @ np.asarray(matrix[start : start + _BLOCK], np.float64)
    return total


def second_moments(matrix: NDArray[Any], mean: Array | None = None, weights: Array | None = None) -> Array:
    """`Σ_i w_i (x_i - mean)(x_i - mean)ᵀ` (D, D)."""
    total = np.zeros((matrix.shape[1],) * 2)
    for start in range(0, len(matrix), _BLOCK):
        block = np.array(matrix[start : start + _BLOCK], np.float64)
        if mean is not None:
            block -= mean
        total += block.T @ (block if weights is None else block * weights[start : start + _BLOCK, None])
    return total


def column_variances(matrix: NDArray[Any]) -> Array:
    """Of each column (D,)."""
    mean, total = weighted_mean(matrix, np.full(len(matrix), 1 / max(len(matrix), 1))), np.zeros(matrix.shape[1])
    for start in range(0, len(matrix), _BLOCK):
        total += ((np.asarray(matrix[start : start + _BLOCK], np.float64) - mean) ** 2).sum(0)
    return total / max(len(matrix), 1)


def directions(moments: Array) -> tuple[Array, Array]:
    """Eigenvalues (D,), the largest first, and directions in columns (D, D), their signs settled so that runs agree.

    A value that is only the rounding of the others is zero.
    """
    values, vectors = np.linalg.eigh(moments)
    values, vectors = values[::-1], vectors[:, ::-1]
    signs = np.sign(vectors[np.abs(vectors).argmax(0), np.arange(len(values))])
    noise = values[:1].max(initial=0) * len(values) * np.finfo(np.float64).eps
    return np.where(values > noise, values, 0), vectors * np.where(signs == 0, 1, signs)


def power(values: Array, exponent: float) -> Array:
    """`values ** exponent`, and 0 of 0 whatever the exponent: where nothing is, nothing is made larger."""
    return np.where(values > 0, np.where(values > 0, values, 1) ** exponent, 0)


def mapped(matrix: NDArray[Any], change: Array, mean: Array | None = None) -> NDArray[Any]:
    """`(x_i - mean) change` (V, K) in the table's own precision."""
    result = np.empty((len(matrix), change.shape[1]), matrix.dtype)
    for start in range(0, len(matrix), _BLOCK):
        block = np.array(matrix[start : start + _BLOCK], np.float64)
        if mean is not None:
            block -= mean
        result[start : start + _BLOCK] = block @ change
    return result
