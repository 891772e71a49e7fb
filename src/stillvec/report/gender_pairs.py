"""Word pairs that differ by gender, on two principal components (after figure 6 of Wang et al. 2020)."""

import math

import numpy as np
from numpy.typing import NDArray

from stillvec.numerics import principal_plane, unit_rows
from stillvec.report.html_markup import Html, element, fold, join, lead, note, set_name
from stillvec.report.report_data import ReportData
from stillvec.vectors import WordVectors

Floats = NDArray[np.float64]
PAIRS = (
    ("man", "woman"), ("he", "she"), ("king", "queen"), ("father", "mother"), ("son", "daughter"),
    ("brother", "sister"), ("boy", "girl"), ("husband", "wife"), ("uncle", "aunt"), ("nephew", "niece"),
    ("prince", "princess"), ("grandfather", "grandmother"), ("grandpa", "grandma"), ("policeman", "policewoman"),
    ("groom", "bride"), ("actor", "actress"), ("waiter", "waitress"), ("duke", "duchess"), ("hero", "heroine"),
    ("gentleman", "lady"),
)  # fmt: skip
_MIN_PAIRS = 3
_MAX_SETS = 8
_SIZE = (340, 300)
_N_OPEN = 3  # sets shown before the others are folded


def gender_section(data: ReportData) -> Html | None:
    names = data.with_vectors[:_MAX_SETS]
    pairs = [pair for pair in PAIRS if names and all(_has_vectors(data.sets[name], pair) for name in names)]
    if len(pairs) < _MIN_PAIRS:
        return None
    text = (
        f"{len(pairs)} pairs of words that differ by gender, joined by lines, on the first two principal components of "
        "vectors of length one. The more parallel the lines, the more the space represents gender as one direction; "
        "the mean cosine between the differences in the full space is given above each plot."
    )
    figures = []
    for name in names:
        words = [word for pair in pairs for word in pair]
        points = unit_rows(data.sets[name][words], np.float64)  # (2n, d)
        remark = note(f"Mean cosine between pair differences: {mean_offset_cosine(points):.3f}.")
        figure = _plot(f"PCA of {name}", principal_plane(points), pairs)
        heading = element("h3", set_name(name), class_=f"set {data.colour(name)}")
        figures.append(element("div", heading, remark, element("div", figure, class_="planes"), class_="space"))
    n_left = len(data.with_vectors) - len(names)
    rest = note(f"The first {_MAX_SETS} of {len(data.with_vectors)} sets.") if n_left else None
    if figures[_N_OPEN:]:
        figures[_N_OPEN:] = [fold(f"The other {len(figures) - _N_OPEN}", *figures[_N_OPEN:])]
    return join((lead(text), *figures, rest))


def mean_offset_cosine(points: Floats) -> float:
    """The mean cosine of the differences of each two pairs; rows are a, b, a, b, ..."""
    offsets = unit_rows(points[1::2] - points[::2])  # (n, d)
    n = len(offsets)
    return float(((offsets @ offsets.T).sum() - n) / (n * (n - 1))) if n > 1 else math.nan


def _has_vectors(vectors: WordVectors, pair: tuple[str, str]) -> bool:
    return all(word in vectors and bool(np.isfinite(vectors[word]).all()) for word in pair)


def _plot(label: str, places: Floats, pairs: list[tuple[str, str]]) -> Html:
    """Words as dots, both axes on one scale, one line per pair."""
    low, high = places.min(axis=0), places.max(axis=0)
    span = max(float((high - low).max()), np.finfo(float).tiny)
    at = (places - (low + high) / 2) / span * (min(_SIZE) - 50) + np.array(_SIZE) / 2
    lines = [
        element("line", x1=f"{a[0]:.1f}", y1=f"{a[1]:.1f}", x2=f"{b[0]:.1f}", y2=f"{b[1]:.1f}", class_="pair")
        for a, b in zip(at[::2], at[1::2], strict=True)
    ]
    words = [word for pair in pairs for word in pair]
    dots = [
        element("circle", element("title", word), cx=f"{x:.1f}", cy=f"{y:.1f}", r=3, class_=f"dot g{row % 2}")
        for row, (word, (x, y)) in enumerate(zip(words, at, strict=True))
    ]
    texts = [
        element("text", word, x=f"{x:.1f}", y=f"{y:.1f}", class_=f"place g{row % 2}", text_anchor="middle")
        for row, (word, (x, y)) in enumerate(zip(words, _place_labels(at, words), strict=True))
    ]
    attributes = {"viewBox": f"0 0 {_SIZE[0]} {_SIZE[1]}", "role": "img", "aria_label": label, "class_": "plane"}
    return element("figure", element("svg", *lines, *dots, *texts, **attributes))


def _place_labels(at: NDArray[np.float64], words: list[str]) -> NDArray[np.float64]:
    """Positions of the labels: beside their dot, where they cover the least of other labels."""
    taken: list[tuple[float, float, float, float]] = [(x - 3, y - 3, x + 3, y + 3) for x, y in at]
    positions = np.zeros_like(at)
    for row, ((x, y), word) in enumerate(zip(at, words, strict=True)):
        half = 2.9 * len(word)
        tries = [(x + dx, y + dy) for dy in (-6, 13, 4, -16, 23) for dx in (0, half + 6, -half - 6)]
        boxes = [(a - half, b - 9, a + half, b + 2) for a, b in tries]
        costs = [sum(_overlap(box, other) for other in taken) + _outside(box) for box in boxes]
        best = int(np.argmin(costs))
        positions[row] = tries[best]
        taken.append(boxes[best])
    return positions


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    wide, high = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return wide * high if wide > 0 and high > 0 else 0.0


def _outside(box: tuple[float, ...]) -> float:
    return 1e3 * float(min(box) < 0 or box[2] > _SIZE[0] or box[3] > _SIZE[1])
