"""Ranks and the correlation of ranks."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def rank_values(values: Array) -> NDArray[np.float64]:
    """Ranks from 1 along the last axis; equal values share their mean rank."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(values, axis=-1), np.float64)


def spearman(x: Array, y: Array) -> Array:
    """Spearman's ρ along the last axis; 0 where one side does not vary."""
    a, b = (rank_values(side) for side in (x, y))
    a, b = (side - side.mean(-1, keepdims=True) for side in (a, b))
    scale = np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
    return np.asarray(np.divide((a * b).sum(-1), scale, out=np.zeros_like(scale), where=scale > 0))
