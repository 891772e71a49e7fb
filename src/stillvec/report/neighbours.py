"""The nearest neighbours of a few words, side by side (as in table 4 of Wang et al. 2020)."""

import math
import re
from collections.abc import Sequence

import numpy as np

from stillvec.report.html_markup import Html, element, join, lead, note, set_name, word
from stillvec.report.html_tables import column, numeric, table
from stillvec.report.report_data import ReportData

_K = 8
_N_WORDS = 6
_MAX_SETS = 6  # columns
_N_SKIPPED = 300  # the most frequent words, mostly function words


def neighbours_section(data: ReportData) -> Html | None:
    names = data.with_vectors[:_MAX_SETS]
    chosen = [query for query in data.words if all(query in data.sets[name] for name in names)]
    chosen = chosen or choose_words(data, names)
    if not chosen or not names:
        return None
    grey = " Grey words also appear in another set's list." if len(names) > 1 else ""
    missing = [query for query in data.words if query not in chosen]
    oov = note("Not in all sets: ", join(map(word, missing), ", "), ".") if missing else None
    heads = (column(set_name(name), f"set {data.colour(name)}") for name in names)
    body = [(word(query), *_lists(data, query, names)) for query in chosen]
    lists = table("Nearest neighbours", ("word", *heads), body, classes="lists")
    n_left = len(data.with_vectors) - len(names)
    rest = note(f"The first {_MAX_SETS} of {len(data.with_vectors)} sets.") if n_left else None
    return join((lead(f"The {_K} nearest neighbours by cosine.{grey}"), lists, oov, rest, _overlaps(data)))


def _overlaps(data: ReportData) -> Html | None:
    """The share of neighbours that each two sets have in common, if the report has it."""
    overlaps = data.report.overlaps
    shares = {pair: item.share for item in overlaps for pair in ((item.a, item.b), (item.b, item.a))}
    if not shares:
        return None
    body = []
    for name in data.names:
        cells = [data.set_row(name)]
        for other in data.names:
            share = shares.get((name, other))
            if share is None:
                cells.append(numeric(math.nan, "·"))
            else:
                cells.append(numeric(share, f"{100 * share:.0f}%", class_="up", style=f"--heat:{share:.2f}"))
        body.append(cells)
    k = overlaps[0].k
    text = f"The share of the {k} nearest neighbours that two sets have in common, as a mean over their common words."
    grid = table("Neighbours in common", ("vectors", *data.set_columns()), body, classes="heat")
    return join((element("h3", "Neighbours in common"), lead(text), grid))


def _lists(data: ReportData, query: str, names: Sequence[str]) -> list[Html]:
    nearest = {name: [neighbour for neighbour, _ in data.sets[name].nearest(query, _K)] for name in names}
    cells = []
    for name, neighbours in nearest.items():
        others = {near for other, theirs in nearest.items() if other != name for near in theirs}
        items = (element("li", word(near), class_="pale" if near in others else None) for near in neighbours)
        cells.append(element("td", element("ol", *items)))
    return cells


def choose_words(data: ReportData, names: Sequence[str]) -> list[str]:
    """A few words that all sets contain, from frequent to rare; words of similarity datasets if there are any."""
    if not names:
        return []
    first = data.sets[names[0]]
    asked = {text.lower() for pairs in data.report.pairs for texts in pairs.texts for text in texts}
    others = [data.sets[name] for name in names[1:]]
    good = re.compile(r"[^\W\d_]{4,12}")
    ranked = np.argsort(-first.vocabulary.counts, kind="stable").tolist()
    usual = min(_N_SKIPPED, len(first) // 20)
    fit = [
        first.words[row]
        for row in ranked[usual : usual + 4000]
        if good.fullmatch(first.words[row]) and all(first.words[row] in other for other in others)
    ]
    fit = [query for query in fit if query.lower() in asked] or fit
    count = min(_N_WORDS, len(fit))
    # quadratic steps: more frequent words than rare ones
    return [*dict.fromkeys(fit[round((len(fit) - 1) * (at / max(count - 1, 1)) ** 2)] for at in range(count))]
