"""What the heat map only hints at, folded: each score with its interval and coverage, and a dataset by its sections."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stillvec.evaluation import Score
from stillvec.evaluation.score_table import ScoreRow, group_scores
from stillvec.evaluation.tasks import task_class
from stillvec.report.html_markup import Html, element, format_score, interval, join, number, numeric, set_name, table
from stillvec.report.report_data import ReportData

_SETS = 8  # columns of a table that a reader still looks at


def details_section(data: ReportData) -> Html | None:
    """Two kinds of folded tables; none where there is no score."""
    shown = [row for row in group_scores(data.report.scores) if row.words == data.basis]
    if not shown:
        return None
    parts: list[object] = [_intervals(data, shown)]
    parts += [_sections(data, row) for row in shown if _names(row)]
    more = len(data.names) - _SETS
    note = element("p", f"Sections: the first {_SETS} of {len(data.names)} sets.", class_="note")
    return join((*parts, note if more > 0 and len(parts) > 1 else None))


def _intervals(data: ReportData, shown: Sequence[ScoreRow]) -> Html:
    """A row a score: value, 95% interval, known items."""
    body = []
    for row in shown:
        for name in data.names:
            score = row.scores.get(name)
            if score is not None:
                body.append((_head(row), set_name(name), *_told(row, name, score)))
    right = [element("th", each, scope="col", class_="num") for each in ("score, 95%", "known")]
    made = table("Scores with their intervals", ("dataset", "vectors", *right), body, classes="intervals sortable")
    return element("details", element("summary", f"All {len(body):,} scores with their 95% intervals"), made)


def _told(row: ScoreRow, name: str, score: Score) -> list[Html]:
    times = task_class(row.task).scale
    bounds = interval(score.low * times / 100, score.high * times / 100)
    return [
        numeric(score.value, join((format_score(row, name), element("small", bounds or "–", class_="pale")))),
        element("td", f"{score.n_covered:,} of {score.n_items:,}", class_="num pale"),
    ]


def _sections(data: ReportData, row: ScoreRow) -> Html:
    """One dataset by its sections, in the order of its file."""
    names = [name for name in data.names if name in row.scores][:_SETS]
    values = {name: {each.section: each for each in row.scores[name].details} for name in names}
    body = []
    for section in _names(row):
        found = [values[name].get(section) for name in names]
        finite = [each.value for each in found if each is not None and math.isfinite(each.value)]
        best = max(finite, default=math.nan) if len(names) > 1 else math.nan
        cells = [
            numeric(each.value, element("b", number(each.value)) if each.value == best else number(each.value))
            if each is not None
            else numeric(math.nan)
            for each in found
        ]
        known = next((f"{each.n_covered:,} of {each.n_items:,}" for each in found if each is not None), "–")
        body.append((section, *cells, element("td", known, class_="num pale")))
    heads = [element("th", set_name(name), scope="col", class_="num") for name in names]
    known_head = element("th", "known", scope="col", class_="num")
    made = table(f"{row.dataset}, {row.metric}, by section", ("section", *heads, known_head), body, classes="sortable")
    summary = element("summary", element("bdi", row.dataset), f" by section: {row.metric}")
    return element("details", summary, made)


def _names(row: ScoreRow) -> list[str]:
    """The sections of a dataset, where it has several."""
    found = [*dict.fromkeys(each.section for score in row.scores.values() for each in score.details)]
    return found if len(found) > 1 else []


def _head(row: ScoreRow) -> Html:
    return element("th", element("bdi", row.dataset), " ", element("small", f"{row.task} · {row.metric}"), scope="row")
