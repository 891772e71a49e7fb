"""Plots of words: a map of them, or their positions between opposites."""

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.input_checks import check_arguments
from stillvec.numerics import principal_plane, unit_rows
from stillvec.numerics.tsne import embed_points
from stillvec.registry import require
from stillvec.vectors import WordVectors

require("matplotlib.figure", "plot", "A plot")
from matplotlib.figure import Figure  # noqa: E402

Floats = NDArray[np.float64]
_COLOURS = ("#2b6cb8", "#d1722b", "#3a8f5c", "#8a5fb5", "#b8433f", "#7a7a7a", "#1f8a9c", "#a07d1c")
_INK, _PALE, _LINE = "#222222", "#666666", "#d9d9d9"
_PROJECTIONS: Mapping[str, Callable[[NDArray[Any]], Floats]] = {"pca": principal_plane, "tsne": embed_points}
_DIRECTIONS = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)]  # of a label, best first
_DISTANCES = (5, 14, 25, 38)  # of a label from its dot, in points


class Drawing(Figure):
    """A matplotlib figure that notebooks show, with or without `%matplotlib inline`; `savefig` writes it."""

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        self.savefig(stream, format="png")
        return stream.getvalue()


def plot(
    vectors: WordVectors,
    words: Sequence[str] | Mapping[str, Sequence[str]],
    *,
    axes: Sequence[tuple[str, str]] | None = None,
    method: Literal["pca", "tsne"] = "pca",
    title: str | None = None,
) -> Drawing:
    """Plot words on a map, or between one or two pairs of opposites.

    Args:
        vectors: The vectors of the words.
        words: At least two words, or groups of words by name, which get different colours.
        axes: One or two pairs of opposites such as `[("he", "she")]`; the coordinate of a word is the cosine of its
            vector with the difference of a pair. Without axes the words are placed on a map.
        method: The map: "pca" for the first two principal components, "tsne" to preserve neighbours but not distances.
        title: Title of the plot.
    """
    check_arguments(plot, locals())
    groups = {name: [*group] for name, group in words.items()} if isinstance(words, Mapping) else {"": [*words]}
    names = [word for group in groups.values() for word in group]
    if isinstance(words, str) or len(names) < 2:
        raise UsageError.expected("a list of at least two words", repr(words), where="plot")
    if method not in _PROJECTIONS:
        raise UsageError.unknown("method", method, _PROJECTIONS, where="plot")
    pairs = [tuple(pair) for pair in axes] if axes is not None else []
    if axes is not None and (not 1 <= len(pairs) <= 2 or any(len(pair) != 2 for pair in pairs)):
        raise UsageError.expected('one or two pairs of opposites such as [("he", "she")]', repr(axes), where="axes")
    points = unit_rows(vectors[names], np.float64)  # (n, dim)
    colours = [_COLOURS[at % len(_COLOURS)] for at, group in enumerate(groups.values()) for _ in group]
    coordinates = [_project(vectors, points, pair) for pair in pairs]
    if len(pairs) == 1:
        drawing = _draw_line(names, coordinates[0], colours, pairs[0])
    else:
        positions = np.stack(coordinates, axis=1) if pairs else _PROJECTIONS[method](points)
        drawing = _draw_plane(names, positions, colours, pairs)
    (axis,) = drawing.axes
    _add_legend(axis, [*groups])
    axis.set_title(title or "", loc="left", fontsize=13, color=_INK, pad=12)
    return drawing


def _project(vectors: WordVectors, points: Floats, pair: Sequence[str]) -> Floats:
    """The cosine of each word with `unit(b) - unit(a)` (n,)."""
    a, b = unit_rows(vectors[[*pair]], np.float64)
    if not (a - b).any():
        raise UsageError.conflict(f"The opposites {pair[0]!r} and {pair[1]!r} have the same vector")
    return np.asarray(points @ unit_rows(b - a))


