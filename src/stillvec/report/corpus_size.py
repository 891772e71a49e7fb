"""Score by corpus size, for methods that were trained on corpora of different sizes."""

import json
import math
from collections.abc import Mapping
from typing import Any

from stillvec.evaluation.score_table import MeanScore
from stillvec.report.html_markup import Html, element, join, lead, set_name
from stillvec.report.html_tables import column, interval, numeric, table
from stillvec.report.report_data import ReportData
from stillvec.report.svg import Line, colour, line_chart

_MAX_CURVES = 8
_MAX_TICKS = 4  # sizes whose labels fit


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
