"""Who stands where: rows of scores, means over datasets and tasks with their intervals, and one sentence about them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from stillvec.evaluate import Report, Score
from stillvec.report.markup import number

Words = Literal["own", "common"]
_UNORDERED = {"bias"}  # tasks whose number is told, and of which neither more nor less is better
_YARDSTICKS = ("-chance", "-control")  # endings of metrics that others are held against


def ordered(task: str, metric: str) -> bool:
    """Whether more of a metric is better."""
    return task not in _UNORDERED and not metric.endswith(_YARDSTICKS)


@dataclass(frozen=True)
class Row:
    """The scores of all sets by one metric on one dataset."""

    task: str
    dataset: str
    metric: str
    words: str
    scores: Mapping[str, Score]  # by the name of the set

    @property
    def ordered(self) -> bool:
        return ordered(self.task, self.metric)

    def shown(self, name: str) -> str:
        """The value of a set times 100; as it is, where it is no share and no correlation."""
        value = self.scores[name].value if name in self.scores else math.nan
        if self.task in _UNORDERED and math.isfinite(value):
            return f"{value:.2f}".replace("-", "−")
        return number(value)


class Standing(NamedTuple):
    """A mean over datasets."""

    name: str
    value: float
    low: float
    high: float


def rows(report: Report) -> list[Row]:
    """A row for each task, dataset, metric and choice of words, in the order of the report."""
    found: dict[tuple[str, str, str, str], dict[str, Score]] = {}
    for score in report.scores:
        found.setdefault((score.task, score.dataset, score.metric, score.words), {})[score.vectors] = score
    return [Row(*key, scores) for key, scores in found.items()]


def basis(report: Report) -> Words:
    """On which words sets are ranked: on common ones where they know different items, else on their own."""
    kinds = {score.words for score in report.scores}
    own = [row for row in rows(report) if row.words == "own"]
    differ = any(len({score.n_covered for score in row.scores.values()}) > 1 for row in own)
    return "common" if differ and "common" in kinds else "own"


def headlines(report: Report, words: str, task: str | None = None) -> list[Row]:
    """The first metric of each dataset, where every one of the ranked has a value and more of it is better."""
    kept = first_metrics(report, words, task)
    names = _ranked(kept)
    return [row for row in kept if all(name in row.scores and _finite(row.scores[name]) for name in names)]


def ranking(report: Report, task: str | None = None, words: str | None = None) -> list[Standing]:
    """The sets, the best first, by the mean over tasks of the mean over their datasets.

    What was not asked in all tasks (a teacher, judged on sentences only) has no mean over them: NaN, at the end.
    """
    chosen = words or basis(report)
    counted = headlines(report, chosen, task)
    ranked = _ranked(first_metrics(report, chosen, task))
    sizes: dict[str, int] = {}
    for row in counted:
        sizes[row.task] = sizes.get(row.task, 0) + 1
    weights = [1 / (len(sizes) * sizes[row.task]) for row in counted]
    found = []
    for name in report.names:
        scores = [row.scores[name] for row in counted] if name in ranked else []
        found.append(mean(name, scores, weights if scores else []))
    return sorted(found, key=lambda each: -each.value if math.isfinite(each.value) else math.inf)


def first_metrics(report: Report, words: str, task: str | None = None) -> list[Row]:
    """Of each dataset the row of its first metric, where more is better."""
    kept: dict[tuple[str, str], Row] = {}
    for row in rows(report):
        if row.words == words and row.ordered and task in (None, row.task):
            kept.setdefault((row.task, row.dataset), row)
    return [*kept.values()]


def _ranked(kept: Sequence[Row]) -> set[str]:
    """Those that were asked in the most of these datasets."""
    asked = Counter(name for row in kept for name in row.scores)
    return {name for name, count in asked.items() if count == max(asked.values())}


def _finite(score: Score) -> bool:
    return math.isfinite(score.value)


def mean(name: str, scores: Sequence[Score], weights: Sequence[float]) -> Standing:
    """A weighted mean; its interval is that of independent scores: half a width is `√Σ (w_i h_i)²` on each side."""
    if not scores:
        return Standing(name, math.nan, math.nan, math.nan)
    pairs = [*zip(scores, weights, strict=True)]
    value = sum(weight * score.value for score, weight in pairs)
    below = math.sqrt(sum((weight * (score.value - score.low)) ** 2 for score, weight in pairs))
    above = math.sqrt(sum((weight * (score.high - score.value)) ** 2 for score, weight in pairs))
    return Standing(name, value, value - below, value + above)


def tasks(report: Report) -> list[str]:
    """The tasks by which sets are ranked."""
    return [*dict.fromkeys(row.task for row in headlines(report, basis(report)))]
