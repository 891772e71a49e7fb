"""Rows of a matrix: unit length, and blocks of them in another precision."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

BLOCK_ROWS = 1 << 14  # rows converted at once


def unit_rows(rows: NDArray[Any], dtype: DTypeLike | None = None) -> NDArray[Any]:
    """Rows scaled to length one along the last axis; zero where a row has no direction, as it is zero or not finite.

    `dtype` converts before scaling.
    """
    wide = np.asarray(rows, dtype)
    lengths = np.linalg.norm(wide, axis=-1, keepdims=True)
    directed = (lengths > 0) & (lengths < np.inf)
    return np.asarray(np.where(directed, wide, 0) / np.where(directed, lengths, 1))


def iterate_blocks(
    matrix: NDArray[Any], dtype: DTypeLike = np.float64, size: int = BLOCK_ROWS
) -> Iterator[tuple[slice, NDArray[Any]]]:
    """(rows, those rows converted), so that a large table is never copied whole."""
    for start in range(0, len(matrix), size):
        rows = slice(start, min(start + size, len(matrix)))
        yield rows, np.asarray(matrix[rows], dtype)