def _draw_plane(names: list[str], positions: Floats, colours: list[str], pairs: Sequence[Sequence[str]]) -> Drawing:
    scale = float(np.clip(np.sqrt(len(names) / 50), 1, 2))  # many labels need space
    figure = Drawing(figsize=(9 * scale, 7 * scale), dpi=110, facecolor="white", layout="constrained")
    axes = figure.subplots()
    axes.scatter(positions[:, 0], positions[:, 1], s=22, c=colours, linewidths=0, zorder=3)
    axes.margins(0.12)
    axes.set_aspect("equal" if not pairs else "auto", adjustable="datalim")
    axes.spines[:].set_visible(False)
    if pairs:
        axes.axhline(0, color=_LINE, linewidth=1, zorder=0)
        axes.axvline(0, color=_LINE, linewidth=1, zorder=0)
        axes.tick_params(length=0, labelcolor=_PALE, labelsize=9)
        axes.set_xlabel(_axis_label(pairs[0]), color=_INK, fontsize=11)
        axes.set_ylabel(_axis_label(pairs[1]), color=_INK, fontsize=11)
    else:
        axes.set_xticks([])
        axes.set_yticks([])  # the coordinates of a map mean nothing
    _add_labels(figure, axes, names, positions, colours)
    return figure


def _draw_line(names: list[str], values: Floats, colours: list[str], pair: Sequence[str]) -> Drawing:
    """One row per word, sorted from one opposite to the other."""
    figure = Drawing(figsize=(8, 0.9 + 0.27 * len(names)), dpi=110, facecolor="white", layout="constrained")
    axes = figure.subplots()
    order = np.argsort(values, kind="stable")
    rows = np.arange(len(names))
    axes.hlines(rows, 0, values[order], color=_LINE, linewidth=1.5, zorder=1)
    axes.scatter(values[order], rows, s=30, c=[colours[row] for row in order], linewidths=0, zorder=3)
    axes.axvline(0, color=_PALE, linewidth=0.8, zorder=0)
    axes.set_yticks(rows, [names[row] for row in order], fontsize=10, color=_INK, parse_math=False)
    axes.tick_params(length=0, labelcolor=_INK)
    axes.set_ylim(-0.8, len(names) - 0.2)
    axes.spines[:].set_visible(False)
    axes.set_xlabel(_axis_label(pair), color=_INK, fontsize=11)
    return figure


def _add_labels(figure: Drawing, axes: Any, names: list[str], positions: Floats, colours: list[str]) -> None:
    """Put each label where it covers no other label or dot, as near to its dot as possible; far ones get a line."""
    figure.draw_without_rendering()
    point = figure.dpi / 72  # pixels
    pixels = axes.transData.transform(positions)  # (n, 2)
    frame = figure.bbox.bounds  # (x, y, width, height)
    taken = [*np.concatenate([pixels - 3 * point, pixels + 3 * point], axis=1)]
    for name, (x, y), place, colour in zip(names, pixels, positions, colours, strict=True):
        label = axes.annotate(
            name, place, (0, 0), textcoords="offset points", ha="center", va="center", fontsize=10, color=colour,
            parse_math=False, annotation_clip=False,
        )  # fmt: skip
        box = label.get_window_extent()
        half = np.array([box.width, box.height]) / 2
        steps = [np.array(side) * (distance * point + half) for distance in _DISTANCES for side in _DIRECTIONS]
        middles = [np.array([x, y]) + step for step in steps]
        boxes = [np.concatenate([middle - half, middle + half]) for middle in middles]
        costs = [
            sum(_overlap(candidate, other) for other in taken) + _outside(candidate, frame) + 0.01 * number
            for number, candidate in enumerate(boxes)
        ]
        best = int(np.argmin(costs))
        taken.append(boxes[best])
        label.set_position(tuple((middles[best] - [x, y]) / point))
        if best >= len(_DIRECTIONS):
            end = axes.transData.inverted().transform(np.clip([x, y], *np.split(boxes[best], 2)))
            axes.plot(*np.stack([place, end], axis=1), color=colour, linewidth=0.6, alpha=0.6, zorder=2)


def _overlap(a: Floats, b: Floats) -> float:
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    return float(sides.prod()) if (sides > 0).all() else 0.0


def _outside(box: Floats, frame: Sequence[float]) -> float:
    return 1e4 * float((box[:2] < 0).any() or (box[2:] > frame[2:]).any())


def _add_legend(axes: Any, names: Sequence[str]) -> None:
    if names == [""]:
        return
    for name, colour in zip(names, (_COLOURS[at % len(_COLOURS)] for at in range(len(names))), strict=True):
        axes.scatter([], [], s=30, color=colour, label=name or " ")
    place = {"loc": "lower right", "bbox_to_anchor": (1, 1)}
    axes.legend(frameon=False, **place, ncols=len(names), fontsize=10, handletextpad=0.1)


def _axis_label(pair: Sequence[str]) -> str:
    return f"{pair[0]}  ←   →  {pair[1]}".replace("$", r"\$")
