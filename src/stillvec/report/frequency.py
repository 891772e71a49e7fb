"""Score by word frequency: similarity pairs in thirds, by the count of their rarer word."""

from stillvec.evaluation.frequency_bands import THIRDS, score_by_frequency
from stillvec.evaluation.intervals import Estimate
from stillvec.report.html_markup import Html, column, element, interval, join, lead, note, numeric, plural, table
from stillvec.report.report_data import ReportData
from stillvec.report.svg import Line, line_chart


def frequency_section(data: ReportData) -> Html | None:
    names = data.with_vectors
    thirds = score_by_frequency(data.report.pairs, data.sets, names) if names else []
    if not thirds:
        return None
    text = (
        "The pairs of each similarity dataset that all sets cover, in thirds by the frequency of the rarer word in the "
        "largest corpus of these sets. Scores are the mean of Spearman's ρ over the datasets, times 100."
    )
    ticks = [
        (15 + 35 * at, f"{name} ({third.median:,.0f}×)")
        for at, (name, third) in enumerate(zip(THIRDS, thirds, strict=True))
    ]
    lines = []
    for place, name in enumerate(names):
        shift = min(1.1, 20 / len(names)) * (place - (len(names) - 1) / 2)  # whiskers side by side
        points = [(15 + 35 * at + shift, *third.values[name]) for at, third in enumerate(thirds)]
        lines.append(Line(name, data.colour(name), points))
    chart = line_chart(lines, ticks, "Score by word frequency, one line per set")
    body = [(data.set_row(name), *(_estimate_cell(third.values[name]) for third in thirds)) for name in names]
    heads = [
        column(join((name, " ", element("small", plural(third.n_pairs, "pair")))))
        for name, third in zip(THIRDS, thirds, strict=True)
    ]
    figures = table("Score by word frequency", ("vectors", *heads), body, classes="sortable")
    return join((lead(text), chart, note("In brackets: the median count of the rarer word."), figures))


def _estimate_cell(estimate: Estimate) -> Html:
    return numeric(estimate.value, title=f"95% {interval(estimate.low, estimate.high)}")
