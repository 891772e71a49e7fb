"""Where two sets disagree most: word pairs that one ranks high and the other low, with the human ratings."""

from collections.abc import Sequence
from typing import NamedTuple

from stillvec.evaluation.evaluation_report import ScoredPairs
from stillvec.numerics import rank_values
from stillvec.report.html_markup import Html, element, join, lead, note, plural, set_name, word
from stillvec.report.html_tables import chart_column, column, table
from stillvec.report.report_data import ReportData
from stillvec.report.svg import percent, rule, svg

_MAX_PAIRS = 10


class Disagreement(NamedTuple):
    """A word pair and its percentile, 0 to 100, among the pairs of its dataset that both sets cover."""

    left: str
    right: str
    dataset: str
    people: float
    first: float
    second: float


def disagreement_section(data: ReportData) -> Html | None:
    names = data.with_pairs
    rivals = dict.fromkeys((*names[1:2], *names[2:][-1:]))
    parts = [_compare(data, names[0], rival) for rival in rivals]
    if not any(parts):
        return None
    text = (
        "Word pairs of the similarity datasets that two sets rank most differently. Numbers are percentiles within the "
        "dataset: 0 is the least similar pair, 100 the most similar. The ring shows the human rating."
    )
    return join((lead(text), *parts))


def _compare(data: ReportData, first: str, second: str) -> Html | None:
    shown = disagreements(data.report.pairs, first, second)[:_MAX_PAIRS]
    if not shown:
        return None
    n_closer = sum(abs(pair.first - pair.people) < abs(pair.second - pair.people) for pair in shown)
    colours = (data.colour(first), data.colour(second))
    body = [
        (
            element("th", word(pair.left), " · ", word(pair.right), scope="row"),
            element("td", _strip(pair, colours), class_="chart"),
            *(element("td", f"{value:.0f}", class_="num") for value in pair[3:]),
            element("td", word(pair.dataset), class_="pale wide"),
        )
        for pair in shown
    ]
    names = [(set_name(name), data.colour(name)) for name in (first, second)]
    sides = [column(name, f"num set {colour}") for name, colour in names]
    head = ("pair", chart_column(_ends()), column("humans"), *sides, column("dataset", "wide"))
    titles = [element("span", name, class_=f"set {colour}") for name, colour in names]
    remark = (set_name(first), f" is closer to the human rating in {n_closer} of these {plural(len(shown), 'pair')}.")
    pairs = table(f"{first} and {second} disagree", head, body, classes="ranking places")
    return join((element("h3", titles[0], " and ", titles[1]), pairs, note(*remark)))


def disagreements(pairs: Sequence[ScoredPairs], first: str, second: str) -> list[Disagreement]:
    """All pairs that both sets cover, by decreasing difference of their percentiles; each word pair once."""
    largest: dict[tuple[str, ...], Disagreement] = {}
    for dataset in pairs:
        known = dataset.common_rows((first, second))
        if len(known) < 3:
            continue
        columns = (dataset.gold, dataset.cosines[first], dataset.cosines[second])
        places = [100 * (rank_values(values[known]) - 1) / (len(known) - 1) for values in columns]
        for row, *at in zip(known, *(values.tolist() for values in places), strict=True):
            left, right = dataset.texts[row]
            pair = Disagreement(left, right, dataset.name, *at)
            key = tuple(sorted((left.lower(), right.lower())))
            if key not in largest or _distance(pair) > _distance(largest[key]):
                largest[key] = pair
    return sorted(largest.values(), key=lambda pair: (-_distance(pair), pair.left, pair.right))


def _distance(pair: Disagreement) -> float:
    return abs(pair.first - pair.second)


def _strip(pair: Disagreement, colours: tuple[str, str]) -> Html:
    rules = [rule(x, "rule") for x in (0, 25, 50, 75, 100)]
    span = {"x1": percent(min(pair.first, pair.second)), "x2": percent(max(pair.first, pair.second))}
    parts = [*rules, element("line", **span, y1="50%", y2="50%", class_="whisker thin c0")]
    for value, kind in zip((pair.first, pair.second), colours, strict=True):
        parts.append(element("circle", cx=percent(value), cy="50%", r=5, class_=f"dot {kind}"))
    parts.append(element("circle", cx=percent(pair.people), cy="50%", r=6.5, class_="ring"))
    return svg(*parts, label=None, height=28, classes="strip")


def _ends() -> Html:
    labels = [element("text", str(x), x=percent(x), y=14, class_="tick", text_anchor="middle") for x in (0, 50, 100)]
    return svg(*labels, label=None, height=20, classes="strip")
