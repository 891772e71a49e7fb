"""Words in a picture, in one call: a map of them, or their places between opposites."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import MissingExtra, UsageError, suggest
from stillvec.report.tsne import principal_plane, tsne
from stillvec.vectors import WordVectors

try:
    from matplotlib.figure import Figure
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "matplotlib":
        raise
    raise MissingExtra("matplotlib", "plot", "A plot") from None

Floats = NDArray[np.float64]
_COLOURS = ("#2b6cb8", "#d1722b", "#3a8f5c", "#8a5fb5", "#b8433f", "#7a7a7a", "#1f8a9c", "#a07d1c")
_INK, _PALE, _LINE = "#222222", "#666666", "#d9d9d9"
_PLACES = {"pca": principal_plane, "tsne": tsne}
_AROUND = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)]  # where a label may stand, best first
_FAR = (5, 14, 25, 38)  # how far from its dot, in points


class Drawing(Figure):
    """A figure of matplotlib that notebooks show, with or without `%matplotlib inline`; `savefig` writes it."""

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
    """Words as a map in a plane, or between one or two pairs of opposites; groups by name are coloured.

    `method` is "pca", the two main directions of the words given, or "tsne", which keeps neighbours and no distances.
    With `axes=[("he", "she")]`, or two pairs, a word stands at the cosine of its vector with each pair's difference.
    """
    groups = {"": [*words]} if not isinstance(words, Mapping) else {name: [*some] for name, some in words.items()}
    names = [word for some in groups.values() for word in some]
    if isinstance(words, str) or len(names) < 2:
        raise UsageError(f"A plot shows at least two words, given as a list, and {words!r} came.")
    if method not in _PLACES:
        raise UsageError(f"There is no map by {method!r}; {suggest(method, _PLACES)}")
    pairs = [tuple(pair) for pair in axes] if axes is not None else []
    if axes is not None and (not 1 <= len(pairs) <= 2 or any(len(pair) != 2 for pair in pairs)):
        raise UsageError(f'Axes are one or two pairs of opposites, as [("he", "she")], and {axes!r} came.')
    points = _unit(vectors[names])  # (n, dim)
    colours = [_COLOURS[at % len(_COLOURS)] for at, some in enumerate(groups.values()) for _ in some]
    if len(pairs) == 1:
        drawn = _line(names, _between(vectors, points, pairs[0]), colours, pairs[0])
    else:
        across = [_between(vectors, points, pair) for pair in pairs]
        drawn = _plane(names, np.stack(across, axis=1) if across else _PLACES[method](points), colours, pairs)
    (held,) = drawn.axes
    _name_groups(held, [*groups])
    held.set_title(title or "", loc="left", fontsize=13, color=_INK, pad=12)
    return drawn


def _between(vectors: WordVectors, points: Floats, pair: Sequence[str]) -> Floats:
    """The cosine of each word with `unit(b) - unit(a)` (n,)."""
    a, b = _unit(vectors[[*pair]])
    if not (a - b).any():
        raise UsageError(f"The opposites {pair[0]!r} and {pair[1]!r} have the same vector, so nothing is between them.")
    return np.asarray(points @ _unit((b - a)[None])[0])


def _plane(names: list[str], at: Floats, colours: list[str], pairs: Sequence[Sequence[str]]) -> Drawing:
    larger = float(np.clip(np.sqrt(len(names) / 50), 1, 2))  # many labels need room
    figure = Drawing(figsize=(9 * larger, 7 * larger), dpi=110, facecolor="white", layout="constrained")
    axes = figure.subplots()
    axes.scatter(at[:, 0], at[:, 1], s=22, c=colours, linewidths=0, zorder=3)
    axes.margins(0.12)
    axes.set_aspect("equal" if not pairs else "auto", adjustable="datalim")
    axes.spines[:].set_visible(False)
    if pairs:
        axes.axhline(0, color=_LINE, linewidth=1, zorder=0)
        axes.axvline(0, color=_LINE, linewidth=1, zorder=0)
        axes.tick_params(length=0, labelcolor=_PALE, labelsize=9)
        axes.set_xlabel(_named(pairs[0]), color=_INK, fontsize=11)
        axes.set_ylabel(_named(pairs[1]), color=_INK, fontsize=11)
    else:
        axes.set_xticks([])
        axes.set_yticks([])  # a map has no numbers: only who is near whom
    _label(figure, axes, names, at, colours)
    return figure


def _line(names: list[str], at: Floats, colours: list[str], pair: Sequence[str]) -> Drawing:
    """A row a word, in order, from one opposite to the other."""
    figure = Drawing(figsize=(8, 0.9 + 0.27 * len(names)), dpi=110, facecolor="white", layout="constrained")
    axes = figure.subplots()
    order = np.argsort(at, kind="stable")
    rows = np.arange(len(names))
    axes.hlines(rows, 0, at[order], color=_LINE, linewidth=1.5, zorder=1)
    axes.scatter(at[order], rows, s=30, c=[colours[row] for row in order], linewidths=0, zorder=3)
    axes.axvline(0, color=_PALE, linewidth=0.8, zorder=0)
    axes.set_yticks(rows, [names[row] for row in order], fontsize=10, color=_INK, parse_math=False)
    axes.tick_params(length=0, labelcolor=_INK)
    axes.set_ylim(-0.8, len(names) - 0.2)
    axes.spines[:].set_visible(False)
    axes.set_xlabel(_named(pair), color=_INK, fontsize=11)
    return figure


def _label(figure: Drawing, axes: Any, names: list[str], at: Floats, colours: list[str]) -> None:
    """Put each label where it covers no other and no dot, as near to its own as that can be; far ones get a line."""
    figure.draw_without_rendering()
    point = figure.dpi / 72  # pixels
    pixels = axes.transData.transform(at)  # (n, 2)
    frame = figure.bbox.bounds  # (x, y, width, height)
    taken = [*np.concatenate([pixels - 3 * point, pixels + 3 * point], axis=1)]
    for name, (x, y), place, colour in zip(names, pixels, at, colours, strict=True):
        label = axes.annotate(
            name, place, (0, 0), textcoords="offset points", ha="center", va="center", fontsize=10, color=colour,
            parse_math=False, annotation_clip=False,
        )  # fmt: skip
        box = label.get_window_extent()
        half = np.array([box.width, box.height]) / 2
        tries = [
            np.array([x + side * (far * point + half[0]), y + up * (far * point + half[1])])
            for far in _FAR
            for side, up in _AROUND
        ]
        boxes = [np.concatenate([middle - half, middle + half]) for middle in tries]
        costs = [
            sum(_overlap(each, other) for other in taken) + _outside(each, frame) + 0.01 * number
            for number, each in enumerate(boxes)
        ]
        best = int(np.argmin(costs))
        taken.append(boxes[best])
        label.set_position(tuple((tries[best] - [x, y]) / point))
        if best >= len(_AROUND):
            end = axes.transData.inverted().transform(np.clip([x, y], *np.split(boxes[best], 2)))
            axes.plot(*np.stack([place, end], axis=1), color=colour, linewidth=0.6, alpha=0.6, zorder=2)


def _overlap(a: Floats, b: Floats) -> float:
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    return float(sides.prod()) if (sides > 0).all() else 0.0


def _outside(box: Floats, frame: Sequence[float]) -> float:
    return 1e4 * float((box[:2] < 0).any() or (box[2:] > frame[2:]).any())


def _name_groups(axes: Any, names: Sequence[str]) -> None:
    if names == [""]:
        return
    for name, colour in zip(names, (_COLOURS[at % len(_COLOURS)] for at in range(len(names))), strict=True):
        axes.scatter([], [], s=30, color=colour, label=name or " ")
    axes.legend(
        frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=len(names), fontsize=10, handletextpad=0.1
    )


def _named(pair: Sequence[str]) -> str:
    return f"{pair[0]}  ←   →  {pair[1]}".replace("$", r"\$")


def _unit(rows: NDArray[Any]) -> Floats:
    wide = np.asarray(rows, np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.asarray(wide / np.where(lengths > 0, lengths, 1))
