"""Scores as a bar chart with intervals: one group per test, one colour per set of vectors."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from stillvec.evaluation import Score
from stillvec.files import atomic_file
from stillvec.registry import require

COLOURS = ("#2b6cb8", "#8fbfea", "#c9c9c9", "#e0a458", "#8a6fb0")
_INK, _PALE = "#222222", "#666666"


def draw_scores(scores: Sequence[Score], tests: Mapping[str, tuple[str, str]], file: Path, title: str) -> None:
    """Write a PNG; `tests` maps a dataset to its title and metric. No window is opened."""
    figure_module = require("matplotlib.figure", "plot", "The plot")
    own = [score for score in scores if score.words == "own" and score.dataset in tests]
    names = [*dict.fromkeys(score.vectors for score in own)]
    figure = figure_module.Figure(figsize=(9, 5), dpi=160, layout="constrained")
    axes = figure.subplots()
    width = 0.8 / max(len(names), 1)
    for number, name in enumerate(names):
        for place, test in enumerate(tests):
            for score in own:
                if (score.vectors, score.dataset) == (name, test):
                    at = place + (number - (len(names) - 1) / 2) * width
                    _bar(axes, score, at, 0.92 * width, COLOURS[number % len(COLOURS)], name if place == 0 else None)
    known = {score.dataset: f"{score.n_covered:,} of {score.n_items:,} items covered" for score in own}
    labels = [f"{label}\n{what}\n{known.get(test, '')}" for test, (label, what) in tests.items()]
    axes.set_xticks(range(len(tests)), labels, fontsize=10, color=_INK)
    axes.tick_params(axis="x", length=0, pad=8)
    axes.tick_params(axis="y", length=0, labelcolor=_PALE)
    lowest, highest = min(100 * score.low for score in own), max(100 * score.high for score in own)
    axes.set_ylim(lowest - 3 if lowest < 0 else 0, highest + 8)
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color("#bbbbbb")
    axes.set_title(f"{title}\n", loc="left", fontsize=14, fontweight="bold", color=_INK)
    axes.text(0, 1.02, "Dark lines are 95% intervals.", transform=axes.transAxes, fontsize=10, color=_PALE)
    axes.legend(frameon=False, ncols=len(names), loc="lower right", bbox_to_anchor=(1, 0.99), fontsize=10)
    with atomic_file(file) as part:
        figure.savefig(part, format="png", facecolor="white")


def _bar(axes: object, score: Score, at: float, width: float, colour: str, label: str | None) -> None:
    value, low, high = (100 * number for number in (score.value, score.low, score.high))
    axes.bar(at, value, width, color=colour, label=label)  # type: ignore[attr-defined]
    axes.plot([at, at], [low, high], color=_INK, linewidth=1.2, solid_capstyle="butt")  # type: ignore[attr-defined]
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1}  # no grid line through a number
    text = axes.text(at, max(high, 0) + 1.2, f"{value:.1f}", ha="center", color=_INK)  # type: ignore[attr-defined]
    text.set(bbox=box, fontsize=10)
