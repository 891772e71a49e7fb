"""The ranking with its intervals, and the heat map of every score."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stillvec.evaluation import Score
from stillvec.evaluation.score_table import MeanScore, ScoreRow, group_scores, list_ranked_tasks, rank_rows, rank_sets
from stillvec.report.html_markup import (
    Html,
    element,
    format_score,
    interval,
    join,
    number,
    numeric,
    plural,
    set_name,
    table,
)
from stillvec.report.report_data import ReportData
from stillvec.report.svg import Scale, axis, whisker

_FULL = 0.15  # the distance from a row's mean at which its colour is full


def ranking_section(data: ReportData) -> Html | None:
    """Dots and whiskers: all tasks together, then each by itself."""
    if not any(math.isfinite(each.value) for each in data.ranking):
        return None
    tasks = list_ranked_tasks(data.report)
    counted = rank_rows(data.report, data.basis)
    on = "on the words that all sets know" if data.basis == "common" else "on the words that each set knows"
    mean = "The mean" if len(tasks) == 1 else "The mean over tasks of the mean"
    said = f"{mean} over {plural(len(counted), 'dataset')}, times 100, {on}; lines are 95% intervals."
    parts: list[object] = [element("p", said, class_="lead"), _chart(data, data.ranking, said, "ranking")]
    if len(tasks) > 1:
        panels = [_panel(data, task) for task in tasks]
        parts.append(element("div", *panels, class_="panels"))
    return join(parts)


def _panel(data: ReportData, task: str) -> Html:
    count = plural(len(rank_rows(data.report, data.basis, task)), "dataset")
    chart = _chart(data, rank_sets(data.report, task), f"{task}: the mean over {count}", "ranking small")
    return element("div", element("h3", task, " ", element("small", count)), chart, class_="panel")


def _chart(data: ReportData, standings: Sequence[MeanScore], caption: str, classes: str) -> Html:
    scale = Scale.around(value for each in standings for value in each[1:])
    chart = element(
        "th",
        axis(scale, 3 if "small" in classes else 6),
        element("span", "chart", class_="hidden"),
        scope="col",
        class_="chart",
    )
    body = [
        (
            element("th", set_name(each.name), scope="row", class_=f"set {data.colour(each.name)}"),
            element("td", whisker(scale, *each[1:], data.colour(each.name)), class_="chart"),
            numeric(each.value, class_="strong"),
            element("td", interval(each.low, each.high), class_="num pale wide"),
        )
        for each in standings
        if math.isfinite(each.value)
    ]
    wide = element("th", "95%", scope="col", class_="num wide")
    head = ("vectors", chart, element("th", "mean", scope="col", class_="num"), wide)
    return table(caption, head, body, classes=classes)


def heat_section(data: ReportData) -> Html | None:
    """Every score: a row a dataset, a column a set, the colour its distance from the mean of the row."""
    found = [row for row in group_scores(data.report.scores) if row.words == data.basis or row.words == "unleaked"]
    if not found:
        return None
    several = len(data.names) > 1
    legend = "Each cell is the score times 100; its interval stands below, folded. The best of a row is bold. "
    legend += (
        "Blue is above the mean of the row and amber below, in full colour from 15 points on."
        if several
        else "The darker, the higher."
    )
    parts = [element("p", legend, class_="lead")]
    if data.basis == "own":
        return join((*parts, _heat(data, found, "Scores of all sets on all datasets")))
    parts.append(_heat(data, found, "Scores on the items that all sets know"))
    own = _heat(
        data, [row for row in group_scores(data.report.scores) if row.words == "own"], "Scores on a set's own items"
    )
    return join((*parts, element("details", element("summary", "The same on all items that each set knows"), own)))


def _heat(data: ReportData, shown: Sequence[ScoreRow], caption: str) -> Html:
    places = {key: at for at, key in reversed([*enumerate((row.task, row.dataset) for row in shown)])}
    ordered = sorted(shown, key=lambda row: (places[row.task, row.dataset], row.words == "unleaked"))
    heads = (element("th", set_name(name), scope="col", class_="num") for name in data.names)
    body = [(_label(row), *_cells(row, data.names)) for row in ordered]
    return table(caption, ("dataset", *heads), body, classes="heat sortable")


def _label(row: ScoreRow) -> Html:
    on = " · outside the lexicon" if row.words == "unleaked" else ""
    inside = (element("bdi", row.dataset), " ", element("small", f"{row.task} · {row.metric}{on}"))
    return element("th", *inside, scope="row", class_="within" if on else None)


def _cells(row: ScoreRow, names: Sequence[str]) -> list[Html]:
    values = [score.value for score in row.scores.values() if math.isfinite(score.value)]
    mean = sum(values) / len(values) if values else math.nan
    best = max(values, default=math.nan) if len(names) > 1 and row.ordered else math.nan
    cells = []
    for name in names:
        score = row.scores.get(name)
        if score is None or not math.isfinite(score.value):
            cells.append(numeric(math.nan, title=_title(name, score)))
            continue
        shade = _shade(score.value, mean) if len(names) > 1 else abs(score.value)
        told = {"style": f"--heat:{abs(shade):.2f}", "class_": "up" if shade >= 0 else "down"} if row.ordered else {}
        inside = element("b", format_score(row, name)) if score.value == best else format_score(row, name)
        cells.append(numeric(score.value, inside, title=_title(name, score), **told))
    return cells


def _shade(value: float, mean: float) -> float:
    return max(-1.0, min(1.0, (value - mean) / _FULL))


def _title(name: str, score: Score | None) -> str:
    if score is None:
        return f"{name}: not evaluated"
    bounds = interval(score.low, score.high)
    known = f"{score.n_covered:,} of {score.n_items:,} items known"
    return f"{name}: {number(score.value, 2)}" + (f", 95% {bounds}" if bounds else "") + f"; {known}"
