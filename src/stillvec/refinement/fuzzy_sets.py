"""Fuzzy set operations, entropy and divergence on tuples of feature probabilities (Bhat et al. 2020).

Functions take arrays whose last axis is the features, with values between 0 and 1, as `feature_tuples` returns;
`nearest` and `analogy` take such vectors, and `set_query.query` a set expression.
Where the formulas in the paper contradict each other: one power in the denominator, `min(1, max(0, ·))` for the
disjoint union, A in B where `A_i <= B_i` everywhere.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.input_checks import check_count
from stillvec.numerics import iterate_blocks
from stillvec.vectors import WordVectors

Features = NDArray[Any]
Scored = list[tuple[str, float]]
_TINY = float(np.finfo(np.float32).tiny)


def intersection(a: Features, b: Features) -> Features:
    return np.asarray(a * b)


def union(a: Features, b: Features) -> Features:
    return np.asarray(a + b - a * b)


def complement(a: Features) -> Features:
    return 1 - a


def difference(a: Features, b: Features) -> Features:
    return np.asarray(a - np.minimum(a, b))


def disjoint_union(a: Features, b: Features) -> Features:
    return np.asarray(np.clip(a + b, 0, 1))


def cardinality(a: Features) -> Any:
    return np.sum(a, axis=-1, dtype=np.float64)


def entropy(a: Features) -> Any:
    """`Σ -a ln a - (1 - a) ln(1 - a)`: high for words without distinctive features."""
    return cross_entropy(a, a)


def cross_entropy(s: Features, t: Features) -> Any:
    """`Σ -s ln t - (1 - s) ln(1 - t) = H(s) + D(s‖t)`: smaller is closer; not symmetric."""
    s, t = np.asarray(s, np.float64), np.asarray(t, np.float64)
    return np.sum(-_times_log(s, t) - _times_log(1 - s, 1 - t), axis=-1)


def divergence(s: Features, t: Features, *, one_sided: bool = False) -> Any:
    """Kullback-Leibler divergence `D(s‖t)` of Bernoulli features; one-sided: `Σ s ln(s/t)` only, as in the paper."""
    s, t = np.asarray(s, np.float64), np.asarray(t, np.float64)
    heads = np.sum(_times_log(s, s) - _times_log(s, t), axis=-1)
    return heads if one_sided else heads + np.sum(_times_log(1 - s, 1 - s) - _times_log(1 - s, 1 - t), axis=-1)


DISTANCES: dict[str, Callable[[Features, Features], Any]] = {
    "cross_entropy": cross_entropy,
    "divergence": divergence,
    "one_sided_divergence": partial(divergence, one_sided=True),
}  # smaller is closer; none is symmetric


def check_tuples(rows: Features) -> None:
    """Refuse rows with a value that is no probability."""
    outside = rows[~((rows >= 0) & (rows <= 1))]
    if outside.size:
        cure = "make feature tuples with stillvec refine VECTORS --step feature_tuples"
        raise UsageError.expected("probabilities from 0 to 1", f"{outside.flat[0]:.4g}", where="the vectors", cure=cure)


def analogy_target(a: Features, b: Features, c: Features) -> Features:
    """`(b ⊔ c) \\ a`, what is to c as b is to a: `b + c - min(b + c, a)`, clipped to (0, 1]."""
    return np.clip(difference(np.asarray(b, np.float64) + c, a), _TINY, 1)


def nearest(tuples: WordVectors, target: Features, k: int = 10, *, exclude: Iterable[str] = ()) -> Scored:
    """The `k` words with the lowest cross-entropy `H(target, word)`, closest first."""
    check_count(k, "k")
    distances = np.zeros(len(tuples))
    for rows, block in iterate_blocks(tuples.matrix):
        check_tuples(block)
        distances[rows] = cross_entropy(target, block)
    excluded = {row for word in exclude if (row := tuples.vocabulary.row(word)) is not None}
    order = (row for row in np.argsort(distances, kind="stable").tolist() if row not in excluded)
    return [(tuples.words[row], float(distances[row])) for row, _ in zip(order, range(k), strict=False)]


def analogy(tuples: WordVectors, a: str, b: str, c: str, k: int = 1) -> Scored:
    """a is to b as c is to what? The words closest to `(b ⊔ c) \\ a`."""
    return nearest(tuples, analogy_target(*(tuples[word] for word in (a, b, c))), k, exclude=(a, b, c))


def _times_log(a: Features, b: Features) -> Features:
    """`a ln b`; 0 where a is 0."""
    return np.where(a > 0, a * np.log(np.where(b > 0, b, _TINY)), 0)
