"""The geometry of vectors as a figure: variance, norms by frequency, and what single components encode."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stillvec.analysis import Geometry, Probed, Study, mean_value
from stillvec.cli.chart import COLOURS
from stillvec.errors import UsageError
from stillvec.evaluation import Score
from stillvec.files import atomic_file
from stillvec.registry import require

_INK, _PALE, _GRID = "#222222", "#666666", "#e6e6e6"


def check_drawable(file: Path) -> None:
    """Check the file name and matplotlib before any work."""
    if file.suffix not in (".svg", ".png"):
        raise UsageError.expected("a file name that ends in .svg or .png", file, where="figure")
    require("matplotlib.figure", "plot", "The figure")


def draw_portrait(
    geometry: Geometry, studied: Study | None, file: Path, title: str, probed: Sequence[Probed] = ()
) -> None:
    """Write an SVG with its text as text, or a PNG; no window is opened."""
    check_drawable(file)
    matplotlib = require("matplotlib", "plot", "The figure")
    figure_module = require("matplotlib.figure", "plot", "The figure")
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "stillvec"}):
        rows = 1 + (studied is not None) + (len(probed) + 1) // 2
        figure = figure_module.Figure(figsize=(11, 4.2 * rows), dpi=160, layout="constrained")
        panels = figure.subplots(rows, 2, squeeze=False).ravel()
        _variance(panels[0], geometry)
        _norms(panels[1], geometry)
        if studied is not None:
            _cumulative(panels[2], studied)
            _without(panels[3], studied)
        for panel, result in zip(panels[-2 * ((len(probed) + 1) // 2) :], probed, strict=False):
            _probe(panel, result)
        if len(probed) % 2:
            panels[-1].set_visible(False)
        figure.suptitle(title, x=0.01, ha="left", fontsize=14, fontweight="bold", color=_INK)
        with atomic_file(file) as part:
            dated = {"metadata": {"Date": None}} if file.suffix == ".svg" else {}  # reproducible bytes
            figure.savefig(part, format=file.suffix[1:], facecolor="white", **dated)


def _variance(axes: Any, geometry: Geometry) -> None:
    total = max(sum(geometry.variances), np.finfo(float).tiny)
    axes.plot(range(1, geometry.dim + 1), 100 * np.cumsum(geometry.variances) / total, color=COLOURS[0], linewidth=2)
    axes.axvline(geometry.dim_90, color=_PALE, linewidth=0.8, linestyle=":")
    subtitle = (
        f"{geometry.dim_90} of {geometry.dim} components explain 90%; effective dimension {geometry.participation:.0f}"
    )
    _style(axes, f"Variance explained by the first k components, %\n{subtitle}", "k")
    axes.set_ylim(0, 103)


def _norms(axes: Any, geometry: Geometry) -> None:
    axes.bar(range(1, len(geometry.norms) + 1), geometry.norms, color=COLOURS[0], width=0.8)
    axes.set_xticks([1, len(geometry.norms)], ["frequent", "rare"])
    by = "frequency" if geometry.counted else "the order of the words"
    subtitle = f"Spearman's ρ with {by} {geometry.norm_frequency:+.2f}"
    _style(axes, f"Mean norm of {len(geometry.norms)} bands of words\n{subtitle}", "")


def _cumulative(axes: Any, studied: Study) -> None:
    _curves(axes, studied.cumulative)
    bounds = np.linspace(0, max(studied.cumulative), 4)
    for number, name in enumerate(("top", "middle", "bottom")):
        value = 100 * mean_value(studied.thirds[name])
        if np.isfinite(value):
            axes.plot(bounds[number : number + 2], [value] * 2, color=COLOURS[3], linewidth=4, solid_capstyle="butt")
            axes.annotate(f"{name} third alone", (bounds[number], value), (2, 5), textcoords="offset points",
                          fontsize=9, color=_INK)  # fmt: skip
    _style(axes, "Score x 100 of the first k components\nblue: the mean; pale: each dataset", "k")


def _without(axes: Any, studied: Study) -> None:
    _curves(axes, studied.without)
    _style(axes, "Score x 100 without the first components\nblue: the mean; pale: each dataset", "components removed")


def _probe(axes: Any, probed: Probed) -> None:
    places = range(1, len(probed.each) + 1)
    axes.scatter(places, 100 * np.array(probed.each), s=9, color=COLOURS[0], zorder=3)
    for value, text in ((probed.majority, "majority"), (probed.whole, "all components")):
        axes.axhline(100 * value, color=_PALE, linewidth=0.8, linestyle=":")
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.8}  # drawn over the points
        axes.annotate(text, (1, 100 * value), (0, 4), textcoords="offset points", fontsize=9, color=_INK, bbox=box)
    subtitle = (
        f"{probed.texts:,} texts of {probed.labels} labels; Spearman's ρ of rank and accuracy {probed.trend:+.2f}"
    )
    _style(axes, f"Accuracy x 100 of one component alone: {probed.name}\n{subtitle}", "component")


def _curves(axes: Any, parts: Mapping[int, Sequence[Score]]) -> None:
    """One pale line per dataset and a strong one for their mean."""
    at = [*parts]
    for values in zip(*([score.value for score in scores] for scores in parts.values()), strict=True):
        axes.plot(at, 100 * np.array(values, float), color=COLOURS[2], linewidth=1, zorder=1)
    means = [100 * mean_value(scores) for scores in parts.values()]
    axes.plot(at, means, color=COLOURS[0], linewidth=2, marker="o", markersize=4, zorder=3)


def _style(axes: Any, title: str, xlabel: str) -> None:
    axes.set_title(title, loc="left", fontsize=10, color=_INK)
    axes.set_xlabel(xlabel, color=_PALE, fontsize=10)
    axes.tick_params(length=0, labelcolor=_PALE)
    axes.grid(axis="y", color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color("#bbbbbb")
