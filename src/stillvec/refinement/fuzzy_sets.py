"""The algebra of fuzzy sets over tuples of feature probabilities (Bhat et al. 2020), entropy and divergence.

All functions take arrays whose last axis is the features, with numbers between 0 and 1, as `feature_tuples` gives them.
Where the paper's prints contradict each other we take: one power in the denominator, `min(1, max(0, ·))` for the
disjoint union, A in B where `A_i <= B_i` everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.vectors import WordVectors

Features = NDArray[Any]
_TINY = float(np.finfo(np.float32).tiny)
_BLOCK = 1 << 14


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


def included(a: Features, b: Features) -> Any:
    """Whether a is in b."""
    return np.all(a <= b, axis=-1)


def cardinality(a: Features) -> Any:
    return np.sum(a, axis=-1, dtype=np.float64)


def entropy(a: Features) -> Any:
    """`Σ -a ln a - (1 - a) ln(1 - a)`: high for words that have a little of everything."""
    return cross_entropy(a, a)


def cross_entropy(s: Features, t: Features) -> Any:
    """`Σ -s ln t - (1 - s) ln(1 - t) = H(s) + D(s‖t)`: smaller is closer, and it is not symmetric."""
    s, t = np.asarray(s, np.float64), np.asarray(t, np.float64)
    return np.sum(-_times_log(s, t) - _times_log(1 - s, 1 - t), axis=-1)


def divergence(s: Features, t: Features, *, one_sided: bool = False) -> Any:
    """Kullback and Leibler's `D(s‖t)` of the features as coins; one-sided: `Σ s ln(s/t)` only, as it is printed."""
    s, t = np.asarray(s, np.float64), np.asarray(t, np.float64)
    heads = np.sum(_times_log(s, s) - _times_log(s, t), axis=-1)
    return heads if one_sided else heads + np.sum(_times_log(1 - s, 1 - s) - _times_log(1 - s, 1 - t), axis=-1)


def nearest(
    tuples: WordVectors, wanted: Features, k: int = 10, *, exclude: Iterable[str] = ()
) -> list[tuple[str, float]]:
    """The words whose features a set comes closest to, by cross-entropy; the first is the closest."""
    blocks = (tuples.matrix[start : start + _BLOCK] for start in range(0, len(tuples), _BLOCK))
    far = np.concatenate([cross_entropy(wanted, block) for block in blocks])
    hidden = {row for word in exclude if (row := tuples.vocabulary.row(word)) is not None}
    order = (row for row in np.argsort(far, kind="stable").tolist() if row not in hidden)
    return [(tuples.words[row], float(far[row])) for row, _ in zip(order, range(k), strict=False)]


def analogy(tuples: WordVectors, a: str, b: str, c: str, k: int = 1) -> list[tuple[str, float]]:
    """What is to `c` as `b` is to `a`: `(b ⊔ c) \\ a`, and the words closest to it."""
    first, second, third = (tuples[word].astype(np.float64) for word in (a, b, c))
    wanted = np.clip(difference(second + third, first), _TINY, 1)
    return nearest(tuples, wanted, k, exclude=(a, b, c))


def _times_log(a: Features, b: Features) -> Features:
    """`a ln b`, and 0 where a is 0, whatever b."""
    return np.where(a > 0, a * np.log(np.where(b > 0, b, _TINY)), 0)
