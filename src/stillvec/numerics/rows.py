"""Rows of a matrix: unit length, the largest values, ranks, and blocks of rows in another precision."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]
BLOCK_ROWS = 1 << 14  # rows converted at once
_CELLS = 1 << 23  # cosines per block: 32 MB


def unit_rows(rows: Array, dtype: DTypeLike | None = None) -> Array:
    """Rows, converted to `dtype`, scaled to length one along the last axis; zero where a row is zero or not finite."""
    wide = np.asarray(rows, dtype)
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(wide, axis=-1, keepdims=True)
    directed = (lengths > 0) & (lengths < np.inf)
    return np.asarray(np.where(directed, wide, 0) / np.where(directed, lengths, 1))


def iterate_blocks(
    matrix: Array, dtype: DTypeLike = np.float64, size: int = BLOCK_ROWS
) -> Iterator[tuple[slice, Array]]:
    """(rows, those rows converted), so that a large table is never copied whole."""
    for start in range(0, len(matrix), size):
        rows = slice(start, min(start + size, len(matrix)))
        yield rows, np.asarray(matrix[rows], dtype)


def top_k(scores: Array, k: int) -> NDArray[np.int64]:
    """Columns of the k largest values of each row (n, k), largest first, equal ones by column; any at the border."""
    k = min(k, scores.shape[-1])
    if k < scores.shape[-1]:
        chosen = np.sort(np.argpartition(-scores, k - 1, axis=-1)[..., :k], axis=-1)
    else:
        chosen = np.broadcast_to(np.arange(k), scores.shape)
    order = np.argsort(-np.take_along_axis(scores, chosen, -1), axis=-1, kind="stable")
    return np.asarray(np.take_along_axis(chosen, order, -1))


def nearest_rows(units: Array, k: int) -> NDArray[np.int64]:
    """The k rows of highest cosine with each row of unit length (n, k), without the row itself, in blocks."""
    n = len(units)
    nearest = np.zeros((n, min(k, n - 1)), np.int64)
    step = max(1, _CELLS // max(n, 1))
    for start in range(0, n, step):
        block = units[start : start + step] @ units.T
        here = np.arange(len(block))
        block[here, start + here] = -np.inf  # a row is not its own neighbour
        nearest[start : start + step] = top_k(block, nearest.shape[1])
    return nearest


def rank_values(values: Array) -> NDArray[np.float64]:
    """Ranks from 1 along the last axis; equal values share their mean rank, NaN makes all NaN.

    As `scipy.stats.rankdata`, whose import takes longer than a whole run has left by then.
    """
    values = np.asarray(values)
    if values.shape[-1] == 0:
        return np.zeros(values.shape)
    order = np.argsort(values, axis=-1, kind="stable")
    ordered = np.take_along_axis(values, order, -1)
    place = np.broadcast_to(np.arange(values.shape[-1]), values.shape)
    begins = np.concatenate([np.ones((*values.shape[:-1], 1), bool), ordered[..., 1:] != ordered[..., :-1]], -1)
    ends = np.concatenate([begins[..., 1:], np.ones((*values.shape[:-1], 1), bool)], -1)
    first = np.maximum.accumulate(np.where(begins, place, 0), -1)
    last = np.minimum.accumulate(np.where(ends, place, place.shape[-1])[..., ::-1], -1)[..., ::-1]
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, -1)
    return np.where(np.isnan(values).any(-1, keepdims=True), np.nan, ranks)


def spearman(x: Array, y: Array) -> Array:
    """Spearman's ρ along the last axis; 0 where one side does not vary."""
    a, b = (rank_values(side) for side in (x, y))
    a, b = (side - side.mean(-1, keepdims=True) for side in (a, b))
    scale = np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
    return np.asarray(np.divide((a * b).sum(-1), scale, out=np.zeros_like(scale), where=scale > 0))


def partial_correlation(x: Array, y: Array, given: Array) -> float:
    """The correlation of `x` and `y` (n,) without what `given` predicts of both; 0 where it predicts all."""
    a, b, c = (np.asarray(side, np.float64) - np.mean(side) for side in (x, y, given))
    axis = c / max(float(np.linalg.norm(c)), np.finfo(np.float64).tiny)
    rest = np.stack([side - axis * (side @ axis) for side in (a, b)])
    lengths = np.linalg.norm(rest, axis=1)
    nothing = lengths <= 1e-6 * np.linalg.norm([a, b], axis=1)  # rounding errors
    return 0.0 if nothing.any() else float(rest[0] @ rest[1] / lengths.prod())


def cosines(x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """The cosine of each row of `x` with the same row of `y` (n,); 0 where one has no direction.

    Rounded to 12 decimals, so that the cosine of a word with itself is the same for all words.
    """
    both = [rows.astype(np.float64) for rows in (x, y)]
    lengths = np.linalg.norm(both[0], axis=1) * np.linalg.norm(both[1], axis=1)
    directed = (lengths > 0) & (lengths < np.inf)
    products = np.einsum("nd,nd->n", *both)
    return np.asarray(np.divide(products, lengths, out=np.zeros(len(x)), where=directed).round(12))
