"""The nearest words of some words, side by side (as in table 4 of Wang et al. 2020)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from stillvec.report.html_markup import Html, element, join, numeric, set_name, table, word
from stillvec.report.report_data import ReportData

_K = 8
_CHOSEN = 6
_SETS = 6  # columns at most
_USUAL = 300  # the most frequent words, which are seldom words of content


def neighbours_section(data: ReportData) -> Html | None:
    names = data.with_vectors[:_SETS]
    chosen = [each for each in data.words if all(each in data.sets[name] for name in names)]
    chosen = chosen or choose_words(data, names)
    if not chosen or not names:
        return None
    said = f"The {_K} nearest words by cosine." + (
        " Grey words also appear in another set's list." if len(names) > 1 else ""
    )
    missing = [each for each in data.words if each not in chosen]
    note = element("p", "Not known to all sets: ", join(map(word, missing), ", "), ".", class_="note")
    heads = (element("th", set_name(name), scope="col", class_=f"set {data.colour(name)}") for name in names)
    body = [(word(each), *_lists(data, each, names)) for each in chosen]
    lists = table("Nearest words", ("word", *heads), body, classes="lists")
    left = len(data.with_vectors) - len(names)
    rest = element("p", f"The first {_SETS} of {len(data.with_vectors)} sets.", class_="note") if left else None
    return join((element("p", said, class_="lead"), lists, note if missing else None, rest, _overlaps(data)))


def _overlaps(data: ReportData) -> Html | None:
    """The share of neighbours that each two sets have in common, where the report has it."""
    found = {(a, b): each for each in data.report.overlaps for a, b in ((each.a, each.b), (each.b, each.a))}
    if not found:
        return None
    body = []
    for name in data.names:
        cells = [element("th", set_name(name), scope="row", class_=f"set {data.colour(name)}")]
        for other in data.names:
            each = found.get((name, other))
            shade = {"class_": "up", "style": f"--heat:{each.share:.2f}"} if each else {}
            cells.append(
                numeric(each.share if each else math.nan, f"{100 * each.share:.0f}%" if each else "·", **shade)
            )
        body.append(cells)
    first = next(iter(found.values()))
    said = f"The share of the {first.k} nearest words that two sets have in common, the mean over words that both know."
    heads = (element("th", set_name(name), scope="col", class_="num") for name in data.names)
    grid = table("Neighbours in common", ("vectors", *heads), body, classes="heat")
    return join((element("h3", "Neighbours in common"), element("p", said, class_="lead"), grid))


def _lists(data: ReportData, each: str, names: Sequence[str]) -> list[Html]:
    nearest = {name: [found for found, _ in data.sets[name].nearest(each, _K)] for name in names}
    cells = []
    for name, found in nearest.items():
        others = {near for other, theirs in nearest.items() if other != name for near in theirs}
        items = (element("li", word(near), class_="pale" if near in others else None) for near in found)
        cells.append(element("td", element("ol", *items)))
    return cells


def choose_words(data: ReportData, names: Sequence[str]) -> list[str]:
    """Some words that all sets know, from frequent to rare; of similarity data where there are any."""
    if not names:
        return []
    first = data.sets[names[0]]
    asked = {text.lower() for pairs in data.report.pairs for texts in pairs.texts for text in texts}
    others = [data.sets[name] for name in names[1:]]
    good = re.compile(r"[^\W\d_]{4,12}")
    ranked = np.argsort(-first.vocabulary.counts, kind="stable").tolist()
    usual = min(_USUAL, len(first) // 20)
    fit = [
        first.words[row]
        for row in ranked[usual : usual + 4000]
        if good.fullmatch(first.words[row]) and all(first.words[row] in other for other in others)
    ]
    fit = [each for each in fit if each.lower() in asked] or fit
    count = min(_CHOSEN, len(fit))
    # a geometric walk down the list: more of the frequent than of the rare
    return [*dict.fromkeys(fit[round((len(fit) - 1) * (at / max(count - 1, 1)) ** 2)] for at in range(count))]
