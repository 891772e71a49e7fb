"""The first sentence of the page: which set is best, and whether the differences are significant."""

import math
from collections.abc import Sequence

from stillvec.evaluation.evaluation_report import Comparison
from stillvec.evaluation.score_table import rank_rows
from stillvec.evaluation.tasks import task_class
from stillvec.report.html_markup import Html, element, join, join_names, number, plural, word
from stillvec.report.report_data import ReportData

_TEST = "paired bootstrap, Holm's correction"


def verdict(data: ReportData) -> Html:
    """The sentence, as a paragraph."""
    standings = [mean for mean in data.ranking if math.isfinite(mean.value)]
    if not standings:
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
    n_won = sum(pair.significant and pair.difference > 0 for pair in single)
    n_lost = sum(pair.significant and pair.difference < 0 for pair in single)
    text = f"Compared with the second, it is significantly better in {n_won} and significantly worse in {n_lost} of "
    return [text, f"{plural(len(single), 'comparison')} ({_TEST})."]


def _on_similarity(against: Sequence[Comparison]) -> list[object]:
    """The sets that it is significantly ahead of, not significantly different from, and significantly behind."""
    n_ahead = sum(pair.significant and pair.difference > 0 for pair in against)
    behind = [pair.b for pair in against if pair.significant and pair.difference < 0]
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
