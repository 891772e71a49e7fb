"""Significant differences: the paired comparisons of the report with Holm's correction."""

import math
from collections.abc import Sequence

from stillvec.evaluation.evaluation_report import Comparison
from stillvec.report.html_markup import (
    Html,
    chart_column,
    column,
    element,
    fold,
    interval,
    join,
    lead,
    note,
    numeric,
    plural,
    points,
    set_name,
    table,
)
from stillvec.report.report_data import ReportData
from stillvec.report.svg import Scale, axis, whisker
from stillvec.report.verdict import leads

_MAX_ROWS = 60


def significance_section(data: ReportData) -> Html | None:
    report = data.report
    if not report.comparisons and not report.overall:
        return None
    parts: list[object] = []
    if report.overall:
        text = (
            "The mean over similarity datasets of the first set minus that of the second, in points, on the same "
            "resampled word pairs; p with Holm's correction."
        )
        overall = _sort([pair for pair in report.overall if pair.words != "unleaked"], data.names)
        outside = _sort([pair for pair in report.overall if pair.words == "unleaked"], data.names)
        first = [pair for pair in overall if pair.a == data.names[0]]
        parts += [lead(text), _differences(first, "Differences from the best mean")]
        if len(overall) > len(first):
            everything = _differences(overall, "All differences of means")
            parts.append(fold(f"All {plural(len(overall), 'comparison')}", everything))
        if outside:
            differences = _differences(outside, "Differences outside the lexicon")
            parts.append(fold("The same on pairs that the lexicon does not contain", differences))
    if len(data.names) > 1 and any(leads(report.comparisons, name) for name in data.names):
        parts.append(_wins(data))
    return join(parts)


def _differences(shown: Sequence[Comparison], caption: str) -> Html:
    rows = shown[:_MAX_ROWS]
    scale = Scale.around([0.0, *(value for pair in rows for value in (pair.low, pair.high, pair.difference))])
    body = [
        (
            element("th", set_name(pair.a), " − ", set_name(pair.b), scope="row"),
            element("td", whisker(scale, pair.difference, pair.low, pair.high, _style(pair)), class_="chart"),
            numeric(pair.difference, points(pair.difference)),
            element("td", interval(pair.low, pair.high), class_="num pale wide"),
            numeric(pair.p_corrected, _p(pair.p_corrected)),
            element("td", "yes" if pair.significant else "no", class_=_style(pair)),
        )
        for pair in rows
    ]
    head = (
        "vectors",
        chart_column(axis(scale)),
        column("points"),
        column("95%", "num wide"),
        column("p"),
        "significant",
    )
    n_left = len(shown) - len(rows)
    rest = note(f"The JSON file has {plural(n_left, 'more comparison')}.") if n_left else None
    return join((table(caption, head, body, classes="ranking differences"), rest))


def _wins(data: ReportData) -> Html:
    """On how many datasets the set of the row is significantly better than that of the column."""
    body = []
    for name in data.names:
        comparisons = leads(data.report.comparisons, name)
        cells: list[object] = [data.set_row(name)]
        for other in data.names:
            against = [pair for pair in comparisons if pair.b == other]
            n_won = sum(pair.significant and pair.difference > 0 for pair in against)
            share = n_won / len(against) if against else 0.0
            text = f"{n_won} of {len(against)}" if against else "·"
            cells.append(numeric(share, text, class_="up", style=f"--heat:{share:.2f}"))
        body.append(cells)
    text = (
        "By how many metrics, over all datasets, the set of the row is significantly better than the set of the column "
        "(paired bootstrap, 5%, Holm's correction)."
    )
    grid = table("Significant wins", ("better", *data.set_columns()), body, classes="heat")
    return join((lead(text), grid))


def _sort(comparisons: Sequence[Comparison], names: Sequence[str]) -> list[Comparison]:
    """In the order of the ranking, each comparison with the better-ranked set first."""
    place = {name: at for at, name in enumerate(names)}
    turned = [pair.from_side(min(pair.a, pair.b, key=place.__getitem__)) for pair in comparisons]
    return sorted(turned, key=lambda pair: (place[pair.a], place[pair.b]))


def _style(pair: Comparison) -> str:
    return "significant" if pair.significant else "chance"


def _p(value: float) -> str:
    if not math.isfinite(value):
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
