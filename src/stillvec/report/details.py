"""Folded details of the heat map: every score with its interval and coverage, and datasets by section."""

import math
from collections.abc import Sequence

from stillvec.evaluation.score_table import ScoreRow, group_scores
from stillvec.report.html_markup import (
    Html,
    column,
    dataset_row,
    element,
    fold,
    format_score,
    interval,
    join,
    note,
    number,
    numeric,
    set_name,
    table,
    word,
)
from stillvec.report.report_data import ReportData

_MAX_SETS = 8  # columns of a table


def details_section(data: ReportData) -> Html | None:
    """Two kinds of folded tables; None if there is no score."""
    shown = [row for row in group_scores(data.report.scores) if row.words == data.basis]
    if not shown:
        return None
    parts: list[object] = [_intervals(data, shown)]
    parts += [_sections(data, row) for row in shown if _names(row)]
    limited = len(data.names) > _MAX_SETS and len(parts) > 1
    return join((*parts, note(f"Sections: the first {_MAX_SETS} of {len(data.names)} sets.") if limited else None))


def _intervals(data: ReportData, shown: Sequence[ScoreRow]) -> Html:
    """One row per score: value, 95% interval, covered items."""
    body = [
        (dataset_row(row.dataset, f"{row.task} · {row.metric}"), set_name(name), *_score_cells(row, name))
        for row in shown
        for name in data.names
        if name in row.scores
    ]
    head = ("dataset", "vectors", column("score, 95%"), column("covered"))
    scores = table("Scores with their intervals", head, body, classes="intervals sortable")
    return fold(f"All {len(body):,} scores with their 95% intervals", scores)


def _score_cells(row: ScoreRow, name: str) -> list[Html]:
    score = row.scores[name]
    bounds = interval(score.low * row.scale / 100, score.high * row.scale / 100)
    return [
        numeric(score.value, join((format_score(row, name), element("small", bounds or "–", class_="pale")))),
        element("td", f"{score.n_covered:,} of {score.n_items:,}", class_="num pale"),
    ]


def _sections(data: ReportData, row: ScoreRow) -> Html:
    """One dataset by its sections, in the order of its file."""
    names = [name for name in data.names if name in row.scores][:_MAX_SETS]
    values = {name: {detail.section: detail for detail in row.scores[name].details} for name in names}
    body = []
    for section in _names(row):
        details = [values[name].get(section) for name in names]
        finite = [detail.value for detail in details if detail is not None and math.isfinite(detail.value)]
        best = max(finite, default=math.nan) if len(names) > 1 else math.nan
        cells = [
            numeric(detail.value, element("b", number(detail.value)) if detail.value == best else None)
            if detail is not None
            else numeric(math.nan)
            for detail in details
        ]
        covered = next((f"{detail.n_covered:,} of {detail.n_items:,}" for detail in details if detail is not None), "–")
        body.append((section, *cells, element("td", covered, class_="num pale")))
    head = ("section", *data.set_columns(names), column("covered"))
    scores = table(f"{row.dataset}, {row.metric}, by section", head, body, classes="sortable")
    return fold(join((word(row.dataset), f" by section: {row.metric}")), scores)


def _names(row: ScoreRow) -> list[str]:
    """The sections of a dataset, if it has more than one."""
    sections = [*dict.fromkeys(detail.section for score in row.scores.values() for detail in score.details)]
    return sections if len(sections) > 1 else []
