"""Score by word frequency: similarity pairs in thirds, by the count of their rarer word."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stillvec.evaluation.evaluation_report import ScoredPairs
from stillvec.evaluation.intervals import Estimate, Resampling, spearman
from stillvec.evaluation.score_table import average_independent
from stillvec.report.html_markup import Html, element, join, lead, note, plural
from stillvec.report.html_tables import column, interval, numeric, table
from stillvec.report.report_data import ReportData
from stillvec.report.svg import Line, line_chart
from stillvec.vectors import WordVectors

THIRDS = ("rare", "middle", "frequent")
_MIN_PAIRS = 10  # per third


def frequency_section(data: ReportData) -> Html | None:
    names = data.with_vectors
    thirds = score_by_frequency(data.report.pairs, data.sets, names) if names else []
    if not thirds:
        return None
    text = (
        "The pairs of each similarity dataset that all sets cover, in thirds by the frequency of the rarer word in the "
        "largest corpus of these sets. Scores are the mean of Spearman's ρ over the datasets, times 100."
    )
    ticks = [
        (15 + 35 * at, f"{name} ({third.median:,.0f}×)")
        for at, (name, third) in enumerate(zip(THIRDS, thirds, strict=True))
    ]
    lines = []
    for place, name in enumerate(names):
        shift = min(1.1, 20 / len(names)) * (place - (len(names) - 1) / 2)  # whiskers side by side
        points = [(15 + 35 * at + shift, *third.values[name]) for at, third in enumerate(thirds)]
        lines.append(Line(name, data.colour(name), points))
    chart = line_chart(lines, ticks, "Score by word frequency, one line per set")
    body = []
    for name in names:
        scores = [third.values[name] for third in thirds]
        cells = (numeric(score.value, title=f"95% {interval(score.low, score.high)}") for score in scores)
        body.append((data.set_row(name), *cells))
    heads = [
        column(join((name, " ", element("small", plural(third.n_pairs, "pair")))))
        for name, third in zip(THIRDS, thirds, strict=True)
    ]
    figures = table("Score by word frequency", ("vectors", *heads), body, classes="sortable")
    return join((lead(text), chart, note("In brackets: the median count of the rarer word."), figures))


@dataclass(frozen=True)
class FrequencyBand:
    """The pairs of one third: the median count of the rarer word, and the mean ρ of each set over datasets."""

    median: float
    n_pairs: int
    values: Mapping[str, Estimate]


def score_by_frequency(
    datasets: Sequence[ScoredPairs], sets: Mapping[str, WordVectors], names: Sequence[str]
) -> list[FrequencyBand]:
    """Rare, middle and frequent words, counted in the largest corpus among the sets.

    Nothing where no set has counts, or no dataset has enough pairs that all `names` cover.
    """
    with_counts = [vectors for vectors in sets.values() if vectors.vocabulary.counts.any()]
    if not with_counts:
        return []
    reference = max(with_counts, key=lambda vectors: int(vectors.vocabulary.counts.sum()))
    resampling = Resampling(500)
    scores: list[list[dict[str, Estimate]]] = [[], [], []]
    counts: list[list[float]] = [[], [], []]
    for pairs in datasets:
        common = pairs.common_rows(names)
        if len(common) < 3 * _MIN_PAIRS:
            continue
        rarer = np.array([min(_count(reference, word) for word in pairs.texts[row]) for row in common])
        for at, third in enumerate(np.array_split(np.argsort(rarer, kind="stable"), 3)):
            rows = common[third]
            gold = pairs.gold[rows]
            values = {name: resampling.correlation(spearman, gold, pairs.cosines[name][rows]) for name in names}
            if all(np.isfinite(estimate.value) for estimate in values.values()):
                scores[at].append(values)
            counts[at] += rarer[third].tolist()
    if not all(scores):
        return []
    return [
        FrequencyBand(
            float(np.median(band_counts)),
            len(band_counts),
            {name: average_independent([values[name] for values in band]) for name in names},
        )
        for band, band_counts in zip(scores, counts, strict=True)
    ]


def _count(vectors: WordVectors, word: str) -> int:
    row = vectors.vocabulary.row(word)
    return 0 if row is None else int(vectors.vocabulary.counts[row])
