"""t-SNE: attraction between neighbours only (van der Maaten 2014), repulsion over a grid (Linderman et al. 2019).

`p_ij` is zero except for the nearest `3 · perplexity` points. The repulsion `Σ_j (y_i - y_j) / (1 + ‖y_i - y_j‖²)² / Z`
is three sums over a kernel, interpolated by quadratic polynomials on a grid and convolved by FFT. Starts from the
principal plane; the learning rate is n over the exaggeration (Belkina et al. 2019).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.numerics.rows import top_k
from stillvec.numerics.spectrum import principal_plane

Floats = NDArray[np.float32]
N_STEPS, N_EARLY_STEPS = 400, 150  # all steps, and those with exaggerated attraction
_EXAGGERATION = 12.0
_LEAST_RATE = 50.0  # n over the exaggeration is too slow for few points
_NODES = 3  # of the polynomial in a cell, per direction
_CELLS = (24, 256)  # fewest and most cells of the grid per direction
_N_EXACT = 200  # points up to which all pairs are faster than the grid
_BLOCK = 256  # points compared with all others at once


def embed_points(points: NDArray[Any], perplexity: float = 8.0) -> NDArray[np.float64]:
    """Positions in a plane (n, 2) of points (n, d); those of fewer than five points are their principal plane."""
    points = np.asarray(points, np.float32)
    k = min(int(3 * perplexity), len(points) - 1)
    positions = principal_plane(points).astype(np.float32)
    if k > 3:
        blocks = [(near, distances) for _, near, distances in find_neighbours(points, k)]
        near, distances = (np.concatenate(part) for part in zip(*blocks, strict=True))
        probabilities = joint_probabilities(near, distances, min(perplexity, k / 3))
        for positions in optimise(points, probabilities, N_STEPS):  # noqa: B007 - the last positions are the result
            pass
    return np.asarray(positions, np.float64)


def find_neighbours(points: Floats, k: int) -> Iterator[tuple[slice, NDArray[np.int64], Floats]]:
    """Blocks of rows, the k nearest other points of each row (b, k), nearest first, and their squared distances."""
    squares = (points**2).sum(axis=1)
    for start in range(0, len(points), _BLOCK):
        rows = slice(start, min(start + _BLOCK, len(points)))
        scores = 2 * (points[rows] @ points.T) - squares - squares[rows, None]  # (b, n), negative squared distances
        scores[np.arange(rows.stop - start), np.arange(start, rows.stop)] = -np.inf
        near = top_k(scores, k)
        yield rows, near, np.maximum(-np.take_along_axis(scores, near, axis=1), 0)


def neighbour_preservation(points: Floats, positions: NDArray[Any], k: int = 10, n_samples: int = 200) -> float:
    """The share of the k nearest neighbours of sampled points that are also among the k nearest in the plane."""
    k = min(k, len(points) - 1)
    rows = np.random.default_rng(0).permutation(len(points))[:n_samples]
    in_space, in_plane = _nearest_of(rows, points, k), _nearest_of(rows, np.asarray(positions, np.float64), k)
    return float((in_space[:, :, None] == in_plane[:, None, :]).any(axis=2).mean())


def _nearest_of(rows: NDArray[np.int64], table: NDArray[Any], k: int) -> NDArray[np.int64]:
    """The k nearest other rows (s, k) of some rows of a table."""
    scores = 2 * (table[rows] @ table.T) - (table**2).sum(axis=1)  # (s, n)
    scores[np.arange(len(rows)), rows] = -np.inf
    return top_k(scores, k)


def joint_probabilities(near: NDArray[np.int64], distances: Floats, perplexity: float) -> Any:
    """`(p_j|i + p_i|j) / 2n` as a sparse matrix (n, n); each precision β_i is found by bisection."""
    from scipy.sparse import csr_matrix

    n, k = near.shape
    scaled = distances - distances.min(axis=1, keepdims=True)
    scaled = scaled / np.maximum(scaled.mean(axis=1, keepdims=True), np.finfo(np.float32).tiny)
    low, high = np.full((n, 1), -20.0), np.full((n, 1), 20.0)  # bounds of log β
    for _ in range(40):
        middle = (low + high) / 2
        p = np.exp(-scaled * np.exp(middle))
        p /= p.sum(axis=1, keepdims=True)
        too_wide = -(p * np.log(np.maximum(p, 1e-30))).sum(axis=1, keepdims=True) > np.log(perplexity)
        low, high = np.where(too_wide, middle, low), np.where(too_wide, high, middle)
    conditional = csr_matrix((p.ravel(), near.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    return ((conditional + conditional.T) / (2 * n)).tocsr().astype(np.float32)


def optimise(points: NDArray[Any], probabilities: Any, n_steps: int) -> Iterator[Floats]:
    """Minimize the Kullback-Leibler divergence by gradient descent; yields the positions (n, 2) after each step."""
    n = len(points)
    positions = principal_plane(points).astype(np.float32)
    positions *= np.float32(1e-4 / max(float(positions.std(axis=0).max()), 1e-30))
    velocity, gains = np.zeros_like(positions), np.ones_like(positions)
    n_early = min(N_EARLY_STEPS, n_steps // 2)
    for step in range(n_steps):
        exaggeration = _EXAGGERATION if step < n_early else 1.0
        gradient = exaggeration * attraction(positions, probabilities) - repulsion(positions)  # a quarter of it
        gains = np.where(gradient * velocity < 0, gains + 0.2, np.maximum(0.8 * gains, 0.01)).astype(np.float32)
        velocity = 0.8 * velocity - max(n / exaggeration, _LEAST_RATE) * gains * gradient
        positions = positions + velocity
        positions = positions - positions.mean(axis=0)
        yield positions


def attraction(positions: Floats, probabilities: Any) -> Floats:
    """`Σ_j p_ij (y_i - y_j) / (1 + ‖y_i - y_j‖²)` (n, 2)."""
    from scipy.sparse import csr_matrix

    rows = np.repeat(np.arange(len(positions)), np.diff(probabilities.indptr))
    differences = positions[rows] - positions[probabilities.indices]  # (e, 2)
    weights = probabilities.data / (1 + (differences**2).sum(axis=1))
    matrix = csr_matrix((weights, probabilities.indices, probabilities.indptr), shape=probabilities.shape)
    return np.asarray(np.asarray(matrix.sum(axis=1)) * positions - matrix @ positions, np.float32)


def repulsion(positions: Floats) -> Floats:
    """`Σ_j (y_i - y_j) / (1 + ‖y_i - y_j‖²)² / Z` (n, 2), with `Z = Σ_{i≠j} 1 / (1 + ‖y_i - y_j‖²)`."""
    from scipy.fft import irfft2, next_fast_len, rfft2

    if len(positions) <= _N_EXACT:
        return _repulsion_of_pairs(positions)
    interpolation, size, step = _interpolate(positions)
    squares = (np.arange(size) * step) ** 2
    quadrant = (1 / (1 + squares[:, None] + squares[None, :])).astype(np.float32)  # (size, size)
    padded = next_fast_len(2 * size - 1, real=True)

    def transform(quadrant: Floats) -> NDArray[Any]:
        kernel = np.zeros((padded, padded), np.float32)
        kernel[:size, :size] = quadrant
        kernel[padded - size + 1 :, :size] = quadrant[:0:-1]
        kernel[:, padded - size + 1 :] = kernel[:, size - 1 : 0 : -1]
        return np.asarray(rfft2(kernel))

    kernel, squared_kernel = transform(quadrant), transform(quadrant**2)
    charges = np.column_stack([np.ones(len(positions), np.float32), positions])  # (n, 3)
    on_grid = np.asarray(interpolation.T @ charges).T.reshape(3, size, size)
    spectra = rfft2(on_grid, (padded, padded))
    fields = irfft2(np.concatenate([kernel * spectra[:1], squared_kernel * spectra]), (padded, padded))
    sums = interpolation @ fields[:, :size, :size].reshape(4, -1).T.astype(np.float32)  # (n, 4)
    total = max(float(sums[:, 0].sum(dtype=np.float64)) - len(positions), np.finfo(np.float32).tiny)
    return np.asarray((positions * sums[:, 1:2] - sums[:, 2:]) / total, np.float32)


def _repulsion_of_pairs(positions: Floats) -> Floats:
    differences = positions[:, None, :] - positions[None, :, :]  # (n, n, 2)
    kernel = 1 / (1 + (differences**2).sum(axis=2))
    total = max(float(kernel.sum(dtype=np.float64)) - len(positions), np.finfo(np.float32).tiny)
    return np.asarray((kernel[:, :, None] ** 2 * differences).sum(axis=1) / total, np.float32)


def _interpolate(positions: Floats) -> tuple[Any, int, float]:
    """Weights of the grid's nodes for each point (n, size²), the number of nodes per direction, their distance."""
    from scipy.sparse import csr_matrix

    low = positions.min(axis=0)
    width = max(float((positions.max(axis=0) - low).max()), 1e-6) * (1 + 1e-5)
    n_cells = int(np.clip(np.ceil(width), *_CELLS))
    in_cells = (positions - low) / (width / n_cells)  # (n, 2)
    cell = np.minimum(in_cells.astype(np.int64), n_cells - 1)
    t = (in_cells - cell) * _NODES - 0.5  # 0, 1, 2 at the nodes of the cell
    lagrange = np.stack([(t - 1) * (t - 2) / 2, -t * (t - 2), t * (t - 1) / 2], axis=-1)  # (n, 2, 3)
    weights = lagrange[:, 0, :, None] * lagrange[:, 1, None, :]  # (n, 3, 3)
    size = n_cells * _NODES
    node = cell[:, :, None] * _NODES + np.arange(_NODES)  # (n, 2, 3)
    index = node[:, 0, :, None] * size + node[:, 1, None, :]
    n, per_point = len(positions), _NODES**2
    starts = np.arange(0, n * per_point + 1, per_point)
    matrix = csr_matrix((weights.reshape(-1).astype(np.float32), index.reshape(-1), starts), shape=(n, size * size))
    return matrix, size, width / n_cells / _NODES
