"""Scores as rows of a table, and the ranking of sets: means over datasets and tasks with their intervals."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from stillvec.evaluation.evaluation_report import Report, Score
from stillvec.evaluation.intervals import Estimate
from stillvec.evaluation.tasks import task_class

Basis = Literal["own", "common"]


class TextTable(NamedTuple):
    """A table as text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    notes: Sequence[str] = ()  # lines below the table


@dataclass(frozen=True)
class ScoreRow:
    """The scores of all sets by one metric on one dataset; every table and page is drawn from these rows."""

    task: str
    dataset: str
    metric: str
    words: str
    scores: Mapping[str, Score]  # by the name of the set

    @property
    def ordered(self) -> bool:
        return task_class(self.task).ranks_by(self.metric)

    @property
    def scale(self) -> int:
        return task_class(self.task).scale_of(self.metric)

    @property
    def lower_is_better(self) -> bool:
        return task_class(self.task).prefers_less(self.metric)

    @property
    def best(self) -> set[str]:
        """The sets with the best value, mostly the highest; none if there is one set only or sets are not ranked."""
        values = {name: score.value for name, score in self.scores.items() if math.isfinite(score.value)}
        if len(self.scores) < 2 or not self.ordered or not values:
            return set()
        best = (min if self.lower_is_better else max)(values.values())
        return {name for name, value in values.items() if value == best}


class MeanScore(NamedTuple):
    """A mean over datasets."""

    name: str
    value: float
    low: float
    high: float


def group_scores(scores: Sequence[Score]) -> list[ScoreRow]:
    """One row per task, dataset, metric and choice of words, in the order of the scores."""
    rows: dict[tuple[str, str, str, str], dict[str, Score]] = {}
    for score in scores:
        rows.setdefault((score.task, score.dataset, score.metric, score.words), {})[score.vectors] = score
    return [ScoreRow(*key, by_name) for key, by_name in rows.items()]


def choose_basis(report: Report) -> Basis:
    """On which words sets are ranked: common words where they cover different items, else their own."""
    rows = group_scores(report.scores)
    differ = any(len({score.n_covered for score in row.scores.values()}) > 1 for row in rows if row.words == "own")
    return "common" if differ and any(row.words == "common" for row in rows) else "own"


def first_metric_rows(report: Report, words: str, task: str | None = None) -> list[ScoreRow]:
    """For each dataset the row of its first metric by which sets are ranked."""
    rows: dict[tuple[str, str], ScoreRow] = {}
    for row in group_scores(report.scores):
        if row.words == words and row.ordered and task_class(row.task).averaged and task in (None, row.task):
            rows.setdefault((row.task, row.dataset), row)
    return [*rows.values()]


def rank_rows(report: Report, words: str, task: str | None = None) -> list[ScoreRow]:
    """The first metric of each dataset on which every ranked set has a value."""
    rows = first_metric_rows(report, words, task)
    names = _select_ranked_sets(rows)
    return [row for row in rows if all(name in row.scores and math.isfinite(row.scores[name].value) for name in names)]


def rank_sets(report: Report, task: str | None = None, words: str | None = None) -> list[MeanScore]:
    """The sets, the best first, by the mean over tasks of the mean over their datasets.

    A set that was not evaluated on all tasks (a teacher, on sentences only) has no mean over them: NaN, at the end.
    """
    basis = words or choose_basis(report)
    names = _select_ranked_sets(first_metric_rows(report, basis, task))
    members: dict[str, list[ScoreRow]] = {}
    for row in rank_rows(report, basis, task):
        members.setdefault(row.task, []).append(row)
    means = []
    for name in report.names:
        parts = [_average_task(report, name, basis, rows) for rows in members.values()] if name in names else []
        means.append(MeanScore(name, *average_independent(parts)))
    return sorted(means, key=lambda mean: -mean.value if math.isfinite(mean.value) else math.inf)


def average_independent(parts: Sequence[Estimate]) -> Estimate:
    """The mean of independent estimates; each side of its interval is `√Σ h_i² / n`, h_i the side of a part."""
    if not parts:
        return Estimate(math.nan, math.nan, math.nan)
    value = sum(part.value for part in parts) / len(parts)
    below = math.sqrt(sum((part.value - part.low) ** 2 for part in parts)) / len(parts)
    above = math.sqrt(sum((part.high - part.value) ** 2 for part in parts)) / len(parts)
    return Estimate(value, value - below, value + above)


def _select_ranked_sets(rows: Sequence[ScoreRow]) -> set[str]:
    """Those that were evaluated on the most of these datasets."""
    counts = Counter(name for row in rows for name in row.scores)
    return {name for name, count in counts.items() if count == max(counts.values())}


def _average_task(report: Report, name: str, words: str, rows: Sequence[ScoreRow]) -> Estimate:
    """The mean over the datasets of a task; from resamples of all of them together where the report has these."""
    datasets = {row.dataset for row in rows}
    for mean in report.means:
        same = (mean.vectors, mean.task, mean.words) == (name, rows[0].task, words)
        if same and datasets == {detail.section for detail in mean.details}:
            return Estimate(mean.value, mean.low, mean.high)
    scores = [row.scores[name] for row in rows]
    return average_independent([Estimate(score.value, score.low, score.high) for score in scores])
