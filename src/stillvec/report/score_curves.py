"""Scores as curves: by word frequency, and by corpus size for methods that were trained on corpora of several sizes."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stillvec.evaluation.evaluation_report import ScoredPairs
from stillvec.evaluation.intervals import Estimate, Resampling, spearman
from stillvec.evaluation.score_table import MeanScore, average_independent
from stillvec.report.html_markup import Html, element, join, lead, note, plural, set_name
from stillvec.report.html_tables import column, interval, numeric, table
from stillvec.report.report_data import ReportData
from stillvec.report.svg import Line, colour, line_chart
from stillvec.vectors import WordVectors

THIRDS = ("rare", "middle", "frequent")
_MIN_PAIRS = 10  # per third
_MAX_CURVES = 8
_MAX_TICKS = 4  # sizes whose labels fit


def frequency_section(data: ReportData) -> Html | None:
    names = data.with_vectors
    thirds = score_by_frequency(data.report.pairs, data.sets, names) if names else []
    if not thirds:
        return None
    text = (
        "The pairs of each similarity dataset that all sets cover, in thirds by the frequency of the rarer word in the "
        "largest corpus of these sets. Scores are the mean of Spearman's ρ over the datasets, times 100."
    )
    bands = dict(zip(THIRDS, thirds, strict=True))
    ticks = [(15 + 35 * at, f"{name} ({band.median:,.0f}×)") for at, (name, band) in enumerate(bands.items())]
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
    heads = [column(join((name, " ", element("small", plural(band.n_pairs, "pair"))))) for name, band in bands.items()]
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
    bands = []
    for band, band_counts in zip(scores, counts, strict=True):
        means = {name: average_independent([values[name] for values in band]) for name in names}
        bands.append(FrequencyBand(float(np.median(band_counts)), len(band_counts), means))
    return bands


def _count(vectors: WordVectors, word: str) -> int:
    row = vectors.vocabulary.row(word)
    return 0 if row is None else int(vectors.vocabulary.counts[row])


def corpus_size_section(data: ReportData) -> Html | None:
    curves = size_curves(data)
    if not curves:
        return None
    sizes = [size for curve in curves.values() for size, _ in curve]
    low, high = math.log10(min(sizes)), math.log10(max(sizes))

    def place(size: float) -> float:
        return 8 + 84 * (math.log10(size) - low) / (high - low)

    lines = [
        Line(label, colour(at), [(place(size), *mean[1:]) for size, mean in curve])
        for at, (label, curve) in enumerate(curves.items())
    ]
    powers = [10.0**power for power in range(math.ceil(low), math.floor(high) + 1)]
    labelled = sorted({*sizes}) if len({*sizes}) <= _MAX_TICKS else powers
    ticks = [(place(size), short(size)) for size in (labelled if len(labelled) > 1 else (min(sizes), max(sizes)))]
    chart = line_chart(lines, ticks, "Score by corpus size, one line per method")
    body = [
        (
            element("th", set_name(label), scope="row", class_=f"set {colour(at)}"),
            numeric(size, f"{size:,.0f}"),
            set_name(mean.name),
            numeric(mean.value),
            element("td", interval(mean.low, mean.high), class_="num pale"),
        )
        for at, (label, curve) in enumerate(curves.items())
        for size, mean in curve
    ]
    head = ("method", column("words"), "vectors", column("mean"), column("95%"))
    text = "The mean score of the ranking by the number of words in the corpus, on a logarithmic scale."
    return join((lead(text), chart, table("Score by corpus size", head, body, classes="sortable")))


def size_curves(data: ReportData) -> dict[str, list[tuple[float, MeanScore]]]:
    """Method and teacher → (size, mean score) by increasing size; only those with at least two sizes."""
    points: dict[str, list[tuple[float, MeanScore]]] = {}
    labels: dict[str, str] = {}
    for mean in data.ranking:
        manifest = data.manifests.get(mean.name, {})
        size = words_read(manifest)
        if size and math.isfinite(mean.value):
            recipe = [manifest.get("method"), manifest.get("settings"), manifest.get("refined")]
            teacher = manifest.get("teacher")
            name = teacher.get("name") if isinstance(teacher, Mapping) else teacher
            key = json.dumps([recipe, name], sort_keys=True, default=str)
            points.setdefault(key, []).append((size, mean))
            labels[key] = " of ".join(str(part) for part in (manifest.get("method"), name) if part)
    curves = {key: sorted(curve, key=lambda point: point[0]) for key, curve in points.items()}
    shown = [(key, curve) for key, curve in curves.items() if curve[0][0] < curve[-1][0]][:_MAX_CURVES]
    names = [labels[key] for key, _ in shown]
    return {
        labels[key] if names.count(labels[key]) == 1 else f"{labels[key]} ({at + 1})": curve
        for at, (key, curve) in enumerate(shown)
    }


def words_read(manifest: Mapping[str, Any]) -> float | None:
    """The number of words of the corpus, else of those that the teacher read."""
    for part in ("corpus", "read"):
        inside = manifest.get(part)
        words = inside.get("words") if isinstance(inside, Mapping) else None
        if isinstance(words, int | float) and words > 0:
            return float(words)
    return None


def short(count: float) -> str:
    """10k, 2.5M, 1G"""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g}{letter}"
    return f"{count:.0f}"
