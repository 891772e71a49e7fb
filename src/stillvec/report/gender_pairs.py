"""Pairs that differ by gender, in a plane: t-SNE (figures 6 of Wang et al. 2020, 4 of Zheng et al. 2022) and PCA."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from stillvec.numerics import principal_plane
from stillvec.numerics.tsne import embed_points
from stillvec.report.html_markup import Html, element, joined, name_of, number
from stillvec.report.report_data import ReportData
from stillvec.vectors import WordVectors

PAIRS = (
    ("man", "woman"), ("he", "she"), ("king", "queen"), ("father", "mother"), ("son", "daughter"),
    ("brother", "sister"), ("boy", "girl"), ("husband", "wife"), ("uncle", "aunt"), ("nephew", "niece"),
    ("prince", "princess"), ("grandfather", "grandmother"), ("grandpa", "grandma"), ("policeman", "policewoman"),
    ("groom", "bride"), ("actor", "actress"), ("waiter", "waitress"), ("duke", "duchess"), ("hero", "heroine"),
    ("gentleman", "lady"),
)  # fmt: skip
_LEAST = 3  # pairs
_SETS = 8
_SIZE = (340, 300)
_OPEN = 3  # sets before the others are folded


def planes_section(material: ReportData) -> Html | None:
    names = material.given[:_SETS]
    known = [pair for pair in PAIRS if names and all(_known(material.sets[name], pair) for name in names)]
    if len(known) < _LEAST:
        return None
    said = (
        f"{len(known)} pairs of words that differ by gender, joined by lines: the more alike the lines, "
        "the more the space holds gender as one direction. t-SNE keeps neighbours and not directions; "
        "how alike the differences are in the whole space, as a mean cosine, is written above each plane."
        " Vectors are at length one."
    )
    rows = []
    for name in names:
        points = _unit(
            np.asarray(material.sets[name][[word for pair in known for word in pair]], np.float64)
        )  # (2n, d)
        alike = element("p", f"Differences of pairs are alike by {number(alikeness(points))}.", class_="note")
        views = {"PCA": principal_plane(points), "t-SNE": embed_points(points)}
        drawn = [_plane(f"{kind} of {name}", kind, places, known) for kind, places in views.items()]
        heading = element("h3", name_of(name), class_=f"set {material.colour(name)}")
        rows.append(element("div", heading, alike, element("div", *drawn, class_="planes"), class_="space"))
    left = len(material.given) - len(names)
    rest = element("p", f"The first {_SETS} of {len(material.given)} sets.", class_="note") if left else None
    if rows[_OPEN:]:
        folded = element("details", element("summary", f"The other {len(rows) - _OPEN}"), *rows[_OPEN:])
        rows = [*rows[:_OPEN], folded]
    return joined((element("p", said, class_="lead"), *rows, rest))


def alikeness(points: NDArray[np.float64]) -> float:
    """The mean cosine of the differences of each two pairs; rows are a, b, a, b, ..."""
    moves = _unit(points[1::2] - points[::2])  # (n, d)
    n = len(moves)
    return float(((moves @ moves.T).sum() - n) / (n * (n - 1))) if n > 1 else math.nan


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1))


def _known(vectors: WordVectors, pair: tuple[str, str]) -> bool:
    return all(word in vectors and bool(np.isfinite(vectors[word]).all()) for word in pair)


def _plane(label: str, kind: str, places: NDArray[np.float64], known: list[tuple[str, str]]) -> Html:
    """Words at their places, both axes on one scale, a line for each pair."""
    low, high = places.min(axis=0), places.max(axis=0)
    span = max(float((high - low).max()), np.finfo(float).tiny)
    at = (places - (low + high) / 2) / span * (min(_SIZE) - 50) + np.array(_SIZE) / 2
    lines = [
        element(
            "line",
            x1=f"{a[0]:.1f}",
            y1=f"{a[1]:.1f}",
            x2=f"{b[0]:.1f}",
            y2=f"{b[1]:.1f}",
            class_="pair",
        )
        for a, b in zip(at[::2], at[1::2], strict=True)
    ]
    words = [word for pair in known for word in pair]
    dots = [
        element("circle", element("title", word), cx=f"{x:.1f}", cy=f"{y:.1f}", r=3, class_=f"dot g{row % 2}")
        for row, (word, (x, y)) in enumerate(zip(words, at, strict=True))
    ]
    texts = [
        element("text", word, x=f"{x:.1f}", y=f"{y:.1f}", class_=f"place g{row % 2}", text_anchor="middle")
        for row, (word, (x, y)) in enumerate(zip(words, _apart(at, words), strict=True))
    ]
    drawn = element(
        "svg", *lines, *dots, *texts, viewBox=f"0 0 {_SIZE[0]} {_SIZE[1]}", role="img", aria_label=label, class_="plane"
    )
    return element("figure", drawn, element("figcaption", kind))


def _apart(at: NDArray[np.float64], words: list[str]) -> NDArray[np.float64]:
    """Where labels stand: beside their dot, at the first of some places where they cover no other label."""
    taken: list[tuple[float, float, float, float]] = [(x - 3, y - 3, x + 3, y + 3) for x, y in at]
    found = np.zeros_like(at)
    for row, ((x, y), word) in enumerate(zip(at, words, strict=True)):
        half = 2.9 * len(word)
        tries = [(x + dx, y + dy) for dy in (-6, 13, 4, -16, 23) for dx in (0, half + 6, -half - 6)]
        boxes = [(a - half, b - 9, a + half, b + 2) for a, b in tries]
        costs = [sum(_overlap(box, other) for other in taken) + _outside(box) for box in boxes]
        best = int(np.argmin(costs))
        found[row] = tries[best]
        taken.append(boxes[best])
    return found


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    wide, high = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return wide * high if wide > 0 and high > 0 else 0.0


def _outside(box: tuple[float, ...]) -> float:
    return 1e3 * float(min(box) < 0 or box[2] > _SIZE[0] or box[3] > _SIZE[1])
