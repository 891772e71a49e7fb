"""t-SNE by its definition (van der Maaten & Hinton 2008), slow and exact: a reference for `numerics.tsne`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def divergence(positions: Floats, probabilities: Floats) -> tuple[float, Floats]:
    """`Σ p log(p / q)` and its gradient (n, 2), with `q_ij ∝ 1 / (1 + ‖y_i - y_j‖²)`."""
    near = 1 / (1 + squared_distances(positions))  # (n, n)
    np.fill_diagonal(near, 0)
    q = np.maximum(near / near.sum(), 1e-300)
    nonzero = probabilities > 0
    cost = float((probabilities[nonzero] * np.log(probabilities[nonzero] / q[nonzero])).sum())
    pull = (probabilities - probabilities.sum() * near / near.sum()) * near
    return cost, 4 * (pull.sum(axis=1)[:, None] * positions - pull @ positions)


def affinities(distances: Floats, perplexity: float) -> Floats:
    """`(p_j|i + p_i|j) / 2n` (n, n); each β_i is found by bisection."""
    n = len(distances)
    probabilities = np.zeros((n, n))
    for row in range(n):
        others = np.delete(distances[row], row)
        others = (others - others.min()) / max(float(np.median(others)), np.finfo(float).tiny)
        low, high = -30.0, 30.0  # bounds of log β
        for _ in range(60):
            middle = (low + high) / 2
            p = np.exp(-others * np.exp(middle))
            p /= p.sum()
            entropy = -(p[p > 0] * np.log(p[p > 0])).sum()
            low, high = (middle, high) if entropy > np.log(perplexity) else (low, middle)
        probabilities[row, np.arange(n) != row] = p
    return np.asarray((probabilities + probabilities.T) / (2 * n))


def squared_distances(points: Floats) -> Floats:
    squares = (points**2).sum(axis=1)
    return np.asarray(np.maximum(squares[:, None] + squares[None, :] - 2 * points @ points.T, 0))
