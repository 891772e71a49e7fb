"""Tables and figures of docs/results.md from the output of the recipes: prints Markdown, draws SVG.

python recipes/tables.py table out/methods-small-minilm.json out/methods-small-minilm
python recipes/tables.py sizes out/sizes.json docs/figures/sizes.svg
python recipes/tables.py windows out/windows.json out/windows docs/figures/windows.svg
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from stillvec.formats import read_manifest
from stillvec.learners import LEARNERS
from stillvec.registry import settings_from

DEVELOPMENT = ("rg65", "ws353", "simlex999")
SHOWN = ("rg65", "ws353", "simlex999", "simverb3500", "rareword", "men3000")
_INTO = {"x2static-4": "x2static, gupta-jaggi-2021"}  # names in sizes.json, which has no folders


def main() -> None:
    kind, *rest = sys.argv[1:]
    {"table": table, "sizes": sizes, "windows": windows}[kind](*map(Path, rest))


def table(scores: Path, folder: Path) -> None:
    """Print one row per set of vectors, best first."""
    rows = [(_label(folder / name), _values(report)) for name, report in _reports(scores)]
    print("| vectors | 8 | dev | held out | " + " | ".join(SHOWN) + " |\n|" + "---|" * (4 + len(SHOWN)))
    for name, values in sorted(rows, key=lambda row: -_mean(row[1])):
        held = {key: value for key, value in values.items() if key not in DEVELOPMENT}
        cells = [_mean(values), _mean({key: values[key] for key in DEVELOPMENT}), _mean(held)]
        print(
            f"| {name} | "
            + " | ".join(f"{100 * cell:.1f}" for cell in [*cells, *(values[key] for key in SHOWN)])
            + " |"
        )


def sizes(scores: Path, figure: Path) -> None:
    """The mean of eight datasets by corpus size."""
    found = json.loads(scores.read_text())
    lines: dict[str, list[tuple[int, float]]] = {}
    for each in found.values():
        for report in each["report"]:
            name = _INTO.get(report["vectors"], report["vectors"])
            lines.setdefault(name, []).append((each["words"], 100 * _mean(_values(report))))
    words = sorted(each["words"] for each in found.values())
    print("| vectors | " + " | ".join(f"{count / 1e6:.1f}M" for count in words) + " |\n|" + "---|" * (1 + len(words)))
    for name, points in lines.items():
        at = dict(points)
        print(f"| {name} | " + " | ".join(f"{at[count]:.1f}" if count in at else "–" for count in words) + " |")
    _draw(lines, figure, "words in the corpus", log=True)


def windows(scores: Path, folder: Path, figure: Path) -> None:
    """The mean of eight datasets by window size, with and without the word itself."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for name, report in _reports(scores):
        settings = read_manifest(folder / name)["settings"]
        if settings["settings"] == "stillvec" and settings["pool"] == "attention":
            own = settings.get("include_center", settings.get("own"))
            label = "with the word itself" if own else "neighbours only, as in the paper"
            lines.setdefault(label, []).append((settings["window"], 100 * _mean(_values(report))))
    _draw(lines, figure, "words on each side")
    table(scores, folder)


def _reports(scores: Path) -> list[tuple[str, Mapping[str, Any]]]:
    found = json.loads(scores.read_text())
    return [(Path(each["vectors"]).name, each) for each in (found if isinstance(found, list) else [found])]


def _values(report: Mapping[str, Any]) -> dict[str, float]:
    own = (score for score in report["scores"] if score["task"] == "similarity" and score["words"] == "own")
    return {score["dataset"]: score["value"] for score in own}


def _mean(values: Mapping[str, float]) -> float:
    return sum(values.values()) / len(values)


def _label(folder: Path) -> str:
    """The method, and its settings that are not the defaults."""
    manifest = read_manifest(folder)
    given: dict[str, Any] = manifest["settings"]
    preset = given.get("settings", "stillvec")
    kind: Any = LEARNERS[manifest["method"]]
    usual = json.loads(json.dumps(asdict(settings_from(kind, {} if preset == "stillvec" else {"settings": preset}))))
    odd = [f"{key} {value}" for key, value in given.items() if value != usual[key] and key != "settings"]
    return ", ".join([f"`{manifest['method']}`", *([] if preset == "stillvec" else [preset]), *odd])


def _draw(lines: Mapping[str, list[tuple[int, float]]], path: Path, across: str, *, log: bool = False) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "stillvec", "font.size": 9}
    drawn, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for name, points in lines.items():
        axes.plot(*zip(*sorted(points), strict=True), marker="o", markersize=3.5, linewidth=1.3, label=name)
    if log:
        axes.set_xscale("log")
        ticks = sorted({count for points in lines.values() for count, _ in points})
        axes.set_xticks(ticks, [f"{count / 1e6:.1f}M" for count in ticks])
        axes.minorticks_off()
    axes.set(xlabel=across, ylabel="Spearman x 100, mean of 8 datasets")
    axes.grid(alpha=0.3, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    drawn.legend(loc="outside right center", frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn.savefig(path, metadata={"Date": None})
    plt.close(drawn)


if __name__ == "__main__":
    main()
