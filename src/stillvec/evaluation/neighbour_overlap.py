"""How alike two tables are: the share of a word's k nearest words that both agree on.

    overlap = mean over words w of |nearest_a(w) ∩ nearest_b(w)| / k

Neighbours are sought among the words that both have, so that the two are asked the same; by cosine, block by block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.evaluation.intervals import Resampling, mean_estimate
from stillvec.evaluation.lookup import Lookup
from stillvec.numerics import top_k, unit_rows
from stillvec.vectors import WordVectors

_CELLS = 1 << 23  # cosines held at once: 32 MB


class OverlapEstimate(NamedTuple):
    """The mean share of common neighbours, its 95% bounds, the value expected by chance, and the number of words."""

    value: float
    low: float
    high: float
    chance: float
    n_words: int


def neighbour_overlap(
    a: WordVectors,
    b: WordVectors,
    k: int = 10,
    words: int | Sequence[str] | None = 10_000,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> OverlapEstimate:
    """Compare the neighbours of words that both contain: the first `words` of `a`, those given, or with None all.

    These words are also the candidates. Bounds: percentile bootstrap over the words.
    """
    if k < 1:
        raise UsageError.expected("at least one neighbour", k, where="k")
    asked = [*a.words] if words is None or isinstance(words, int) else [*dict.fromkeys(words)]
    rows = np.stack([Lookup(vectors).rows(asked) for vectors in (a, b)])  # (2, n)
    rows = rows[:, (rows >= 0).all(axis=0)]
    if isinstance(words, int):
        rows = rows[:, :words]
    n = rows.shape[1]
    if n <= k:
        raise UsageError.expected(f"more than {k} common words to compare {k} neighbours", n)
    tables = [unit_rows(Lookup(vectors).take(common)) for vectors, common in zip((a, b), rows, strict=True)]
    shares = np.zeros(n)
    step = max(1, _CELLS // n)
    for start in range(0, n, step):
        near = np.zeros((min(step, n - start), n), np.int8)
        for table in tables:
            near[np.arange(len(near))[:, None], _nearest(table, start, len(near), k)] += 1
        shares[start : start + len(near)] = (near == 2).sum(axis=1) / k
    return OverlapEstimate(*mean_estimate(shares, Resampling(resamples, seed)), k / (n - 1), n)


def _nearest(table: NDArray[np.float32], start: int, count: int, k: int) -> NDArray[np.int64]:
    """The rows of the `k` nearest words of each of `count` words (count, k), not the word itself."""
    cosines = table[start : start + count] @ table.T
    cosines[np.arange(count), start + np.arange(count)] = -np.inf
    return top_k(cosines, k)
