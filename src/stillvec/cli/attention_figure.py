"""Attention as a picture: a row a centre, a column a word around it, the darker the more (Wang et al., figure 7)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stillvec.errors import UsageError
from stillvec.files import atomic_file
from stillvec.registry import require

if TYPE_CHECKING:
    from stillvec.pipeline import Attention

_INK, _PALE, _NOBODY = "#222222", "#666666", "#f3f3f3"
_NUMBERED = 24  # words up to which a cell has room for its number


def check_drawable(file: Path) -> None:
    """Refuse before the work what could not be drawn after it."""
    if file.suffix not in (".svg", ".png"):
        raise UsageError(f"A heat map is drawn as .svg or .png, and {file} was asked for.")
    require("matplotlib.figure", "plot", "The heat map")


def draw_attention(found: Attention, file: Path) -> None:
    """Write an SVG, whose text stays text, or a PNG. No window is opened."""
    check_drawable(file)
    matplotlib = require("matplotlib", "plot", "The heat map")
    figure_module = require("matplotlib.figure", "plot", "The heat map")
    count = len(found.words)
    side = max(3.2, 0.62 * count)
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "stillvec"}):
        figure = figure_module.Figure(figsize=(side + 1.6, side + 1.4), dpi=160, layout="constrained")
        _draw(figure, found)
        with atomic_file(file) as part:
            dated = {"metadata": {"Date": None}} if file.suffix == ".svg" else {}  # the same picture, the same bytes
            figure.savefig(part, format=file.suffix[1:], facecolor="white", **dated)


def _draw(figure: Any, found: Attention) -> None:
    count = len(found.words)
    axes = figure.subplots()
    axes.set_facecolor(_NOBODY)
    top = max(0.5, float(np.nanmax(found.weights)))
    image = axes.imshow(np.ma.masked_invalid(found.weights), cmap="Blues", vmin=0, vmax=top)
    axes.set_xticks(range(count), found.words, rotation=45, ha="left", rotation_mode="anchor", color=_INK, fontsize=11)
    axes.set_yticks(range(count), found.words, color=_INK, fontsize=11)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, pad=6)
    axes.set_xticks(np.arange(count + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(count + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=2)
    axes.tick_params(which="minor", length=0)
    axes.spines[:].set_visible(False)
    axes.set_ylabel("the word in the centre attends ...", color=_PALE, fontsize=10)
    axes.set_xlabel("... to the words around it, in percent; pale: none to attend to", color=_PALE, fontsize=10)
    if count > _NUMBERED:
        bar = figure.colorbar(image, ax=axes, shrink=0.6, aspect=30, format=lambda value, _: f"{100 * value:.0f}%")
        bar.outline.set_visible(False)
        bar.ax.tick_params(length=0, labelcolor=_PALE, labelsize=9)
        return
    for (row, column), weight in np.ndenumerate(found.weights):
        if not np.isnan(weight):
            colour = "white" if weight > 0.55 * top else _INK
            axes.text(column, row, f"{100 * weight:.0f}", ha="center", va="center_baseline", color=colour, fontsize=10)
