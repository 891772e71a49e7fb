"""RCSLS (Joulin et al. 2018): a linear map trained on a relaxation of CSLS, by which translations are retrieved.

    loss(W) = 1/n Σ_i [-2 x_i W z_i + mean of x_i W z over the k z of largest product + the same of x W z_i over x]

Pairs (x_i, z_i) of unit rows; neighbours are taken among the candidates of both sides. The loss is convex in W, and
linear while the neighbours stay the same: `loss = <W, G>` with its gradient `G`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.combination.joint_space import Floats
from stillvec.combination.rotation import cosine_blocks

_LEAST_RATE = 1e-4  # as in the authors' program


def rcsls_gradient(
    w: Floats, pairs: tuple[Floats, Floats], candidates: tuple[Floats, Floats], neighbours: int
) -> tuple[float, Floats]:
    """The loss of a map `w` (d, d), and its gradient (d, d)."""
    (x, z), (all_x, all_z) = pairs, candidates
    z_near = mean_nearest(x @ w, all_z, all_z, neighbours)  # (n, d)
    x_near = mean_nearest(z, all_x @ w, all_x, neighbours)  # (n, d)
    gradient = (x.T @ (z_near - 2 * z) + x_near.T @ z) / len(x)
    return float((w * gradient).sum()), gradient


def mean_nearest(queries: NDArray[Any], keys: NDArray[Any], values: NDArray[Any], neighbours: int) -> Floats:
    """For each query (n, d) the mean of the values (m, d) of the keys with the largest products."""
    k = min(neighbours, len(keys))
    means = np.empty(queries.shape)
    for rows, products in cosine_blocks(queries, keys):
        means[rows] = values[np.argpartition(products, -k, axis=1)[:, -k:]].mean(1)
    return means


def minimize_rcsls(
    start: Floats,
    pairs: tuple[Floats, Floats],
    candidates: tuple[Floats, Floats],
    *,
    neighbours: int,
    steps: int,
    rate: float,
    spectral: bool,
) -> Floats:
    """Gradient descent from a map; the rate is halved where the loss rises.

    The loss has no minimum without a bound on the map: the number of steps matters, unless `spectral` limits its
    singular values to 1.
    """
    w, (loss, gradient) = start, rcsls_gradient(start, pairs, candidates, neighbours)
    for _ in range(steps):
        trial = w - rate * gradient
        trial = limit_singular_values(trial) if spectral else trial
        trial_loss, trial_gradient = rcsls_gradient(trial, pairs, candidates, neighbours)
        if trial_loss < loss:
            w, loss, gradient = trial, trial_loss, trial_gradient
        elif (rate := rate / 2) < _LEAST_RATE:
            break
    return w


def limit_singular_values(w: Floats) -> Floats:
    """The nearest matrix whose singular values are at most 1."""
    u, values, vt = np.linalg.svd(w)
    return np.asarray((u * np.minimum(values, 1)) @ vt)
