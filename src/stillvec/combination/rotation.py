"""Rotation of one space onto another, and mutual nearest words corrected for hubs.

Orthogonal Procrustes (Schönemann 1966); cross-domain similarity local scaling (Conneau et al. 2018).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.combination.joint_space import Floats, powers
from stillvec.numerics import principal_axes

_CELLS = 1 << 23  # cosines per block: 32 MB
Rows = NDArray[np.int64]


def procrustes(x: NDArray[Any], z: NDArray[Any], weights: NDArray[Any] | None = None) -> Floats:
    """The rotation `R` (d, d) that minimises `Σ w ‖x R - z‖²` over the rows: `R = U Vᵀ` of `Xᵀ W Z = U S Vᵀ`."""
    u, _, vt = np.linalg.svd((x if weights is None else x * weights[:, None]).T @ z)
    return np.asarray(u @ vt)


def reweight_directions(x: NDArray[Any], z: NDArray[Any], power: float) -> tuple[Floats, Floats]:
    """Maps of both sides into the space of `x` (d, d), directions weighted by the agreement of the two.

    Whitening, rotation, re-weighting and de-whitening (Artetxe et al. 2018): with `A = (XᵀX)^½`, `B = (ZᵀZ)^½`
    and `A⁻¹ XᵀZ B⁻¹ = U S Vᵀ` they are `A⁻¹ U S^power Uᵀ A` and `B⁻¹ V S^power Vᵀ B V Uᵀ`.
    """
    sides = [principal_axes(np.asarray(rows, np.float64).T @ rows) for rows in (x, z)]
    a, b = ((axes * powers(values, 0.5)) @ axes.T for values, axes in sides)
    a_inverse, b_inverse = ((axes * powers(values, -0.5)) @ axes.T for values, axes in sides)
    u, agreement, vt = np.linalg.svd(a_inverse @ (np.asarray(x, np.float64).T @ z) @ b_inverse)
    weights = powers(agreement, power)
    return a_inverse @ (u * weights) @ u.T @ a, b_inverse @ (vt.T * weights) @ vt @ b @ vt.T @ u.T


def neighbourhood(x: NDArray[Any], z: NDArray[Any], neighbours: int) -> NDArray[np.float32]:
    """The mean cosine (n,) of each row of `x` with its nearest rows of `z`; rows have unit length."""
    k = min(neighbours, len(z))
    means = [np.partition(cosines, -k, axis=1)[:, -k:].mean(1) for _, cosines in cosine_blocks(x, z)]
    return np.concatenate([np.zeros(0, np.float32), *means])


def mutual_nearest(x: NDArray[Any], z: NDArray[Any], neighbours: int = 10) -> tuple[Rows, Rows]:
    """Rows of `x` and `z` that are each other's nearest by CSLS, `2 cos(x, z) - r(x) - r(z)`.

    `r` is the mean cosine with the nearest rows on the other side: it discounts hubs.
    """
    hub_x, hub_z = neighbourhood(x, z, neighbours), neighbourhood(z, x, neighbours)
    best_z = np.zeros(len(x), np.int64)
    best_x, best = np.zeros(len(z), np.int64), np.full(len(z), -np.inf, np.float32)
    for rows, cosines in cosine_blocks(x, z):
        scores = 2 * cosines - hub_x[rows, None] - hub_z
        best_z[rows] = scores.argmax(1)
        top = scores.argmax(0)
        value = scores[top, np.arange(len(z))]
        better = value > best
        best[better], best_x[better] = value[better], rows.start + top[better]
    mutual = np.flatnonzero(best_x[best_z] == np.arange(len(x)))
    return mutual, best_z[mutual]


def cosine_blocks(x: NDArray[Any], z: NDArray[Any]) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """Yield rows of `x` and their cosines with all rows of `z` (b, m); rows have unit length."""
    x, z = np.asarray(x, np.float32), np.asarray(z, np.float32)
    step = max(1, _CELLS // max(1, len(z)))
    for start in range(0, len(x), step):
        rows = slice(start, min(start + step, len(x)))
        yield rows, x[rows] @ z.T
