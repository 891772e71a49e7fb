"""Spans: a heat map of poolings and questions for each set, every cell beside that of random vectors."""

import math
from collections.abc import Mapping, Sequence

from stillvec.evaluation import Score
from stillvec.heads.pooling import SPAN_POOLINGS
from stillvec.report.html_markup import Html, element, join, lead, set_name
from stillvec.report.html_tables import column, interval, number, numeric, table
from stillvec.report.report_data import ReportData

_TASK = "spans"
_FULL = 0.1  # distance from the mean of the column at which the colour is strongest


def spans_section(data: ReportData) -> Html | None:
    """One table per set, one column per question."""
    scores = [score for score in data.report.scores if score.task == _TASK and score.words == data.basis]
    if not scores:
        return None
    text = (
        "Micro-F1 times 100 of a probe that labels spans, by how the words of a span become one vector (pooling). Blue "
        "is above the mean of the column, amber below; the colour is strongest at a distance of 10 points or more. The "
        "best pooling of a column is bold. Below each score is that of random vectors for the same words."
    )
    parts: list[object] = [lead(text)]
    for name in data.names:
        own = {(score.dataset, score.metric): score for score in scores if score.vectors == name}
        if own:
            parts += [element("h3", set_name(name)), _heat(name, own)]
    return join(parts)


def _heat(name: str, scores: Mapping[tuple[str, str], Score]) -> Html:
    """Scores by dataset and metric, which is question-pooling, with an ending if it is a control or of one label."""
    places = [(dataset, *metric.split("-")) for dataset, metric in scores if metric.count("-") == 1]
    poolings = [pooling for pooling in SPAN_POOLINGS if any(place[2] == pooling for place in places)]
    columns = {
        place[:2]: [scores.get((place[0], f"{place[1]}-{pooling}")) for pooling in poolings]
        for place in places
        if place[2] in poolings
    }
    body = []
    for at, pooling in enumerate(poolings):
        cells = []
        for (dataset, question), of_column in columns.items():
            control = scores.get((dataset, f"{question}-{pooling}-random"))
            cells.append(_cell(of_column[at], of_column, control))
        body.append((pooling, *cells))
    heads = [column(join((question, " ", element("small", dataset)))) for dataset, question in columns]
    return table(f"{name}: poolings and questions", ("pooling", *heads), body, classes="heat sortable stacked")


def _cell(score: Score | None, of_column: Sequence[Score | None], control: Score | None) -> Html:
    values = [other.value for other in of_column if other is not None and math.isfinite(other.value)]
    if score is None or not math.isfinite(score.value):
        return numeric(math.nan)
    shade = max(-1.0, min(1.0, (score.value - sum(values) / len(values)) / _FULL))
    best = score.value == max(values) > min(values) or len(values) == 1
    shown = element("b", number(score.value)) if best else number(score.value)
    parts = [shown] + ([] if control is None else [element("small", number(control.value), class_="pale")])
    title = f"{number(score.value, 2)}, 95% {interval(score.low, score.high)}"
    title += "" if control is None else f"; random vectors {number(control.value, 2)}"
    style = {"style": f"--heat:{abs(shade):.2f}", "class_": "up" if shade >= 0 else "down"}
    return numeric(score.value, join(parts, " "), title=title, **style)
