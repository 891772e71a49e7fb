"""The ranking with intervals, the heat map of all scores, and its details: intervals, coverage, sections."""

import math
from collections.abc import Sequence

from stillvec.evaluation.score_table import MeanScore, ScoreRow, group_scores, rank_rows, rank_sets
from stillvec.report.html_markup import Html, element, fold, join, lead, note, plural, set_name, word
from stillvec.report.html_tables import (
    chart_column,
    column,
    dataset_row,
    format_score,
    interval,
    number,
    numeric,
    table,
)
from stillvec.report.report_data import ReportData
from stillvec.report.svg import Scale, axis, whisker

_FULL = 0.15  # distance from the mean of the row at which the colour is strongest


def rank_section(data: ReportData) -> Html | None:
    """Means with intervals: over all tasks, then per task."""
    if not any(math.isfinite(mean.value) for mean in data.ranking):
        return None
    counted = rank_rows(data.report, data.basis)
    tasks = [*dict.fromkeys(row.task for row in counted)]
    items = "the items that all sets cover" if data.basis == "common" else "the items that each set covers"
    mean = "The mean" if len(tasks) == 1 else "The mean over tasks of the mean"
    text = f"{mean} over {plural(len(counted), 'dataset')}, times 100, on {items}. Lines are 95% intervals."
    parts: list[object] = [lead(text), _chart(data, data.ranking, text, "ranking")]
    if len(tasks) > 1:
        parts.append(element("div", *(_panel(data, task) for task in tasks), class_="panels"))
    return join(parts)


def _panel(data: ReportData, task: str) -> Html:
    count = plural(len(rank_rows(data.report, data.basis, task)), "dataset")
    chart = _chart(data, rank_sets(data.report, task), f"{task}: the mean over {count}", "ranking small")
    return element("div", element("h3", task, " ", element("small", count)), chart, class_="panel")


def _chart(data: ReportData, standings: Sequence[MeanScore], caption: str, classes: str) -> Html:
    scale = Scale.around(value for mean in standings for value in mean[1:])
    body = [
        (
            data.set_row(mean.name),
            element("td", whisker(scale, *mean[1:], data.colour(mean.name)), class_="chart"),
            numeric(mean.value, class_="strong"),
            element("td", interval(mean.low, mean.high), class_="num pale wide"),
        )
        for mean in standings
        if math.isfinite(mean.value)
    ]
    chart = chart_column(axis(scale, 3 if "small" in classes else 6))
    head = ("vectors", chart, column("mean"), column("95%", "num wide"))
    return table(caption, head, body, classes=classes)


def heat_section(data: ReportData) -> Html | None:
    """One row per dataset and metric, one column per set, coloured by the distance from the mean of the row."""
    rows = group_scores(data.report.scores)
    shown = [row for row in rows if row.words in (data.basis, "unleaked")]
    if not shown:
        return None
    legend = "Darker is higher."
    if len(data.names) > 1:
        legend = (
            "The best score of a row is bold. Blue is better than the mean of the row, amber worse; the colour is "
            "strongest at a distance of 15 points or more."
        )
    parts = [lead(f"Scores times 100. {legend} Intervals are in the next section.")]
    if data.basis == "own":
        return join((*parts, _heat(data, shown, "Scores of all sets on all datasets")))
    parts.append(_heat(data, shown, "Scores on the items that all sets cover"))
    own = _heat(data, [row for row in rows if row.words == "own"], "Scores on the items that each set covers")
    return join((*parts, fold("The same on all items that each set covers", own)))


def _heat(data: ReportData, shown: Sequence[ScoreRow], caption: str) -> Html:
    places = {key: at for at, key in reversed([*enumerate((row.task, row.dataset) for row in shown)])}
    ordered = sorted(shown, key=lambda row: (places[row.task, row.dataset], row.words == "unleaked"))
    body = []
    for row in ordered:
        outside = " · outside the lexicon" if row.words == "unleaked" else ""
        header = dataset_row(row.dataset, f"{row.task} · {row.metric}{outside}", "within" if outside else None)
        body.append((header, *_cells(row, data.names)))
    return table(caption, ("dataset", *data.set_columns()), body, classes="heat sortable")


def _cells(row: ScoreRow, names: Sequence[str]) -> list[Html]:
    values = [score.value for score in row.scores.values() if math.isfinite(score.value)]
    mean = sum(values) / len(values) if values else math.nan
    sign, first = (-1, min) if row.lower_is_better else (1, max)
    best = first(values, default=math.nan) if len(names) > 1 and row.ordered else math.nan
    cells = []
    for name in names:
        score = row.scores.get(name)
        if score is None or not math.isfinite(score.value):
            cells.append(numeric(math.nan, title=_title(name, row)))
            continue
        shade = max(-1.0, min(1.0, sign * (score.value - mean) / _FULL)) if len(names) > 1 else abs(score.value)
        colour = {"style": f"--heat:{abs(shade):.2f}", "class_": "up" if shade >= 0 else "down"} if row.ordered else {}
        inside = element("b", format_score(row, name)) if score.value == best else format_score(row, name)
        cells.append(numeric(score.value, inside, title=_title(name, row), **colour))
    return cells


def _title(name: str, row: ScoreRow) -> str:
    score = row.scores.get(name)
    if score is None:
        return f"{name}: not evaluated"
    value, low, high = (row.scale / 100 * part for part in (score.value, score.low, score.high))
    bounds = interval(low, high)
    covered = f"{score.n_covered:,} of {score.n_items:,} items covered"
    return f"{name}: {number(value, 2)}" + (f", 95% {bounds}" if bounds else "") + f"; {covered}"


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
        best = (min if row.lower_is_better else max)(finite, default=math.nan) if len(names) > 1 else math.nan
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
