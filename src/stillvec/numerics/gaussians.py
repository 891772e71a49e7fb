"""Texts as diagonal Gaussians, by word linear operators (Chen & Gimpel 2020): each word is an affine map.

`z_0 ~ N(0, I), z_i = A_i ⊙ (z_{i-1} + B_i)`, so that `log σ² = 2 Σ_i log A_i` and `μ = Σ_i B_i exp(Σ_{j ≥ i} log A_j)`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_BLOCK = 1 << 12  # texts composed at once


class Gaussians(NamedTuple):
    mean: Floats  # (n, k)
    log_variance: Floats  # (n, k)

    def entropy(self) -> Floats:
        """In nats (n,): `½ Σ log(2πe σ²)`."""
        return np.asarray(0.5 * (self.log_variance + np.log(2 * np.pi * np.e)).sum(axis=1))

    def moments(self) -> Floats:
        """Means and variances side by side (n, 2k), whose cosine is the similarity of texts in the paper."""
        return np.hstack([self.mean, np.exp(self.log_variance)])


def compose_operators(table: NDArray[Any], rows: NDArray[np.int64], text: NDArray[np.int64], n_texts: int) -> Gaussians:
    """The Gaussian of each text: `table` (V, 2k) has shifts and log scales of words, `text` the text of each row.

    A text without words is N(0, I).
    """
    k = table.shape[1] // 2
    mean, log_variance = np.zeros((n_texts, k)), np.zeros((n_texts, k))
    edges = np.searchsorted(text, np.arange(n_texts + 1))
    for first in range(0, n_texts, _BLOCK):
        last = min(first + _BLOCK, n_texts)
        inside = slice(int(edges[first]), int(edges[last]))
        shifts, scales = np.split(np.asarray(table[rows[inside]], np.float64), [k], axis=1)  # (W, k)
        of_text = text[inside] - first
        np.add.at(log_variance, text[inside], 2 * scales)
        before = np.cumsum(scales, axis=0) - scales  # of all words before it, over all texts
        start = edges[first:last][of_text] - edges[first]  # the first word of the same text
        own = before - before[start]
        np.add.at(mean, text[inside], shifts * np.exp(log_variance[text[inside]] / 2 - own))
    return Gaussians(mean, log_variance)


def compare_gaussians(a: Gaussians, b: Gaussians) -> Floats:
    """The logarithm of the expected likelihood kernel of each pair (n,): `log N(0; μ_a - μ_b, Σ_a + Σ_b)`."""
    variance = np.exp(a.log_variance) + np.exp(b.log_variance)
    distances = (a.mean - b.mean) ** 2 / variance
    return np.asarray(-0.5 * (np.log(2 * np.pi * variance) + distances).sum(axis=1))
