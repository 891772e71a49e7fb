"""The nearest words of some words, side by side (as in table 4 of Wang et al. 2020)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stillvec.report.markup import Html, element, joined, name_of, table, word
from stillvec.report.material import Material

_K = 8
_CHOSEN = 6
_SETS = 8  # columns at most
_USUAL = 300  # the most frequent words, which are seldom words of content


def neighbours_section(material: Material) -> Html | None:
    names = material.given[:_SETS]
    chosen = [each for each in material.words if all(each in material.sets[name] for name in names)]
    chosen = chosen or chosen_words(material, names)
    if not chosen or not names:
        return None
    said = f"The {_K} nearest words by cosine. Bold: only this set has it among its {_K}; pale: all have it."
    if len(names) == 1:
        said = f"The {_K} nearest words by cosine."
    missing = [each for each in material.words if each not in chosen]
    note = element("p", "Not known to all sets: ", joined(map(word, missing), ", "), ".", class_="note")
    heads = (element("th", name_of(name), scope="col", class_=f"set {material.colour(name)}") for name in names)
    body = [(word(each), *_lists(material, each, names)) for each in chosen]
    lists = table("Nearest words", ("word", *heads), body, classes="lists")
    left = len(material.given) - len(names)
    rest = element("p", f"The first {_SETS} of {len(material.given)} sets.", class_="note") if left else None
    return joined((element("p", said, class_="lead"), lists, note if missing else None, rest))


def _lists(material: Material, each: str, names: Sequence[str]) -> list[Html]:
    nearest = {name: [found for found, _ in material.sets[name].nearest(each, _K)] for name in names}
    cells = []
    for name, found in nearest.items():
        others = [{*theirs} for other, theirs in nearest.items() if other != name]
        items = []
        for near in found:
            held = sum(near in theirs for theirs in others)
            kind = None if not others else "own" if not held else "all" if held == len(others) else None
            items.append(element("li", word(near), class_=kind))
        cells.append(element("td", element("ol", *items)))
    return cells


def chosen_words(material: Material, names: Sequence[str]) -> list[str]:
    """Some words that all sets know, from frequent to rare; of similarity data where there are any."""
    if not names:
        return []
    first = material.sets[names[0]]
    asked = {text.lower() for pairs in material.pairs for texts in pairs.items.texts for text in texts}
    others = [material.sets[name] for name in names[1:]]
    good = re.compile(r"[^\W\d_]{4,12}")
    ranked = sorted(range(len(first)), key=lambda row: (-int(first.vocabulary.counts[row]), row))
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
