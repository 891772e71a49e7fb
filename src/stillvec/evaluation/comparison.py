"""Compare sets of vectors by the paired bootstrap, on the items that both cover.

Each resample draws the same items for all sets, so that the difficulty of items cancels. With d the difference of two
values and s the standard deviation of the resampled differences (times sqrt(n / (n - 1)) to remove its bias), d / s is
tested by Student's t with n - 1 degrees of freedom: for a mean over items this is the paired t-test, which also applies
to correlations and F1 (Efron & Tibshirani 1993). No p is smaller than 2^(1 - k), that of a sign test, where k is the
number of items on which the two differ. Multiple comparisons are corrected by Holm's method (1979).

Items are assumed to be independent. Analogies made of the same words are not, so their true intervals are wider.
Datasets that share word pairs are resampled together to compare their mean (`means.py`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from stillvec.evaluation.evaluation_report import Comparison, Words
from stillvec.evaluation.intervals import Floats, Resampling, Rows, holm, resample_metric
from stillvec.evaluation.tasks import Answers, Items, Task

_MAX_SCORED = 200  # resamples if the task has to score each of them


@dataclass(frozen=True)
class BootstrapSample:
    """The value of one set of vectors on the chosen items, and on each resample of them."""

    value: float
    resampled: Floats  # (R,)
    answers: NDArray[Any]  # (n,), empty where the metric has no answer per item


def bootstrap(
    task: Task, items: Items, answers: Answers, chosen: Rows, resampling: Resampling, stream: int
) -> dict[str, BootstrapSample]:
    """Each metric by which sets are ranked, on the chosen items and on resamples of them, the same for every set.

    Means of answers and correlations are recognized by their value and computed from weights; for any other metric the
    task scores at most 200 resamples one by one.
    """
    once = Resampling(0, resampling.seed)
    scores = task.score(items, answers, chosen, once)
    samples: dict[str, BootstrapSample] = {}
    for metric, estimate in scores.items():
        if task.ranks_by(metric):
            values = np.asarray(answers.values.get(metric, ()))
            values = values[chosen] if values.shape == (len(items),) else values[:0]
            fast = resample_metric(estimate.value, items.gold[chosen], values, resampling, stream)
            samples[metric] = BootstrapSample(estimate.value, fast if fast is not None else np.zeros(0), values)
    slow = [metric for metric, sample in samples.items() if not len(sample.resampled) and np.isfinite(sample.value)]
    if slow and resampling.resamples:
        few = Resampling(min(_MAX_SCORED, resampling.resamples), resampling.seed)
        rows = [np.repeat(chosen, row.astype(int)) for block in few.weights(len(chosen), stream) for row in block]
        rescored = [task.score(items, answers, row, once) for row in rows]
        for metric in slow:
            values = np.array([estimates[metric].value for estimates in rescored])
            samples[metric] = replace(samples[metric], resampled=values)
    return samples


Place = tuple[str, str, str]  # task, dataset, metric


def compare(
    place: Place, samples: Mapping[str, BootstrapSample], n_items: int, limit: float = 2.0, words: Words = "common"
) -> list[Comparison]:
    """Compare each two sets on the same items, uncorrected; bounds of differences are clipped to `limit`."""
    comparisons = []
    for (a, first), (b, second) in combinations(samples.items(), 2):
        difference = first.value - second.value
        low, high, p = _test_difference(difference, first.resampled, second.resampled, n_items)
        low, high = (float(np.clip(bound, -max(limit, -difference), max(limit, difference))) for bound in (low, high))
        if len(first.answers) and len(first.answers) == len(second.answers):
            n_differing = int((first.answers != second.answers).sum())
            p = p if np.isnan(p) else min(1.0, max(p, 2.0 ** (1 - n_differing)))
        comparisons.append(Comparison(*place, a, b, difference, low, high, p, p, n_items, words))
    return comparisons


def correct_holm(comparisons: Iterable[Comparison]) -> tuple[Comparison, ...]:
    """Set `p_corrected`, over all comparisons on the same words."""
    corrected = [*comparisons]
    for words in dict.fromkeys(comparison.words for comparison in corrected):
        family = [at for at, pair in enumerate(corrected) if pair.words == words and not np.isnan(pair.p)]
        for at, p in zip(family, holm(np.array([corrected[at].p for at in family])).tolist(), strict=True):
            corrected[at] = replace(corrected[at], p_corrected=p)
    return tuple(corrected)


def _test_difference(difference: float, a: Floats, b: Floats, n_items: int) -> tuple[float, float, float]:
    """The bounds of a difference and its p; NaN if they are not defined."""
    n_resamples = min(len(a), len(b))  # the shorter is a prefix of the same draws
    differences = a[:n_resamples] - b[:n_resamples]
    differences = differences[np.isfinite(differences)]
    if n_items < 2 or len(differences) < 2 or not np.isfinite(difference):
        return np.nan, np.nan, np.nan
    error = float(differences.std(ddof=1) * np.sqrt(n_items / (n_items - 1)))
    if error < 1e-12:
        return difference, difference, 1.0 if abs(difference) < 1e-12 else 0.0
    half = float(stdtrit(n_items - 1, 0.975)) * error
    return difference - half, difference + half, float(2 * stdtr(n_items - 1, -abs(difference) / error))
