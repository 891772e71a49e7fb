"""The score over the size of the corpus, where the same method was given several sizes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from stillvec.evaluation.score_table import MeanScore
from stillvec.report.html_markup import Html, element, interval, join, numeric, set_name, table
from stillvec.report.report_data import ReportData
from stillvec.report.svg import Line, colour, line_chart

_MOST = 8  # curves
_TICKS = 4  # sizes that have room for their numbers


def corpus_size_section(data: ReportData) -> Html | None:
    curves = size_curves(data)
    if not curves:
        return None
    sizes = [size for curve in curves.values() for size, _ in curve]
    low, high = math.log10(min(sizes)), math.log10(max(sizes))

    def place(size: float) -> float:
        return 8 + 84 * (math.log10(size) - low) / (high - low)

    lines = [
        Line(label, colour(at), [(place(size), *each[1:]) for size, each in curve])
        for at, (label, curve) in enumerate(curves.items())
    ]
    powers = [10.0**power for power in range(math.ceil(low), math.floor(high) + 1)]
    told = sorted({*sizes}) if len({*sizes}) <= _TICKS else powers
    ticks = [(place(size), short(size)) for size in (told if len(told) > 1 else (min(sizes), max(sizes)))]
    said = "The mean score of the ranking over the words of text that a set was made from, on a logarithmic scale."
    chart = line_chart(lines, ticks, "Score over the size of the corpus, a line for each method")
    body = [
        (
            element("th", set_name(label), scope="row", class_=f"set {colour(at)}"),
            numeric(size, f"{size:,.0f}"),
            set_name(each.name),
            numeric(each.value),
            element("td", interval(each.low, each.high), class_="num pale"),
        )
        for at, (label, curve) in enumerate(curves.items())
        for size, each in curve
    ]
    right = [element("th", each, scope="col", class_="num") for each in ("words", "mean", "95%")]
    figures = table("Score by size of corpus", ("method", right[0], "vectors", *right[1:]), body, classes="sortable")
    return join((element("p", said, class_="lead"), chart, figures))


def size_curves(data: ReportData) -> dict[str, list[tuple[float, MeanScore]]]:
    """Method and teacher → points of rising size; those with two sizes or more."""
    found: dict[str, list[tuple[float, MeanScore]]] = {}
    labels: dict[str, str] = {}
    for each in data.ranking:
        manifest = data.manifests.get(each.name, {})
        size = words_read(manifest)
        if size and math.isfinite(each.value):
            told = [manifest.get("method"), manifest.get("settings"), manifest.get("refined")]
            teacher = manifest.get("teacher")
            name = teacher.get("name") if isinstance(teacher, Mapping) else teacher
            key = json.dumps([told, name], sort_keys=True, default=str)
            found.setdefault(key, []).append((size, each))
            labels[key] = " of ".join(str(part) for part in (manifest.get("method"), name) if part)
    curves = {key: sorted(curve, key=lambda point: point[0]) for key, curve in found.items()}
    kept = [(key, curve) for key, curve in curves.items() if curve[0][0] < curve[-1][0]][:_MOST]
    doubled = [labels[key] for key, _ in kept]
    return {
        labels[key] if doubled.count(labels[key]) == 1 else f"{labels[key]} ({at + 1})": curve
        for at, (key, curve) in enumerate(kept)
    }


def words_read(manifest: Mapping[str, Any]) -> float | None:
    """The words of the corpus; where they are not told, those that the teacher read."""
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
