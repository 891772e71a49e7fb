"""Figures of commands: scores as bars, the geometry of vectors, attention as a heat map."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.files import atomic_file
from stillvec.registry import require

if TYPE_CHECKING:
    from stillvec.analysis import Geometry, Probed, Study
    from stillvec.evaluation import Score
    from stillvec.pipeline.sentence_attention import Attention

_COLOURS = ("#2b6cb8", "#8fbfea", "#c9c9c9", "#e0a458", "#8a6fb0")
_INK, _PALE, _EMPTY = "#222222", "#666666", "#f3f3f3"
_NUMBERED = 24  # words up to which cells of a heat map show their number


def check_drawable(file: Path) -> None:
    """Check the file name and matplotlib before any work."""
    if file.suffix not in (".svg", ".png"):
        raise UsageError.expected("a file name that ends in .svg or .png", file, where="figure")
    require("matplotlib.figure", "plot", "The figure")


@contextmanager
def _open_figure(file: Path, width: float, height: float) -> Iterator[Any]:
    """A figure that is written at the end: an SVG with its text as text, or a PNG; no window is opened."""
    check_drawable(file)
    matplotlib = require("matplotlib", "plot", "The figure")
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "stillvec"}):
        figure = require("matplotlib.figure", "plot", "The figure").Figure((width, height), 160, layout="constrained")
        yield figure
        with atomic_file(file) as part:
            dated = {"metadata": {"Date": None}} if file.suffix == ".svg" else {}  # reproducible bytes
            figure.savefig(part, format=file.suffix[1:], facecolor="white", **dated)


def _style(axes: Any) -> None:
    axes.tick_params(axis="y", length=0, labelcolor=_PALE)
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color("#bbbbbb")


def draw_scores(scores: Sequence[Score], tests: Mapping[str, tuple[str, str]], file: Path, title: str) -> None:
    """A bar chart with intervals: one group per test; `tests` maps a dataset to its title and metric."""
    own = [score for score in scores if score.words == "own" and score.dataset in tests]
    names, places = [*dict.fromkeys(score.vectors for score in own)], [*tests]
    width = 0.8 / max(len(names), 1)
    with _open_figure(file, 9, 5) as figure:
        axes = figure.subplots()
        for score in sorted(own, key=lambda score: (names.index(score.vectors), places.index(score.dataset))):
            number, place = names.index(score.vectors), places.index(score.dataset)
            at = place + (number - (len(names) - 1) / 2) * width
            label = score.vectors if place == 0 else None
            _bar(axes, score, at, 0.92 * width, _COLOURS[number % len(_COLOURS)], label)
        known = {score.dataset: f"{score.n_covered:,} of {score.n_items:,} items covered" for score in own}
        labels = [f"{label}\n{what}\n{known.get(test, '')}" for test, (label, what) in tests.items()]
        axes.set_xticks(range(len(tests)), labels, fontsize=10, color=_INK)
        axes.tick_params(axis="x", length=0, pad=8)
        _style(axes)
        lowest, highest = min(100 * score.low for score in own), max(100 * score.high for score in own)
        axes.set_ylim(lowest - 3 if lowest < 0 else 0, highest + 8)
        axes.set_title(f"{title}\n", loc="left", fontsize=14, fontweight="bold", color=_INK)
        axes.text(0, 1.02, "Dark lines are 95% intervals.", transform=axes.transAxes, fontsize=10, color=_PALE)
        axes.legend(frameon=False, ncols=len(names), loc="lower right", bbox_to_anchor=(1, 0.99), fontsize=10)


def _bar(axes: Any, score: Score, at: float, width: float, colour: str, label: str | None) -> None:
    value, low, high = (100 * number for number in (score.value, score.low, score.high))
    axes.bar(at, value, width, color=colour, label=label)
    axes.plot([at, at], [low, high], color=_INK, linewidth=1.2, solid_capstyle="butt")
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1}  # no grid line through a number
    axes.text(at, max(high, 0) + 1.2, f"{value:.1f}", ha="center", color=_INK, bbox=box, fontsize=10)


def draw_geometry(
    geometry: Geometry, studied: Study | None, file: Path, title: str, probed: Sequence[Probed] = ()
) -> None:
    """Variance, norms by frequency, and what single components encode."""
    rows = 1 + (studied is not None) + (len(probed) + 1) // 2
    with _open_figure(file, 11, 4.2 * rows) as figure:
        panels = figure.subplots(rows, 2, squeeze=False).ravel()
        _variance(panels[0], geometry)
        _norms(panels[1], geometry)
        if studied is not None:
            _cumulative(panels[2], studied)
            _curves(panels[3], studied.without)
            legend = "blue: the mean; pale: each dataset"
            _title(panels[3], f"Score x 100 without the first components\n{legend}", "components removed")
        for panel, result in zip(panels[-2 * ((len(probed) + 1) // 2) :], probed, strict=False):
            _probe(panel, result)
        if len(probed) % 2:
            panels[-1].set_visible(False)
        figure.suptitle(title, x=0.01, ha="left", fontsize=14, fontweight="bold", color=_INK)


def _variance(axes: Any, geometry: Geometry) -> None:
    total = max(sum(geometry.variances), np.finfo(float).tiny)
    axes.plot(range(1, geometry.dim + 1), 100 * np.cumsum(geometry.variances) / total, color=_COLOURS[0], linewidth=2)
    axes.axvline(geometry.dim_90, color=_PALE, linewidth=0.8, linestyle=":")
    explained = f"{geometry.dim_90} of {geometry.dim} components explain 90%"
    subtitle = f"{explained}; effective dimension {geometry.participation:.0f}"
    _title(axes, f"Variance explained by the first k components, %\n{subtitle}", "k")
    axes.set_ylim(0, 103)


def _norms(axes: Any, geometry: Geometry) -> None:
    axes.bar(range(1, len(geometry.norms) + 1), geometry.norms, color=_COLOURS[0], width=0.8)
    axes.set_xticks([1, len(geometry.norms)], ["frequent", "rare"])
    by = "frequency" if geometry.counted else "the order of the words"
    subtitle = f"Spearman's ρ with {by} {geometry.norm_frequency:+.2f}"
    _title(axes, f"Mean norm of {len(geometry.norms)} bands of words\n{subtitle}", "")


def _cumulative(axes: Any, studied: Study) -> None:
    from stillvec.analysis import mean_value  # imports scipy.stats

    _curves(axes, studied.cumulative)
    bounds = np.linspace(0, max(studied.cumulative), 4)
    for number, name in enumerate(("top", "middle", "bottom")):
        value = 100 * mean_value(studied.thirds[name])
        if np.isfinite(value):
            axes.plot(bounds[number : number + 2], [value] * 2, color=_COLOURS[3], linewidth=4, solid_capstyle="butt")
            axes.annotate(f"{name} third alone", (bounds[number], value), (2, 5), textcoords="offset points",
                          fontsize=9, color=_INK)  # fmt: skip
    _title(axes, "Score x 100 of the first k components\nblue: the mean; pale: each dataset", "k")


def _probe(axes: Any, probed: Probed) -> None:
    places = range(1, len(probed.each) + 1)
    axes.scatter(places, 100 * np.array(probed.each), s=9, color=_COLOURS[0], zorder=3)
    for value, text in ((probed.majority, "majority"), (probed.whole, "all components")):
        axes.axhline(100 * value, color=_PALE, linewidth=0.8, linestyle=":")
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.8}  # drawn over the points
        axes.annotate(text, (1, 100 * value), (0, 4), textcoords="offset points", fontsize=9, color=_INK, bbox=box)
    trend = f"Spearman's ρ of rank and accuracy {probed.trend:+.2f}"
    subtitle = f"{probed.texts:,} texts of {probed.labels} labels; {trend}"
    _title(axes, f"Accuracy x 100 of one component alone: {probed.name}\n{subtitle}", "component")


def _curves(axes: Any, parts: Mapping[int, Sequence[Score]]) -> None:
    """One pale line per dataset and a strong one for their mean."""
    from stillvec.analysis import mean_value

    at = [*parts]
    for values in zip(*([score.value for score in scores] for scores in parts.values()), strict=True):
        axes.plot(at, 100 * np.array(values, float), color=_COLOURS[2], linewidth=1, zorder=1)
    means = [100 * mean_value(scores) for scores in parts.values()]
    axes.plot(at, means, color=_COLOURS[0], linewidth=2, marker="o", markersize=4, zorder=3)


def _title(axes: Any, title: str, xlabel: str) -> None:
    axes.set_title(title, loc="left", fontsize=10, color=_INK)
    axes.set_xlabel(xlabel, color=_PALE, fontsize=10)
    axes.tick_params(axis="x", length=0, labelcolor=_PALE)
    _style(axes)


def draw_attention(attention: Attention, file: Path) -> None:
    """One row per centre word, one column per context word (Wang et al. 2020, figure 7)."""
    n_words = len(attention.words)
    side = max(3.2, 0.62 * n_words)
    with _open_figure(file, side + 1.6, side + 1.4) as figure:
        axes = figure.subplots()
        axes.set_facecolor(_EMPTY)
        top = max(0.5, float(np.nanmax(attention.weights)))
        image = axes.imshow(np.ma.masked_invalid(attention.weights), cmap="Blues", vmin=0, vmax=top)
        labels = {"labels": attention.words, "color": _INK, "fontsize": 11}
        axes.set_xticks(range(n_words), **labels, rotation=45, ha="left", rotation_mode="anchor")
        axes.set_yticks(range(n_words), **labels)
        axes.xaxis.tick_top()
        axes.tick_params(length=0, pad=6)
        axes.set_xticks(np.arange(n_words + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(n_words + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=2)
        axes.tick_params(which="minor", length=0)
        axes.spines[:].set_visible(False)
        axes.set_ylabel("centre word", color=_PALE, fontsize=10)
        axes.set_xlabel("context word: attention in percent; pale: not in the vocabulary", color=_PALE, fontsize=10)
        if n_words > _NUMBERED:
            bar = figure.colorbar(image, ax=axes, shrink=0.6, aspect=30, format=lambda value, _: f"{100 * value:.0f}%")
            bar.outline.set_visible(False)
            bar.ax.tick_params(length=0, labelcolor=_PALE, labelsize=9)
        else:
            _number_cells(axes, attention.weights, 0.55 * top)


def _number_cells(axes: Any, weights: NDArray[Any], dark: float) -> None:
    for (row, column), weight in np.ndenumerate(weights):
        if not np.isnan(weight):
            colour = "white" if weight > dark else _INK
            axes.text(column, row, f"{100 * weight:.0f}", ha="center", va="center_baseline", color=colour, fontsize=10)
