"""k-means: Lloyd's algorithm from k-means++ (Arthur & Vassilvitskii 2007), plain, weighted, spherical or in batches."""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stillvec.numerics.rows import unit_rows

Array = NDArray[Any]
_BLOCK = 1 << 13  # rows compared with all centres at once


class Clustering(NamedTuple):
    labels: NDArray[np.int64]  # (n,)
    centres: Array  # (k, D)
    inertia: float  # the (weighted) sum of squared distances from the nearest centre


def kmeans(
    rows: Array,
    n_clusters: int,
    generator: np.random.Generator,
    *,
    weights: Array | None = None,
    centres: Array | None = None,
    n_rounds: int = 100,
    spherical: bool = False,
    empty: Literal["keep", "farthest"] = "keep",
    batch: int | None = None,
) -> Clustering:
    """Cluster rows (n, D); stops early when no row changes its cluster.

    `centres` starts from given rows instead of k-means++. `spherical` keeps centres at length one (Dhillon & Modha
    2001; give rows of length one). A centre without rows stays where it is, or with `empty="farthest"` moves to the row
    farthest from its own centre. With `batch`, each round reads only that many random rows, and a last one assigns all.
    """
    centres = draw_centres(rows, n_clusters, generator, weights) if centres is None else centres
    if batch is not None:
        centres, n_rounds = _move_by_batches(rows, centres, generator, batch, n_rounds), 1
    labels = np.full(len(rows), -1, np.int64)
    distances = np.zeros(len(rows))
    for _ in range(n_rounds):
        nearest, distances = _assign(rows, centres)
        if np.array_equal(nearest, labels):
            break
        labels = nearest
        if batch is not None:
            break
        if empty == "farthest":
            _fill_empty(labels, distances, len(centres))
        centres = _update(rows, labels, centres, weights)
        if spherical:
            centres = unit_rows(centres)
    total = distances if weights is None else distances * weights
    return Clustering(labels, centres, float(total.sum(dtype=np.float64)))


def nearest_centres(rows: Array, centres: Array) -> NDArray[np.int64]:
    """The index of the nearest centre of each row (n,); of equal ones the first."""
    return _assign(rows, centres)[0]


def draw_centres(rows: Array, n_clusters: int, generator: np.random.Generator, weights: Array | None = None) -> Array:
    """k-means++: each centre is drawn in proportion to the squared distance from the nearest one before it."""
    n_rows = len(rows)
    squares = np.einsum("nd,nd->n", rows, rows)
    prior = np.full(n_rows, 1 / n_rows) if weights is None else weights / weights.sum()
    chosen = [int(generator.integers(n_rows)) if weights is None else int(generator.choice(n_rows, p=prior))]
    least = np.full(n_rows, np.inf)
    while len(chosen) < n_clusters:
        products = np.einsum("nd,d->n", rows, rows[chosen[-1]])
        least = np.minimum(least, np.maximum(squares - 2 * products + squares[chosen[-1]], 0))
        mass = least * prior
        total = mass.sum()
        chosen.append(int(generator.choice(n_rows, p=mass / total if total > 0 else prior)))
    return np.asarray(rows[chosen])


def _move_by_batches(rows: Array, centres: Array, generator: np.random.Generator, size: int, n_rounds: int) -> Array:
    """Mini-batch k-means (Sculley 2010): a centre is the mean of all rows that were nearest to it when drawn."""
    totals = np.zeros(len(centres))
    for _ in range(n_rounds):
        drawn = np.asarray(rows[generator.integers(0, len(rows), size)], centres.dtype)
        labels = nearest_centres(drawn, centres)
        n_drawn = np.bincount(labels, minlength=len(centres))
        totals += n_drawn
        rates = (n_drawn / np.maximum(totals, 1))[:, None].astype(centres.dtype)
        centres = centres + rates * (_update(drawn, labels, centres, None) - centres)
    return centres


def _assign(rows: Array, centres: Array) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The nearest centre of each row, and the squared distance from it."""
    labels, distances = np.empty(len(rows), np.int64), np.empty(len(rows))
    lengths = np.einsum("kd,kd->k", centres, centres)
    for start in range(0, len(rows), _BLOCK):
        here = slice(start, start + _BLOCK)
        block = np.asarray(rows[here], centres.dtype)
        apart = lengths - 2 * block @ centres.T  # (b, k), less the square of the row
        labels[here] = nearest = apart.argmin(axis=1)
        squares = np.einsum("nd,nd->n", block, block)
        distances[here] = np.maximum(apart[np.arange(len(block)), nearest] + squares, 0)
    return labels, distances


def _fill_empty(labels: NDArray[np.int64], distances: Array, n_clusters: int) -> None:
    for cluster in np.setdiff1d(np.arange(n_clusters), labels):
        farthest = int(distances.argmax())
        labels[farthest], distances[farthest] = cluster, -1


def _update(rows: Array, labels: NDArray[np.int64], centres: Array, weights: Array | None) -> Array:
    n_rows = np.bincount(labels, weights, len(centres))
    columns = rows.T if weights is None else rows.T * weights
    sums = np.stack([np.bincount(labels, column, len(centres)) for column in columns], 1)
    means = (sums / np.where(n_rows > 0, n_rows, 1)[:, None]).astype(centres.dtype)
    return np.where(n_rows[:, None] > 0, means, centres)
