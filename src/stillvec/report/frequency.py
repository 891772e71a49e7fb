"""Score by word frequency: similarity pairs in thirds, by the count of their rarer word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stillvec.evaluation.intervals import Estimate, Resampling, spearman
from stillvec.report.html_markup import Html, element, interval, joined, name_of, numeric, plural, table
from stillvec.report.report_data import ReportData
from stillvec.report.svg import Line, line_chart
from stillvec.vectors import WordVectors

THIRDS = ("rare", "middle", "frequent")
_LEAST = 10  # pairs of a third


@dataclass(frozen=True)
class Third:
    """The pairs of one third: their median count, and the mean ρ of each set over datasets."""

    median: float
    n_pairs: int
    values: Mapping[str, Estimate]


def frequency_section(material: ReportData) -> Html | None:
    thirds = by_frequency(material)
    if not thirds:
        return None
    said = (
        "Pairs of each similarity dataset that all sets know, in thirds by how often the rarer word of a pair stands "
        "in the largest corpus among these sets; the mean of Spearman's ρ over the datasets, times 100."
    )
    ticks = [
        (15 + 35 * at, f"{name} ({third.median:,.0f}×)")
        for at, (name, third) in enumerate(zip(THIRDS, thirds, strict=True))
    ]
    lines = []
    for place, name in enumerate(material.given):
        aside = min(1.1, 20 / len(material.given)) * (place - (len(material.given) - 1) / 2)  # whiskers side by side
        points = [(15 + 35 * at + aside, *third.values[name]) for at, third in enumerate(thirds)]
        lines.append(Line(name, material.colour(name), points))
    chart = line_chart(lines, ticks, "Score by word frequency: lines for each set over rare, middle and frequent words")
    body = [
        (
            element("th", name_of(name), scope="row", class_=f"set {material.colour(name)}"),
            *(_cell(third.values[name]) for third in thirds),
        )
        for name in material.given
    ]
    heads = (
        element("th", name, " ", element("small", plural(third.n_pairs, "pair")), scope="col", class_="num")
        for name, third in zip(THIRDS, thirds, strict=True)
    )
    figures = table("Score by word frequency", ("vectors", *heads), body, classes="sortable")
    note = element("p", "In brackets: the median count of the rarer word.", class_="note")
    return joined((element("p", said, class_="lead"), chart, note, figures))


def by_frequency(material: ReportData) -> list[Third]:
    """Rare, middle and frequent; nothing where no set has counts, or no dataset enough pairs."""
    names = material.given
    counted = [each for each in material.sets.values() if each.vocabulary.counts.any()]
    if not counted:
        return []
    reference = max(counted, key=lambda each: int(each.vocabulary.counts.sum()))
    resampling = Resampling(500)
    found: list[list[dict[str, Estimate]]] = [[], [], []]
    counts: list[list[float]] = [[], [], []]
    for pairs in material.pairs:
        known = pairs.shared(names)
        if len(known) < 3 * _LEAST:
            continue
        rarer = np.array([min(_count(reference, each) for each in pairs.items.texts[row]) for row in known])
        for at, third in enumerate(np.array_split(np.argsort(rarer, kind="stable"), 3)):
            rows = known[third]
            gold = pairs.items.gold[rows]
            values = {name: resampling.correlation(spearman, gold, pairs.cosines[name][rows]) for name in names}
            if all(np.isfinite(each.value) for each in values.values()):
                found[at].append(values)
            counts[at] += rarer[third].tolist()
    if not all(found):
        return []
    return [
        Third(float(np.median(some)), len(some), {name: _mean([each[name] for each in values]) for name in names})
        for values, some in zip(found, counts, strict=True)
    ]


def _count(vectors: WordVectors, word: str) -> int:
    row = vectors.vocabulary.row(word)
    return 0 if row is None else int(vectors.vocabulary.counts[row])


def _mean(estimates: list[Estimate]) -> Estimate:
    values, lows, highs = np.array(estimates).T
    value, n = float(values.mean()), len(values)
    return Estimate(
        value,
        value - float(np.sqrt(((values - lows) ** 2).sum())) / n,
        value + float(np.sqrt(((highs - values) ** 2).sum())) / n,
    )


def _cell(estimate: Estimate) -> Html:
    return numeric(estimate.value, title=f"95% {interval(estimate.low, estimate.high)}")
