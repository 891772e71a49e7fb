"""Score by word frequency: similarity pairs in thirds, by the count of their rarer word."""

from __future__ import annotations

from stillvec.evaluation.frequency_bands import THIRDS, score_by_frequency
from stillvec.evaluation.intervals import Estimate
from stillvec.report.html_markup import Html, element, interval, join, numeric, plural, set_name, table
from stillvec.report.report_data import ReportData
from stillvec.report.svg import Line, line_chart


def frequency_section(data: ReportData) -> Html | None:
    names = data.with_vectors
    thirds = score_by_frequency(data.report.pairs, data.sets, names) if names else []
    if not thirds:
        return None
    said = (
        "Pairs of each similarity dataset that all sets know, in thirds by how often the rarer word of a pair stands "
        "in the largest corpus among these sets; the mean of Spearman's ρ over the datasets, times 100."
    )
    ticks = [
        (15 + 35 * at, f"{name} ({third.median:,.0f}×)")
        for at, (name, third) in enumerate(zip(THIRDS, thirds, strict=True))
    ]
    lines = []
    for place, name in enumerate(data.with_vectors):
        aside = min(1.1, 20 / len(data.with_vectors)) * (
            place - (len(data.with_vectors) - 1) / 2
        )  # whiskers side by side
        points = [(15 + 35 * at + aside, *third.values[name]) for at, third in enumerate(thirds)]
        lines.append(Line(name, data.colour(name), points))
    chart = line_chart(lines, ticks, "Score by word frequency: lines for each set over rare, middle and frequent words")
    body = [
        (
            element("th", set_name(name), scope="row", class_=f"set {data.colour(name)}"),
            *(_cell(third.values[name]) for third in thirds),
        )
        for name in data.with_vectors
    ]
    heads = (
        element("th", name, " ", element("small", plural(third.n_pairs, "pair")), scope="col", class_="num")
        for name, third in zip(THIRDS, thirds, strict=True)
    )
    figures = table("Score by word frequency", ("vectors", *heads), body, classes="sortable")
    note = element("p", "In brackets: the median count of the rarer word.", class_="note")
    return join((element("p", said, class_="lead"), chart, note, figures))


def _cell(estimate: Estimate) -> Html:
    return numeric(estimate.value, title=f"95% {interval(estimate.low, estimate.high)}")
