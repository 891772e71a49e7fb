"""Similarity of two sets of vectors: the share of k nearest neighbours that a word has in both.

    overlap = mean over words w of |nearest_a(w) ∩ nearest_b(w)| / k

Candidates are the words that both sets contain. Neighbours are ranked by cosine, computed in blocks.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stillvec.errors import UsageError
from stillvec.evaluation.intervals import Resampling, mean_estimate
from stillvec.heads.lookup import Lookup
from stillvec.numerics import nearest_rows, unit_rows
from stillvec.vectors import WordVectors


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
    """Compare the neighbours of common words: the first `words` in the order of `a`, a list of words, or None for all.

    The same words are the candidates. Bounds: percentile bootstrap over words.
    """
    if k < 1:
        raise UsageError.expected("at least one neighbour", k, where="k")
    queries = [*a.words] if words is None or isinstance(words, int) else [*dict.fromkeys(words)]
    rows = np.stack([Lookup(vectors).rows(queries) for vectors in (a, b)])  # (2, n)
    rows = rows[:, (rows >= 0).all(axis=0)]
    if isinstance(words, int):
        rows = rows[:, :words]
    n = rows.shape[1]
    if n <= k:
        raise UsageError.expected(f"more than {k} common words to compare {k} neighbours", n)
    tables = [unit_rows(Lookup(vectors).take(common)) for vectors, common in zip((a, b), rows, strict=True)]
    of_a, of_b = (nearest_rows(table, k) for table in tables)  # (n, k)
    keys = np.arange(n)[:, None] * n
    shares = np.isin(of_a + keys, of_b + keys).mean(axis=1)
    return OverlapEstimate(*mean_estimate(shares, Resampling(resamples, seed)), k / (n - 1), n)
