"""The nearest words of some words, side by side (as in table 4 of Wang et al. 2020)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from stillvec.report.html_markup import Html, element, joined, name_of, numeric, table, word
from stillvec.report.report_data import ReportData

_K = 8
_CHOSEN = 6
_SETS = 6  # columns at most
_USUAL = 300  # the most frequent words, which are seldom words of content


def neighbours_section(material: ReportData) -> Html | None:
    names = material.given[:_SETS]
    chosen = [each for each in material.words if all(each in material.sets[name] for name in names)]
    chosen = chosen or chosen_words(material, names)
    if not chosen or not names:
        return None
    said = f"The {_K} nearest words by cosine." + (" Pale: another set has it among its own." if len(names) > 1 else "")
    missing = [each for each in material.words if each not in chosen]
    note = element("p", "Not known to all sets: ", joined(map(word, missing), ", "), ".", class_="note")
    heads = (element("th", name_of(name), scope="col", class_=f"set {material.colour(name)}") for name in names)
    body = [(word(each), *_lists(material, each, names)) for each in chosen]
    lists = table("Nearest words", ("word", *heads), body, classes="lists")
    left = len(material.given) - len(names)
    rest = element("p", f"The first {_SETS} of {len(material.given)} sets.", class_="note") if left else None
    return joined((element("p", said, class_="lead"), lists, note if missing else None, rest, _overlaps(material)))


def _overlaps(material: ReportData) -> Html | None:
    """The share of neighbours that each two sets have in common, where the report has it."""
    found = {(a, b): each for each in material.report.overlaps for a, b in ((each.a, each.b), (each.b, each.a))}
    if not found:
        return None
    body = []
    for name in material.names:
        cells = [element("th", name_of(name), scope="row", class_=f"set {material.colour(name)}")]
        for other in material.names:
            each = found.get((name, other))
            shade = {"class_": "up", "style": f"--heat:{each.share:.2f}"} if each else {}
            cells.append(
                numeric(each.share if each else math.nan, f"{100 * each.share:.0f}%" if each else "·", **shade)
            )
        body.append(cells)
    first = next(iter(found.values()))
    said = f"The share of the {first.k} nearest words that two sets have in common, the mean over words that both know."
    heads = (element("th", name_of(name), scope="col", class_="num") for name in material.names)
    grid = table("Neighbours in common", ("vectors", *heads), body, classes="heat")
    return joined((element("h3", "Neighbours in common"), element("p", said, class_="lead"), grid))


def _lists(material: ReportData, each: str, names: Sequence[str]) -> list[Html]:
    nearest = {name: [found for found, _ in material.sets[name].nearest(each, _K)] for name in names}
    cells = []
    for name, found in nearest.items():
        others = {near for other, theirs in nearest.items() if other != name for near in theirs}
        items = (element("li", word(near), class_="pale" if near in others else None) for near in found)
        cells.append(element("td", element("ol", *items)))
    return cells


def chosen_words(material: ReportData, names: Sequence[str]) -> list[str]:
    """Some words that all sets know, from frequent to rare; of similarity data where there are any."""
    if not names:
        return []
    first = material.sets[names[0]]
    asked = {text.lower() for pairs in material.pairs for texts in pairs.items.texts for text in texts}
    others = [material.sets[name] for name in names[1:]]
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
