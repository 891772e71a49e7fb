"""BM25 (Robertson & Zaragoza 2009): the weight of a word in a text.

idf(w) tf (k1 + 1) / (tf + k1 (1 - b + b length / mean length)),   idf(w) = log(1 + (N - n_w + 1/2) / (n_w + 1/2))
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def bm25_norms(lengths: Array, k1: float, b: float) -> Array:
    """`k1 (1 - b + b length / mean length)` of each text (n,)."""
    mean = max(float(lengths.mean()), 1.0) if len(lengths) else 1.0
    return np.asarray(k1 * (1 - b + b * lengths / mean))


def bm25_weights(counts: Array, norms: Array, n_with: Any, n_texts: int, k1: float) -> Array:
    """The weight of words with these counts in texts with these norms; `n_with` of all texts have the word."""
    idf = np.log1p((n_texts - n_with + 0.5) / (n_with + 0.5))
    return np.asarray(idf * counts * (k1 + 1) / (counts + norms))
