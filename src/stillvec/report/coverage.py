"""What each set knows, and where the treatment of unknown words changes who is better."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from stillvec.evaluation.evaluation_report import OovPolicy, PolicyRanking
from stillvec.evaluation.score_table import ScoreRow, group_scores
from stillvec.evaluation.tasks import task_class
from stillvec.report.html_markup import Html, element, join, number, numeric, plural, set_name, table
from stillvec.report.report_data import ReportData

_POLICIES: Mapping[OovPolicy, str] = {
    "skip": "left out",
    "mean": "the mean vector",
    "zero": "the zero vector",
    "subword": "made of n-grams",
}
_SHOWN = 3  # datasets, before the others are folded


def coverage_section(data: ReportData) -> Html | None:
    kept: dict[tuple[str, str], ScoreRow] = {}
    for row in group_scores(data.report.scores):
        if row.words == "own":
            kept.setdefault((row.task, row.dataset), row)
    if not kept:
        return None
    alike = all(len({score.n_covered for score in row.scores.values()}) == 1 for row in kept.values())
    names = data.names[:1] if alike else data.names
    labels = ["all sets"] if alike and len(data.names) > 1 else map(set_name, names)
    heads = (element("th", label, scope="col", class_="num") for label in labels)
    body = [(_label(row), *(_share(row, name) for name in names)) for row in kept.values()]
    shares = table("Items that are known, in percent", ("dataset", *heads), body, classes="heat sortable")
    said = "The share of items that each set covers. Fewer items usually means easier items."
    return join((element("p", said, class_="lead"), shares, *_policies(data)))


def _label(row: ScoreRow) -> Html:
    n = max(score.n_items for score in row.scores.values())
    small = element("small", f"{row.task} · {plural(n, 'item')}")
    return element("th", element("bdi", row.dataset), " ", small, scope="row")


def _share(row: ScoreRow, name: str) -> Html:
    score = row.scores.get(name)
    if score is None or not score.n_items:
        return numeric(math.nan)
    share = score.n_covered / score.n_items
    title = f"{score.n_covered:,} of {score.n_items:,} items"
    return numeric(share, f"{100 * share:.0f}%", title=title, class_="bar", style=f"--share:{100 * share:.1f}%")


def _policies(data: ReportData) -> list[Html]:
    """A sentence, and a table of the datasets where the order of the sets hangs on the policy."""
    found = data.report.policies
    if not found or len(data.names) < 2:
        return []
    found = tuple(each for each in found if task_class(each.task).ranks_by(each.metric))
    changed = [each for each in found if each.changes]
    count = plural(len(found), "ranking")
    heading = element("h3", "When unknown words count")
    if not changed:
        said = f"Whether unknown words are left out, the mean or the zero vector changes none of {count}."
        return [heading, element("p", said)]
    said = f"In {len(changed)} of {count}, by dataset and metric, the order depends on the policy for OOV words: "
    parts = [heading, element("p", said, "the place of each set, and its score."), _orders(data, changed[:_SHOWN])]
    if changed[_SHOWN:]:
        summary = element("summary", f"The other {len(changed) - _SHOWN}")
        parts.append(element("details", summary, _orders(data, changed[_SHOWN:])))
    return parts


def _orders(data: ReportData, changed: Sequence[PolicyRanking]) -> Html:
    names = [name for name in data.names if any(name in each.orders["skip"] for each in changed)]
    body = []
    for each in changed:
        for policy, order in each.orders.items():
            small = element("small", f"{each.metric} · unknown: {_POLICIES[policy]}")
            cells: list[Html] = [element("th", element("bdi", each.dataset), " ", small, scope="row")]
            for name in names:
                value = each.values[policy].get(name, math.nan)
                place = f"{order.index(name) + 1}." if math.isfinite(value) else ""
                moved = bool(place) and order.index(name) != each.orders["skip"].index(name)
                told = (element("b", place) if moved else place, " ", element("small", number(value)))
                cells.append(numeric(value, join(told), class_="down" if moved else "", style="--heat:0.4"))
            body.append(cells)
    heads = (element("th", set_name(name), scope="col", class_="num") for name in names)
    return table("Places by what is done with unknown words", ("dataset", *heads), body, classes="heat")
