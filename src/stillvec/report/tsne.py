"""t-SNE of a few points, exactly (van der Maaten & Hinton 2008).

`p_j|i ∝ exp(-‖x_i - x_j‖² β_i)` with β_i such that the entropy is log perplexity; `q_ij ∝ 1 / (1 + ‖y_i - y_j‖²)`;
the gradient of `KL(P ‖ Q)` is `4 Σ_j (p_ij - q_ij) (y_i - y_j) / (1 + ‖y_i - y_j‖²)`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def tsne(points: NDArray[Any], perplexity: float = 8.0, steps: int = 750, rate: float = 20.0) -> Floats:
    """Places in a plane (n, 2) of n points (n, d); it starts from the principal plane, so the same come the same."""
    n = len(points)
    if n < 4:
        return principal_plane(points)
    shares = affinities(squared_distances(np.asarray(points, np.float64)), min(perplexity, (n - 1) / 3))
    places = principal_plane(points)
    places = 1e-2 * places / max(float(np.abs(places).max()), np.finfo(float).tiny)
    moved, gains = np.zeros_like(places), np.ones_like(places)
    for step in range(steps):
        early = step < 200
        _, slope = divergence(places, shares * (4 if early else 1))
        gains = np.where(slope * moved < 0, gains + 0.2, np.maximum(0.8 * gains, 0.01))
        moved = (0.5 if early else 0.8) * moved - rate * gains * slope
        places = places + moved
        places = places - places.mean(axis=0)
    return places


def divergence(places: Floats, shares: Floats) -> tuple[float, Floats]:
    """`Σ p log(p / q)` and its gradient (n, 2)."""
    near = 1 / (1 + squared_distances(places))  # (n, n)
    np.fill_diagonal(near, 0)
    q = np.maximum(near / near.sum(), 1e-300)
    held = shares > 0
    cost = float((shares[held] * np.log(shares[held] / q[held])).sum())
    pull = (shares - shares.sum() * near / near.sum()) * near
    return cost, 4 * (pull.sum(axis=1)[:, None] * places - pull @ places)


def affinities(distances: Floats, perplexity: float) -> Floats:
    """`(p_j|i + p_i|j) / 2n` (n, n); each β_i is found by halving."""
    n = len(distances)
    shares = np.zeros((n, n))
    for row in range(n):
        others = np.delete(distances[row], row)
        others = (others - others.min()) / max(float(np.median(others)), np.finfo(float).tiny)
        low, high = -30.0, 30.0  # of log β
        for _ in range(60):
            middle = (low + high) / 2
            p = np.exp(-others * np.exp(middle))
            p /= p.sum()
            entropy = -(p[p > 0] * np.log(p[p > 0])).sum()
            low, high = (middle, high) if entropy > np.log(perplexity) else (low, middle)
        shares[row, np.arange(n) != row] = p
    return np.asarray((shares + shares.T) / (2 * n))


def principal_plane(points: NDArray[Any]) -> Floats:
    """The first two principal components (n, 2); the largest entry of each axis is positive."""
    centred = np.asarray(points, np.float64) - np.mean(points, axis=0)
    left, lengths, axes = np.linalg.svd(centred, full_matrices=False)
    places = np.zeros((len(centred), 2))
    kept = min(2, len(lengths))
    signs = np.sign(axes[np.arange(kept), np.abs(axes[:kept]).argmax(axis=1)])
    places[:, :kept] = left[:, :kept] * lengths[:kept] * np.where(signs == 0, 1, signs)
    return places


def squared_distances(points: Floats) -> Floats:
    squares = (points**2).sum(axis=1)
    return np.asarray(np.maximum(squares[:, None] + squares[None, :] - 2 * points @ points.T, 0))
