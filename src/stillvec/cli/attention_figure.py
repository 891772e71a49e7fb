"""Attention as a heat map: one row per centre word, one column per context word (Wang et al. 2020, figure 7)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stillvec.errors import UsageError
from stillvec.files import atomic_file
from stillvec.registry import require

if TYPE_CHECKING:
    from stillvec.pipeline import Attention

_INK, _PALE, _EMPTY = "#222222", "#666666", "#f3f3f3"
_NUMBERED = 24  # words up to which cells show their number


def check_drawable(file: Path) -> None:
    """Check the file name and matplotlib before any work."""
    if file.suffix not in (".svg", ".png"):
        raise UsageError.expected("a file name that ends in .svg or .png", file, where="heat map")
    require("matplotlib.figure", "plot", "The heat map")


def draw_attention(attention: Attention, file: Path) -> None:
    """Write an SVG with its text as text, or a PNG; no window is opened."""
    check_drawable(file)
    matplotlib = require("matplotlib", "plot", "The heat map")
    figure_module = require("matplotlib.figure", "plot", "The heat map")
    n_words = len(attention.words)
    side = max(3.2, 0.62 * n_words)
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "stillvec"}):
        figure = figure_module.Figure(figsize=(side + 1.6, side + 1.4), dpi=160, layout="constrained")
        _draw(figure, attention)
        with atomic_file(file) as part:
            dated = {"metadata": {"Date": None}} if file.suffix == ".svg" else {}  # reproducible bytes
            figure.savefig(part, format=file.suffix[1:], facecolor="white", **dated)


def _draw(figure: Any, attention: Attention) -> None:
    n_words = len(attention.words)
    axes = figure.subplots()
    axes.set_facecolor(_EMPTY)
    top = max(0.5, float(np.nanmax(attention.weights)))
    image = axes.imshow(np.ma.masked_invalid(attention.weights), cmap="Blues", vmin=0, vmax=top)
    axes.set_xticks(
        range(n_words), attention.words, rotation=45, ha="left", rotation_mode="anchor", color=_INK, fontsize=11
    )
    axes.set_yticks(range(n_words), attention.words, color=_INK, fontsize=11)
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
        return
    for (row, column), weight in np.ndenumerate(attention.weights):
        if not np.isnan(weight):
            colour = "white" if weight > 0.55 * top else _INK
            axes.text(column, row, f"{100 * weight:.0f}", ha="center", va="center_baseline", color=colour, fontsize=10)
