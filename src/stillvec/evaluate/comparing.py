"""Is one set of vectors better than another? The paired bootstrap, on the items that both know.

Each resample draws the same items for all sets, so that what is hard for all cancels. With d the difference of two
values and s the standard deviation of the resampled differences (times sqrt(n / (n - 1)), which the bootstrap lacks),
d / s is looked up in Student's t with n - 1 degrees of freedom: for a metric that is a mean of items this is the paired
t-test, and one method serves for correlations and F1 too (Efron & Tibshirani 1993). No p is smaller than the 2^(1 - k)
of a sign test, k the items on which the two differ. Many comparisons are corrected by Holm's method (1979).

Items are taken as independent. Analogies made of the same words are not, and datasets may share pairs (WordSim-353 and
its two parts): the truth is then wider.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from stillvec.errors import CallError
from stillvec.evaluate.datasets import datasets
from stillvec.evaluate.intervals import Floats, Resampling, percentiles, resampled, spearman
from stillvec.evaluate.lookup import Lookup
from stillvec.evaluate.report import Comparison, Words
from stillvec.evaluate.similarity import Similarity
from stillvec.evaluate.tasks import Answers, Items, Task
from stillvec.registry import nearest_known
from stillvec.vectors import WordVectors

_SCORED = 200  # resamples where the task itself must score each of them


class Difference(NamedTuple):
    """How much better the first is; the two differ, at 95%, where `low` and `high` have one sign."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Drawn:
    """What one set of vectors gets on some items, and on each resample of them."""

    value: float
    resampled: Floats  # (R,)
    answers: NDArray[Any]  # (n,) none where the metric has no answer an item


def drawn(
    task: Task, items: Items, answers: Answers, chosen: NDArray[np.int64], resampling: Resampling, stream: int
) -> dict[str, Drawn]:
    """Each metric on the chosen items and on resamples of them, which are the same for every set of vectors.

    Means of answers and their correlations with the right ones are known by their value and come from weights, a
    thousand resamples at once; whatever else a metric is, the task scores each resample, a few hundred of them.
    """
    once = Resampling(0, resampling.seed)
    values = {metric: each.value for metric, each in task.score(items, answers, chosen, once).items()}
    found: dict[str, Drawn] = {}
    for metric, value in values.items():
        answered = np.asarray(answers.values.get(metric, ()))
        answered = answered[chosen] if answered.shape == (len(items),) else answered[:0]
        quick = resampled(value, items.gold[chosen], answered, resampling, stream)
        found[metric] = Drawn(value, quick if quick is not None else np.zeros(0), answered)
    slow = [metric for metric, each in found.items() if not len(each.resampled) and np.isfinite(each.value)]
    if slow and resampling.resamples:
        few = Resampling(min(_SCORED, resampling.resamples), resampling.seed)
        rows = [np.repeat(chosen, row.astype(int)) for block in few.weights(len(chosen), stream) for row in block]
        scored = [task.score(items, answers, some, once) for some in rows]
        for metric in slow:
            found[metric] = replace(found[metric], resampled=np.array([each[metric].value for each in scored]))
    return found


def compared(
    of: Mapping[str, Drawn], n: int, *, task: str, dataset: str, metric: str, words: Words = "common"
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


def averaged(sets: Sequence[Mapping[str, Drawn]]) -> dict[str, Drawn]:
    """The mean over datasets of what each set of vectors gets; datasets on which one has no value are left out."""
    whole = [of for of in sets if all(np.isfinite(each.value) for each in of.values())]
    return {
        name: Drawn(
            float(np.mean([of[name].value for of in whole])),
            np.mean([of[name].resampled for of in whole], axis=0),
            np.zeros(0),
        )
        for name in (whole[0] if whole else ())
    }


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


def paired_difference(
    a: WordVectors,
    b: WordVectors,
    data: str | os.PathLike[str] | None = None,
    names: Sequence[str] | None = None,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> Difference:
    """The mean of Spearman's ρ over similarity datasets for `a`, less that for `b`; `names` chooses some.

    Each resample draws the same pairs of words for both, dataset by dataset, so that what is hard for both
    cancels.
    """
    found = {dataset.name: dataset for dataset in datasets(data, ["similarity"])}
    for name in names or ():
        if name not in found:
            raise CallError(f"There is no similarity dataset {name!r}; {nearest_known(name, found)}")
    task, lookups = Similarity(), (Lookup(a), Lookup(b))
    resampling = Resampling(resamples, seed)
    values, differences = [], []
    for stream, name in enumerate(names or found):
        items = task.read(found[name].path)
        first, second = (task.answer(lookup, items) for lookup in lookups)
        both = first.covered & second.covered
        if both.sum() < 2:
            continue
        gold = items.gold[both]
        x, y = (answers.values["spearman"][both] for answers in (first, second))
        blocks = [np.ones((1, len(gold))), *resampling.weights(len(gold), stream)]
        some = np.concatenate([spearman(w, gold, x) - spearman(w, gold, y) for w in blocks])
        values.append(some[0])
        differences.append(some[1:])
    if not values:
        raise CallError("The two sets of vectors know no two pairs of a similarity dataset in common.")
    return Difference(float(np.mean(values)), *percentiles([np.mean(differences, axis=0)]))
