"""Significant differences: the paired comparisons with Holm's correction, and the first sentence of the page."""

import math
from collections.abc import Sequence

from stillvec.evaluation.evaluation_report import Comparison
from stillvec.evaluation.score_table import rank_rows
from stillvec.evaluation.tasks import task_class
from stillvec.report.html_markup import Html, element, fold, join, join_names, lead, note, plural, set_name, word
from stillvec.report.html_tables import chart_column, column, interval, number, numeric, points, table
from stillvec.report.report_data import ReportData
from stillvec.report.svg import Scale, axis, whisker

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
    numbers = (column("points"), column("95%", "num wide"), column("p"))
    head = ("vectors", chart_column(axis(scale)), *numbers, "significant")
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
            n_won = sum(pair.significant and pair.gain > 0 for pair in against)
            share = n_won / len(against) if against else 0.0
            text = f"{n_won} of {len(against)}" if against else "·"
            cells.append(numeric(share, text, class_="up", style=f"--heat:{share:.2f}"))
        body.append(cells)
    text = (
        "The number of metrics, over all datasets, on which the row's set is significantly better than the column's "
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


_TEST = "paired bootstrap, Holm's correction"


def verdict(data: ReportData) -> Html:
    """The sentence, as a paragraph."""
    standings = [mean for mean in data.ranking if math.isfinite(mean.value)]
    if not standings:
        if not any(task_class(score.task).averaged for score in data.report.scores):
            return _paragraph("These tasks describe the vectors without ranking them.")
        return _paragraph("No set of vectors has a score on all datasets, so there is no best set.")
    counted = rank_rows(data.report, data.basis)
    over = f"over {plural(len(counted), 'dataset')} of {join_names([*dict.fromkeys(row.task for row in counted)])}"
    best = standings[0]
    if len(standings) == 1:
        return _paragraph(word(best.name), f" has a mean score of {number(best.value)} {over}.")
    opening = (element("strong", word(best.name)), f" is best {over}, with a mean of {number(best.value)}")
    second = standings[1]
    overlap = len({row.task for row in counted}) > 1 and second.high >= best.low
    margin = f", {number(best.value - second.value)} points ahead of "
    close = (margin, word(second.name), " with overlapping intervals") if overlap else ()
    return _paragraph(*opening, *close, ". ", *_significance(data, best.name))


def _significance(data: ReportData, best: str) -> list[object]:
    """The second sentence: is the lead significant?"""
    against = leads(data.report.overall, best)
    if against:
        return [*_on_similarity(against), f" ({_TEST})."]
    second = data.names[1]
    single = [pair for pair in leads(data.report.comparisons, best) if pair.b == second]
    if not single:
        return ["Significance was not tested."]
    n_won = sum(pair.significant and pair.gain > 0 for pair in single)
    n_lost = sum(pair.significant and pair.gain < 0 for pair in single)
    text = f"Compared with the second, it is significantly better in {n_won} and significantly worse in {n_lost} of "
    return [text, f"{plural(len(single), 'comparison')} ({_TEST})."]


def _on_similarity(against: Sequence[Comparison]) -> list[object]:
    """The sets that it is significantly ahead of, not significantly different from, and significantly behind."""
    n_ahead = sum(pair.significant and pair.gain > 0 for pair in against)
    behind = [pair.b for pair in against if pair.significant and pair.gain < 0]
    alike = [pair.b for pair in against if not pair.significant]
    if n_ahead == len(against):
        others = "the other" if len(against) == 1 else "all others"
        return [f"On word similarity alone, its lead over {others} is significant"]
    clauses: list[Html] = []
    if n_ahead:
        clauses.append(join((f"it is significantly better than {n_ahead} of {len(against)} others",)))
    if alike:
        clauses.append(join(("the difference from ", join(map(word, alike), ", "), " is not significant")))
    if behind:
        clauses.append(join(("it is significantly worse than ", join(map(word, behind), ", "))))
    return ["On word similarity alone, ", join(clauses, "; ")]


def leads(comparisons: tuple[Comparison, ...], best: str) -> list[Comparison]:
    """The comparisons of one set with others, from its side."""
    turned = [pair.from_side(best) for pair in comparisons if best in (pair.a, pair.b)]
    return [pair for pair in turned if pair.words != "unleaked" and task_class(pair.task).ranks_by(pair.metric)]


def _paragraph(*parts: object) -> Html:
    return element("p", *parts, class_="verdict")
