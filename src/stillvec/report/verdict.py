"""One sentence at the top: what is best, and whether the differences are real."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stillvec.evaluation.evaluation_report import Comparison
from stillvec.evaluation.score_table import rank_rows
from stillvec.evaluation.tasks import task_class
from stillvec.report.html_markup import Html, element, join, join_names, number, plural, word
from stillvec.report.report_data import ReportData

_TESTED = "by the paired bootstrap, corrected for the number of comparisons"


def verdict(data: ReportData) -> Html:
    """The sentence, as a paragraph."""
    standings = [each for each in data.ranking if math.isfinite(each.value)]
    if not standings:
        return _paragraph("No set of vectors has a score on all datasets, so none can be called the best.")
    counted = rank_rows(data.report, data.basis)
    over = f"over {plural(len(counted), 'dataset')} of {join_names([*dict.fromkeys(row.task for row in counted)])}"
    best = standings[0]
    if len(standings) == 1:
        return _paragraph(word(best.name), f" has a mean score of {number(best.value)} {over}.")
    opening = (element("strong", word(best.name)), f" is best {over}, with a mean of {number(best.value)}")
    close = len({row.task for row in counted}) > 1 and standings[1].high >= best.low
    lead = f"; its {number(best.value - standings[1].value)} points over "
    inside = (lead, word(standings[1].name), " are inside the intervals") if close else ()
    return _paragraph(*opening, *inside, *_reality(data, best.name))


def _reality(data: ReportData, best: str) -> list[object]:
    """The end of the sentence: is the lead real?"""
    against = leads(data.report.overall, best)
    if against:
        return [*_on_similarity(against), f", {_TESTED}."]
    second = data.names[1]
    single = [each for each in leads(data.report.comparisons, best) if each.b == second]
    if not single:
        return ["; whether that is more than chance was not tested."]
    won = sum(each.significant and each.difference > 0 for each in single)
    lost = sum(each.significant and each.difference < 0 for each in single)
    said = f"; against the next, it is really better in {won} and really worse in {lost} of "
    return [said, f"{plural(len(single), 'comparison')}, {_TESTED}."]


def _on_similarity(against: Sequence[Comparison]) -> list[object]:
    """Of whom it is really ahead, from whom it cannot be told apart, and behind whom it really is."""
    ahead = [each for each in against if each.significant and each.difference > 0]
    behind = [each.b for each in against if each.significant and each.difference < 0]
    alike = [each.b for each in against if not each.significant]
    if len(ahead) == len(against):
        told = "over the other" if len(against) == 1 else "over each of the others"
        return [f"; on word similarity alone its lead {told} is real"]
    clauses: list[Html] = []
    if ahead:
        clauses.append(join((f"it is really ahead of {len(ahead)} of the {len(against)} others",)))
    if alike:
        clauses.append(join(("its distance to ", join(map(word, alike), ", "), " may be chance")))
    if behind:
        clauses.append(join(("it is really behind ", join(map(word, behind), ", "))))
    return ["; on word similarity alone ", join(clauses, ", ")]


def leads(comparisons: tuple[Comparison, ...], best: str) -> list[Comparison]:
    """The comparisons of one set with others, all seen from its side."""
    turned = [each.from_side(best) for each in comparisons if best in (each.a, each.b)]
    return [each for each in turned if each.words != "unleaked" and task_class(each.task).ranks_by(each.metric)]


def _paragraph(*parts: object) -> Html:
    return element("p", *parts, class_="verdict")
