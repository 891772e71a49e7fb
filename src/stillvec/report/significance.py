"""Which differences are real: the paired comparisons of the report, corrected by Holm."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stillvec.evaluation.evaluation_report import Comparison
from stillvec.evaluation.tasks import task_class
from stillvec.report.html_markup import Html, element, interval, join, numeric, plural, points, set_name, table
from stillvec.report.report_data import ReportData
from stillvec.report.svg import Scale, axis, whisker
from stillvec.report.verdict import leads

_MOST = 60  # rows of a table that a reader still looks at


def significance_section(data: ReportData) -> Html | None:
    report = data.report
    if not report.comparisons and not report.overall:
        return None
    parts: list[object] = []
    if report.overall:
        said = (
            "The mean over similarity datasets of the set on the left, less that of the set on the right, in points; "
            "the same resampled pairs of words for both. p is corrected by Holm."
        )
        overall = _ranked([each for each in report.overall if each.words != "unleaked"], data.names)
        outside = _ranked([each for each in report.overall if each.words == "unleaked"], data.names)
        first = [each for each in overall if each.a == data.names[0]]
        parts += [element("p", said, class_="lead"), _differences(first, "Differences of means from the best")]
        if len(overall) > len(first):
            summary = element("summary", f"All {plural(len(overall), 'comparison')}")
            parts.append(element("details", summary, _differences(overall, "All differences of means")))
        if outside:
            summary = element("summary", "The same on pairs that the lexicon does not hold")
            parts.append(element("details", summary, _differences(outside, "Differences outside the lexicon")))
    single = [
        each for each in report.comparisons if each.words != "unleaked" and task_class(each.task).ranks_by(each.metric)
    ]
    if single and len(data.names) > 1:
        parts.append(_datasets(data, single))
    return join(parts)


def _differences(shown: Sequence[Comparison], caption: str) -> Html:
    some = shown[:_MOST]
    scale = Scale.around([0.0, *(value for each in some for value in (each.low, each.high, each.difference))])
    body = [
        (
            element("th", set_name(each.a), " − ", set_name(each.b), scope="row"),
            element("td", whisker(scale, each.difference, each.low, each.high, _strength(each)), class_="chart"),
            numeric(each.difference, points(each.difference)),
            element("td", interval(each.low, each.high), class_="num pale wide"),
            numeric(each.p_corrected, _p(each.p_corrected)),
            element("td", _told(each), class_=_strength(each)),
        )
        for each in some
    ]
    chart = element("th", axis(scale), element("span", "chart", class_="hidden"), scope="col", class_="chart")
    wide = element("th", "95%", scope="col", class_="num wide")
    right = [element("th", each, scope="col", class_="num") for each in ("points", "p")]
    head = ("vectors", chart, right[0], wide, right[1], "real?")
    left = len(shown) - len(some)
    note = element("p", f"{plural(left, 'more comparison')} in the JSON form.", class_="note") if left else None
    return join((table(caption, head, body, classes="ranking differences"), note))


def _datasets(data: ReportData, single: Sequence[Comparison]) -> Html:
    """How often a set is really better than another: rows win against columns."""
    names = data.names
    body = []
    for name in names:
        mine = leads(tuple(single), name)
        cells: list[object] = [element("th", set_name(name), scope="row", class_=f"set {data.colour(name)}")]
        for other in names:
            against = [each for each in mine if each.b == other]
            won = sum(each.significant and each.difference > 0 for each in against)
            share = won / len(against) if against else 0.0
            told = f"{won} of {len(against)}" if against else "·"
            cells.append(numeric(share, told, class_="up", style=f"--heat:{share:.2f}"))
        body.append(cells)
    said = (
        "In how many datasets and metrics the set of the row is really better than that of the column "
        "(paired bootstrap, 5% after Holm's correction)."
    )
    heads = (element("th", set_name(name), scope="col", class_="num") for name in names)
    grid = table("Real wins, dataset by dataset", ("better", *heads), body, classes="heat")
    return join((element("p", said, class_="lead"), grid))


def _ranked(comparisons: Sequence[Comparison], names: Sequence[str]) -> list[Comparison]:
    """Each with the better-ranked set first, in the order of the ranking."""
    place = {name: at for at, name in enumerate(names)}
    turned = [each.from_side(min(each.a, each.b, key=place.__getitem__)) for each in comparisons]
    return sorted(turned, key=lambda each: (place[each.a], place[each.b]))


def _strength(each: Comparison) -> str:
    return "real" if each.significant else "chance"


def _told(each: Comparison) -> str:
    return "yes" if each.significant else "may be chance"


def _p(value: float) -> str:
    if not math.isfinite(value):
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
