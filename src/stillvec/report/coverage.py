"""Which items each set covers, and where the policy for OOV words changes the order of the sets."""

import math
from collections.abc import Mapping, Sequence

from stillvec.evaluation.evaluation_report import OovPolicy, PolicyRanking
from stillvec.evaluation.score_table import ScoreRow, group_scores
from stillvec.evaluation.tasks import task_class
from stillvec.report.html_markup import Html, element, fold, join, lead, plural
from stillvec.report.html_tables import column, dataset_row, number, numeric, table
from stillvec.report.report_data import ReportData

_POLICIES: Mapping[OovPolicy, str] = {
    "skip": "left out",
    "mean": "the mean vector",
    "zero": "the zero vector",
    "subword": "composed from n-grams",
}
_N_OPEN = 3  # datasets shown before the others are folded


def coverage_section(data: ReportData) -> Html | None:
    rows: dict[tuple[str, str], ScoreRow] = {}
    for row in group_scores(data.report.scores):
        if row.words == "own":
            rows.setdefault((row.task, row.dataset), row)
    if not rows:
        return None
    alike = all(len({score.n_covered for score in row.scores.values()}) == 1 for row in rows.values())
    names = data.names[:1] if alike else data.names
    heads = [column("all sets")] if alike and len(data.names) > 1 else data.set_columns(names)
    body = []
    for row in rows.values():
        n_items = plural(max(score.n_items for score in row.scores.values()), "item")
        body.append((dataset_row(row.dataset, f"{row.task} · {n_items}"), *(_share(row, name) for name in names)))
    shares = table("Covered items, in percent", ("dataset", *heads), body, classes="heat sortable")
    text = "The share of items that each set covers. The items that a set covers are usually the easier ones."
    return join((lead(text), shares, *_policy_effects(data)))


def _share(row: ScoreRow, name: str) -> Html:
    score = row.scores.get(name)
    if score is None or not score.n_items:
        return numeric(math.nan)
    share = score.n_covered / score.n_items
    title = f"{score.n_covered:,} of {score.n_items:,} items"
    return numeric(share, f"{100 * share:.0f}%", title=title, class_="bar", style=f"--share:{100 * share:.1f}%")


def _policy_effects(data: ReportData) -> list[Html]:
    """A sentence, and a table of the datasets where the order of the sets depends on the policy."""
    if not data.report.policies or len(data.names) < 2:
        return []
    rankings = [ranking for ranking in data.report.policies if task_class(ranking.task).ranks_by(ranking.metric)]
    changed = [ranking for ranking in rankings if ranking.changes]
    count = plural(len(rankings), "ranking")
    heading = element("h3", "Effect of out-of-vocabulary (OOV) words")
    if not changed:
        text = f"The policy for OOV words (left out, mean vector or zero vector) changes none of {count}."
        return [heading, element("p", text)]
    text = f"In {len(changed)} of {count} (one per dataset and metric) the order depends on the policy for OOV words: "
    parts = [heading, element("p", text, "the rank and score of each set."), _orders(data, changed[:_N_OPEN])]
    if changed[_N_OPEN:]:
        parts.append(fold(f"The other {len(changed) - _N_OPEN}", _orders(data, changed[_N_OPEN:])))
    return parts


def _orders(data: ReportData, changed: Sequence[PolicyRanking]) -> Html:
    names = [name for name in data.names if any(name in ranking.orders["skip"] for ranking in changed)]
    body = []
    for ranking in changed:
        for policy, order in ranking.orders.items():
            cells = [dataset_row(ranking.dataset, f"{ranking.metric} · OOV: {_POLICIES[policy]}")]
            for name in names:
                value = ranking.values[policy].get(name, math.nan)
                place = f"{order.index(name) + 1}." if math.isfinite(value) else ""
                moved = bool(place) and order.index(name) != ranking.orders["skip"].index(name)
                content = (element("b", place) if moved else place, " ", element("small", number(value)))
                cells.append(numeric(value, join(content), class_="down" if moved else "", style="--heat:0.4"))
            body.append(cells)
    return table("Ranks by policy for OOV words", ("dataset", *data.set_columns(names)), body, classes="heat")
