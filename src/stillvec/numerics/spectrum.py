"""Second moments of a table and their principal axes, in double precision, a block of rows at a time."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from stillvec.numerics.rows import iterate_blocks

Array = NDArray[np.float64]


def sum_weighted_rows(matrix: NDArray[Any], weights: Array) -> Array:
    """`Σ_i w_i x_i` (D,)."""
    total = np.zeros(matrix.shape[1])
    for rows, block in iterate_blocks(matrix):
        total += weights[rows] @ block
    return total


def second_moments(matrix: NDArray[Any], mean: Array | None = None, weights: Array | None = None) -> Array:
    """`Σ_i w_i (x_i - mean)(x_i - mean)ᵀ` (D, D)."""
    total = np.zeros((matrix.shape[1],) * 2)
    for rows, block in iterate_blocks(matrix):
        centred = block if mean is None else block - mean
        total += centred.T @ (centred if weights is None else centred * weights[rows, None])
    return total


def column_variances(matrix: NDArray[Any]) -> Array:
    """The variance of each column (D,)."""
    n_rows = max(len(matrix), 1)
    mean, total = sum_weighted_rows(matrix, np.full(len(matrix), 1 / n_rows)), np.zeros(matrix.shape[1])
    for _, block in iterate_blocks(matrix):
        total += ((block - mean) ** 2).sum(0)
    return total / n_rows


def principal_axes(moments: NDArray[Any]) -> tuple[Array, Array]:
    """Eigenvalues (D,), largest first, and eigenvectors in columns (D, D) of a symmetric matrix.

    The largest component of each eigenvector is positive, so that runs agree. A value that is only the rounding error
    of the others is zero.
    """
    values, vectors = np.linalg.eigh(np.asarray(moments, np.float64))
    values, vectors = values[::-1], vectors[:, ::-1]
    signs = np.sign(vectors[np.abs(vectors).argmax(0), np.arange(len(values))])
    noise = values[:1].max(initial=0) * len(values) * np.finfo(np.float64).eps
    return np.where(values > noise, values, 0), vectors * np.where(signs == 0, 1, signs)


def principal_plane(rows: NDArray[Any]) -> Array:
    """The first two principal components (n, 2) of rows (n, D); columns that do not exist are zero."""
    mean = np.asarray(np.mean(rows, axis=0, dtype=np.float64))
    _, axes = principal_axes(second_moments(rows, mean))
    plane = np.zeros((len(rows), 2))
    plane[:, : axes.shape[1]] = apply_map(np.asarray(rows, np.float64), axes[:, :2], mean)
    return plane


def raise_to_power(values: Array, exponent: float) -> Array:
    """`values ** exponent`, and 0 where a value is 0, whatever the exponent."""
    return np.where(values > 0, np.where(values > 0, values, 1) ** exponent, 0)


def apply_map(
    matrix: NDArray[Any], change: Array, mean: Array | None = None, dtype: DTypeLike | None = None
) -> NDArray[Any]:
    """`(x_i - mean) change` (V, K), in the precision of `matrix` unless `dtype` is another."""
    result = np.empty((len(matrix), change.shape[1]), dtype or matrix.dtype)
    for rows, block in iterate_blocks(matrix):
        result[rows] = (block if mean is None else block - mean) @ change
    return result
