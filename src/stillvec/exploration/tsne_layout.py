"""t-SNE of many points: neighbours only attract (van der Maaten 2014), all repel over a grid (Linderman et al. 2019).

`p_ij` is zero for all but the nearest `3 · perplexity`; the repulsion `Σ_j (y_i - y_j) / (1 + ‖y_i - y_j‖²)² / Z` is
three sums over a kernel, which are interpolated by quadratic polynomials on a grid and convolved by FFT. Starts from
the principal plane; the rate is n over the exaggeration (Belkina et al. 2019). `report.tsne` is exact, for a few.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
STEPS, EARLY = 400, 150
_NODES = 3  # of the polynomial, a direction
_CELLS = (24, 256)  # fewest and most of the grid, a direction: as wide as one, where the most allow it
_BLOCK = 256  # points that are compared with all at once


def components(rows: NDArray[Any], most: int = 2) -> Floats:
    """The principal components (n, ≤ most) of rows (n, d); the largest entry of each axis is positive."""
    centred = np.asarray(rows, np.float32) - np.mean(rows, axis=0, dtype=np.float64).astype(np.float32)
    values, axes = np.linalg.eigh(centred.T.astype(np.float64) @ centred)
    axes = axes[:, np.argsort(-values)[:most]]  # (d, most)
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1, 1)
    return np.asarray(centred @ axes.astype(np.float32))


def neighbours(points: Floats, k: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], Floats]]:
    """Some rows (b,), the k nearest of each (b, k), itself not among them, and their squared distances; all exact."""
    squares = (points**2).sum(axis=1)
    for first in range(0, len(points), _BLOCK):
        rows = np.arange(first, min(first + _BLOCK, len(points)))
        far = squares[None, :] - 2 * (points[rows] @ points.T) + squares[rows, None]  # (b, n)
        far[np.arange(len(rows)), rows] = np.inf
        near = np.argpartition(far, k - 1, axis=1)[:, :k]
        yield rows, near, np.maximum(np.take_along_axis(far, near, axis=1), 0)


def neighbour_preservation(
    near: NDArray[np.int64], distances: Floats, places: Floats, most: int = 10, sample: int = 200
) -> float:
    """The share of the `most` nearest of some points that are also among the `most` nearest in the plane."""
    most, n = min(most, near.shape[1]), len(places)
    rows = np.random.default_rng(0).permutation(n)[:sample]
    order = np.argsort(distances[rows], axis=1, kind="stable")[:, :most]
    wanted = np.take_along_axis(near[rows], order, axis=1)  # (s, most)
    far = ((places[rows, None, :] - places[None, :, :]) ** 2).sum(axis=2)  # (s, n)
    far[np.arange(len(rows)), rows] = np.inf
    found = np.argpartition(far, most - 1, axis=1)[:, :most]
    return float((wanted[:, :, None] == found[:, None, :]).any(axis=2).mean())


def shares(near: NDArray[np.int64], distances: Floats, perplexity: float) -> Any:
    """`(p_j|i + p_i|j) / 2n` as a sparse matrix (n, n); each β_i is found by halving."""
    from scipy.sparse import csr_matrix

    n, k = near.shape
    scaled = distances - distances.min(axis=1, keepdims=True)
    scaled = scaled / np.maximum(scaled.mean(axis=1, keepdims=True), np.finfo(np.float32).tiny)
    low, high = np.full((n, 1), -20.0), np.full((n, 1), 20.0)  # of log β
    for _ in range(40):
        middle = (low + high) / 2
        p = np.exp(-scaled * np.exp(middle))
        p /= p.sum(axis=1, keepdims=True)
        wide = -(p * np.log(np.maximum(p, 1e-30))).sum(axis=1, keepdims=True) > np.log(perplexity)
        low, high = np.where(wide, middle, low), np.where(wide, high, middle)
    one_way = csr_matrix((p.ravel(), near.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    return ((one_way + one_way.T) / (2 * n)).tocsr().astype(np.float32)


def optimise(points: Floats, joined: Any, steps: int) -> Iterator[Floats]:
    """The places (n, 2) after each step; the last are the map."""
    n = len(points)
    places = np.zeros((n, 2), np.float32)
    places[:, : points.shape[1]] = points[:, :2]
    places *= np.float32(1e-4 / max(float(places.std(axis=0).max()), 1e-30))
    moved, gains = np.zeros_like(places), np.ones_like(places)
    early = min(EARLY, steps // 2)
    for step in range(steps):
        stretch = 12.0 if step < early else 1.0
        slope = stretch * attraction(places, joined) - repulsion(places)  # a quarter of the gradient
        gains = np.where(slope * moved < 0, gains + 0.2, np.maximum(0.8 * gains, 0.01)).astype(np.float32)
        moved = 0.8 * moved - n / stretch * gains * slope
        places = places + moved
        places = places - places.mean(axis=0)
        yield places


def attraction(places: Floats, joined: Any) -> Floats:
    """`Σ_j p_ij (y_i - y_j) / (1 + ‖y_i - y_j‖²)` (n, 2)."""
    from scipy.sparse import csr_matrix

    left = np.repeat(np.arange(len(places)), np.diff(joined.indptr))
    apart = places[left] - places[joined.indices]  # (e, 2)
    pull = joined.data / (1 + (apart**2).sum(axis=1))
    held = csr_matrix((pull, joined.indices, joined.indptr), shape=joined.shape)
    return np.asarray(np.asarray(held.sum(axis=1)) * places - held @ places, np.float32)


def repulsion(places: Floats) -> Floats:
    """`Σ_j (y_i - y_j) / (1 + ‖y_i - y_j‖²)² / Z` (n, 2), with `Z = Σ_{i≠j} 1 / (1 + ‖y_i - y_j‖²)`."""
    from scipy.fft import irfft2, next_fast_len, rfft2

    spread, size, step = _grid(places)
    far = (np.arange(size) * step) ** 2
    plain = (1 / (1 + far[:, None] + far[None, :])).astype(np.float32)  # (size, size), a quarter of the kernel
    wide = next_fast_len(2 * size - 1, real=True)

    def around(quarter: Floats) -> NDArray[Any]:
        kernel = np.zeros((wide, wide), np.float32)
        kernel[:size, :size] = quarter
        kernel[wide - size + 1 :, :size] = quarter[:0:-1]
        kernel[:, wide - size + 1 :] = kernel[:, size - 1 : 0 : -1]
        return np.asarray(rfft2(kernel))

    once, twice = around(plain), around(plain**2)
    charges = np.column_stack([np.ones(len(places), np.float32), places])  # (n, 3)
    laid = np.asarray(spread.T @ charges).T.reshape(3, size, size)
    waves = rfft2(laid, (wide, wide))
    fields = irfft2(np.concatenate([once * waves[:1], twice * waves]), (wide, wide))[:, :size, :size]
    felt = spread @ fields.reshape(4, -1).T.astype(np.float32)  # (n, 4)
    total = max(float(felt[:, 0].sum(dtype=np.float64)) - len(places), np.finfo(np.float32).tiny)
    return np.asarray((places * felt[:, 1:2] - felt[:, 2:]) / total, np.float32)


def _grid(places: Floats) -> tuple[Any, int, float]:
    """How much each node of a grid has of each point (n, size²), how many nodes a direction, how far apart."""
    from scipy.sparse import csr_matrix

    low = places.min(axis=0)
    width = max(float((places.max(axis=0) - low).max()), 1e-6) * (1 + 1e-5)
    cells = int(np.clip(np.ceil(width), *_CELLS))
    inside = (places - low) / (width / cells)  # (n, 2) in cells
    cell = np.minimum(inside.astype(np.int64), cells - 1)
    at = (inside - cell) * _NODES - 0.5  # 0, 1, 2 at the nodes of the cell
    ways = np.stack([(at - 1) * (at - 2) / 2, -at * (at - 2), at * (at - 1) / 2], axis=-1)  # (n, 2, 3)
    shares_ = ways[:, 0, :, None] * ways[:, 1, None, :]  # (n, 3, 3)
    size = cells * _NODES
    node = cell[:, :, None] * _NODES + np.arange(_NODES)  # (n, 2, 3)
    index = node[:, 0, :, None] * size + node[:, 1, None, :]
    n, each = len(places), _NODES**2
    held = csr_matrix(
        (shares_.reshape(-1).astype(np.float32), index.reshape(-1), np.arange(0, n * each + 1, each)),
        shape=(n, size * size),
    )
    return held, size, width / cells / _NODES
