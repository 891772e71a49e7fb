"""Is one set of vectors better than another? The paired bootstrap, on the items that both know.

Each resample draws the same items for all sets, so that what is hard for all cancels. With d the difference of two
values and s the standard deviation of the resampled differences (times sqrt(n / (n - 1)), which the bootstrap lacks),
d / s is looked up in Student's t with n - 1 degrees of freedom: for a metric that is a mean of items this is the paired
t-test, and one method serves for correlations and F1 too (Efron & Tibshirani 1993). No p is smaller than the 2^(1 - k)
of a sign test, k the items on which the two differ. Many comparisons are corrected by Holm's method (1979).

Items are taken as independent. Analogies made of the same words are not: the truth is then wider. Datasets that share
pairs of words are drawn together where their mean is compared (`means.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from stillvec.evaluation.evaluation_report import Comparison, Words
from stillvec.evaluation.intervals import Floats, Resampling, resampled
from stillvec.evaluation.tasks import Answers, Items, Task

_SCORED = 200  # resamples where the task itself must score each of them


@dataclass(frozen=True)
class BootstrapSample:
    """What one set of vectors gets on some items, and on each resample of them."""

    value: float
    resampled: Floats  # (R,)
    answers: NDArray[Any]  # (n,) none where the metric has no answer an item


def bootstrap(
    task: Task, items: Items, answers: Answers, chosen: NDArray[np.int64], resampling: Resampling, stream: int
) -> dict[str, BootstrapSample]:
    """Each metric of which more is better on the chosen items and on resamples of them, the same for every set.

    Means of answers and their correlations with the right ones are known by their value and come from weights, a
    thousand resamples at once; whatever else a metric is, the task scores each resample, a few hundred of them.
    """
    once = Resampling(0, resampling.seed)
    scored = task.score(items, answers, chosen, once)
    values = {metric: each.value for metric, each in scored.items() if task.ranks_by(metric)}
    found: dict[str, BootstrapSample] = {}
    for metric, value in values.items():
        answered = np.asarray(answers.values.get(metric, ()))
        answered = answered[chosen] if answered.shape == (len(items),) else answered[:0]
        quick = resampled(value, items.gold[chosen], answered, resampling, stream)
        found[metric] = BootstrapSample(value, quick if quick is not None else np.zeros(0), answered)
    slow = [metric for metric, each in found.items() if not len(each.resampled) and np.isfinite(each.value)]
    if slow and resampling.resamples:
        few = Resampling(min(_SCORED, resampling.resamples), resampling.seed)
        rows = [np.repeat(chosen, row.astype(int)) for block in few.weights(len(chosen), stream) for row in block]
        told = [task.score(items, answers, some, once) for some in rows]
        for metric in slow:
            found[metric] = replace(found[metric], resampled=np.array([each[metric].value for each in told]))
    return found


def compare(
    of: Mapping[str, BootstrapSample], n: int, *, task: str, dataset: str, metric: str, words: Words = "common"
) -> list[Comparison]:
    """Each two of several sets on the same `n` items; not yet corrected."""
    found = []
    for (a, first), (b, second) in combinations(of.items(), 2):
        difference = first.value - second.value
        low, high, p = _tested(difference, first.resampled, second.resampled, n)
        if len(first.answers) and len(first.answers) == len(second.answers):
            differing = int((first.answers != second.answers).sum())
            p = p if np.isnan(p) else min(1.0, max(p, 2.0 ** (1 - differing)))
        found.append(Comparison(task, dataset, metric, a, b, difference, low, high, p, p, n, words))
    return found


def holm(comparisons: Iterable[Comparison]) -> tuple[Comparison, ...]:
    """The same with `p_corrected`, for all that are on the same words together."""
    found = [*comparisons]
    for words in dict.fromkeys(each.words for each in found):
        family = [at for at, each in enumerate(found) if each.words == words and not np.isnan(each.p)]
        family.sort(key=lambda at: found[at].p)
        least = 0.0
        for rank, at in enumerate(family):
            least = max(least, min(1.0, (len(family) - rank) * found[at].p))
            found[at] = replace(found[at], p_corrected=least)
    return tuple(found)


def _tested(difference: float, a: Floats, b: Floats, n: int) -> tuple[float, float, float]:
    """The bounds of a difference and its p; NaN where there is nothing to test."""
    both = min(len(a), len(b))  # fewer are a beginning of more
    differences = a[:both] - b[:both]
    differences = differences[np.isfinite(differences)]
    if n < 2 or len(differences) < 2 or not np.isfinite(difference):
        return np.nan, np.nan, np.nan
    error = float(differences.std(ddof=1) * np.sqrt(n / (n - 1)))
    if error < 1e-12:
        return difference, difference, 1.0 if abs(difference) < 1e-12 else 0.0
    half = float(stdtrit(n - 1, 0.975)) * error
    return difference - half, difference + half, float(2 * stdtr(n - 1, -abs(difference) / error))
