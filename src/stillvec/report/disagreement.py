"""Where two sets disagree most: the pairs of words that one ranks high and the other low, and what people say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from stillvec.evaluation.evaluation_report import ScoredPairs
from stillvec.numerics import rank_values
from stillvec.report.html_markup import Html, element, join, set_name, table, word
from stillvec.report.report_data import ReportData
from stillvec.report.svg import percent, svg

_SHOWN = 10


class Disagreement(NamedTuple):
    """A pair of words and its place, 0 to 100, among the pairs of its dataset that both sets know."""

    left: str
    right: str
    dataset: str
    people: float
    first: float
    second: float


def disagreement_section(data: ReportData) -> Html | None:
    names = data.with_pairs
    couples = [(names[0], names[1])] if len(names) > 1 else []
    if len(names) > 2:
        couples.append((names[0], names[-1]))
    parts = [_couple(data, *couple) for couple in couples]
    if not any(parts):
        return None
    said = (
        "Pairs of words of the similarity datasets that two sets place most differently. A place is the share of "
        "the dataset's pairs that are less alike: 0 the least alike, 100 the most. The ring is where people put it."
    )
    return join((element("p", said, class_="lead"), *parts))


def _couple(data: ReportData, first: str, second: str) -> Html | None:
    found = disagreements(data.report.pairs, first, second)[:_SHOWN]
    if not found:
        return None
    nearer = sum(abs(each.first - each.people) < abs(each.second - each.people) for each in found)
    colours = (data.colour(first), data.colour(second))
    body = [
        (
            element("th", word(each.left), " · ", word(each.right), scope="row"),
            element("td", _strip(each, colours), class_="chart"),
            *(element("td", f"{value:.0f}", class_="num") for value in each[3:]),
            element("td", element("bdi", each.dataset), class_="pale wide"),
        )
        for each in found
    ]
    sides = [
        element("th", set_name(name), scope="col", class_=f"num set {kind}")
        for name, kind in zip((first, second), colours, strict=True)
    ]
    chart = element("th", _ends(), element("span", "chart", class_="hidden"), scope="col", class_="chart")
    head = (
        "pair",
        chart,
        element("th", "people", scope="col", class_="num"),
        *sides,
        element("th", "dataset", scope="col", class_="wide"),
    )
    told = [
        element("span", set_name(name), class_=f"set {kind}")
        for name, kind in zip((first, second), colours, strict=True)
    ]
    heading = element("h3", told[0], " and ", told[1])
    note = element("p", f"Of these {len(found)} the first is nearer to people in {nearer}.", class_="note")
    return join((heading, table(f"{first} and {second} disagree", head, body, classes="ranking places"), note))


def disagreements(pairs: Sequence[ScoredPairs], first: str, second: str) -> list[Disagreement]:
    """All pairs that both sets know, those that they place most differently first; each pair of words once."""
    found: dict[tuple[str, ...], Disagreement] = {}
    for dataset in pairs:
        known = dataset.common_rows((first, second))
        if len(known) < 3:
            continue
        columns = (dataset.gold, dataset.cosines[first], dataset.cosines[second])
        places = [100 * (rank_values(column[known]) - 1) / (len(known) - 1) for column in columns]
        for row, *at in zip(known, *(column.tolist() for column in places), strict=True):
            left, right = dataset.texts[row]
            each = Disagreement(left, right, dataset.name, *at)
            key = tuple(sorted((left.lower(), right.lower())))
            if key not in found or _distance(each) > _distance(found[key]):
                found[key] = each
    return sorted(found.values(), key=lambda each: (-_distance(each), each.left, each.right))


def _distance(each: Disagreement) -> float:
    return abs(each.first - each.second)


def _strip(each: Disagreement, colours: tuple[str, str]) -> Html:
    rules = [
        element("line", x1=percent(x), x2=percent(x), y1="0%", y2="100%", class_="rule") for x in (0, 25, 50, 75, 100)
    ]
    span = {"x1": percent(min(each.first, each.second)), "x2": percent(max(each.first, each.second))}
    parts = [*rules, element("line", **span, y1="50%", y2="50%", class_="whisker thin c0")]
    for value, kind in zip((each.first, each.second), colours, strict=True):
        parts.append(element("circle", cx=percent(value), cy="50%", r=5, class_=f"dot {kind}"))
    parts.append(element("circle", cx=percent(each.people), cy="50%", r=6.5, class_="ring"))
    return svg(*parts, label=None, height=28, classes="strip")


def _ends() -> Html:
    labels = [element("text", str(x), x=percent(x), y=14, class_="tick", text_anchor="middle") for x in (0, 50, 100)]
    return svg(*labels, label=None, height=20, classes="strip")
