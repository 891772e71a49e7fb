"""Who stands where: rows of scores, means over datasets and tasks with their intervals, and one sentence about them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from stillvec.evaluation import Report, Score
from stillvec.evaluation.tasks import task_class
from stillvec.report.html_markup import number

Words = Literal["own", "common"]


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
        return task_class(self.task).ranks_by(self.metric)

    def shown(self, name: str) -> str:
        """The value of a set times 100; as it is, where it is no share and no correlation."""
        value = self.scores[name].value if name in self.scores else math.nan
        if task_class(self.task).scale == 1 and math.isfinite(value):
            return f"{value:.2f}".replace("-", "−")
        return number(value)


class MeanScore(NamedTuple):
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


def ranking(report: Report, task: str | None = None, words: str | None = None) -> list[MeanScore]:
    """The sets, the best first, by the mean over tasks of the mean over their datasets.

    What was not asked in all tasks (a teacher, judged on sentences only) has no mean over them: NaN, at the end.
    """
    chosen = words or basis(report)
    counted = headlines(report, chosen, task)
    ranked = _ranked(first_metrics(report, chosen, task))
    members: dict[str, list[Row]] = {}
    for row in counted:
        members.setdefault(row.task, []).append(row)
    found = []
    for name in report.names:
        means = [_of_task(report, name, chosen, some) for some in members.values()] if name in ranked else []
        found.append(mean(name, means))
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


def _of_task(report: Report, name: str, words: str, members: Sequence[Row]) -> MeanScore:
    """The mean over the datasets of a task; from resamples of all of them together where the report has these."""
    datasets = {row.dataset for row in members}
    for each in report.means:
        same = (each.vectors, each.task, each.words) == (name, members[0].task, words)
        if same and datasets == {detail.section for detail in each.details}:
            return MeanScore(name, each.value, each.low, each.high)
    scores = (row.scores[name] for row in members)
    return mean(name, [MeanScore(name, score.value, score.low, score.high) for score in scores])


def mean(name: str, parts: Sequence[MeanScore]) -> MeanScore:
    """A mean; its interval is that of independent parts: half a width is `√Σ h_i² / n` on each side."""
    if not parts:
        return MeanScore(name, math.nan, math.nan, math.nan)
    value = sum(each.value for each in parts) / len(parts)
    below = math.sqrt(sum((each.value - each.low) ** 2 for each in parts)) / len(parts)
    above = math.sqrt(sum((each.high - each.value) ** 2 for each in parts)) / len(parts)
    return MeanScore(name, value, value - below, value + above)


def tasks(report: Report) -> list[str]:
    """The tasks by which sets are ranked."""
    return [*dict.fromkeys(row.task for row in headlines(report, basis(report)))]
