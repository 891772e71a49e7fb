"""Tables and figures of docs/results.md from the output of the recipes: prints Markdown, draws SVG.

python recipes/tables.py table out/methods-small-minilm.json out/methods-small-minilm
python recipes/tables.py trials out/tuning.json out/tuning
python recipes/tables.py sizes out/sizes docs/figures/sizes.svg
python recipes/tables.py windows out/windows.json out/windows docs/figures/windows.svg
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scores import DEVELOPMENT, SHOWN, mean, print_header, print_row

from stillvec.baselines import BASELINES
from stillvec.formats import read_manifest
from stillvec.learners import LEARNERS
from stillvec.registry import settings_from


def main() -> None:
    kind, *rest = sys.argv[1:]
    {"table": table, "trials": trials, "sizes": sizes, "windows": windows}[kind](*map(Path, rest))


def table(scores: Path, folder: Path) -> None:
    """Print one row per set of vectors, best first."""
    print_header("vectors", "8", "dev", "held out", *SHOWN)
    for name, values in _rows(scores):
        parts = [[dataset for dataset in values if (dataset in DEVELOPMENT) == chosen] for chosen in (True, False)]
        means = (mean(values, part) if part else "–" for part in (values, *parts))
        print_row(_label(folder / name), *means, *(values.get(dataset, "–") for dataset in SHOWN))


def trials(scores: Path, folder: Path) -> None:
    """Print one row per trial with its training time; scores of the development sets only."""
    print_header("method and settings", "mean of 3", *DEVELOPMENT, "seconds")
    for name, values in _rows(scores):
        seconds = read_manifest(folder / name)["trained"]["seconds"]
        print_row(_label(folder / name), mean(values), *(values.get(key, "–") for key in DEVELOPMENT), f"{seconds:.0f}")


def sizes(folder: Path, figure: Path) -> None:
    """The mean of eight datasets by corpus size."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for scores in folder.glob("scores-*.json"):
        every = scores.stem.removeprefix("scores-")
        for name, values in _reports(scores):
            vectors = next(folder.glob(f"*-{every}/{name}"))
            point = read_manifest(vectors)["corpus"]["words"], mean(values)
            lines.setdefault(_label(vectors), []).append(point)
    counts = sorted({count for points in lines.values() for count, _ in points})
    print_header("vectors", *(f"{count / 1e6:.1f}M" for count in counts))
    for name, points in lines.items():
        print_row(name, *(dict(points).get(count, "–") for count in counts))
    _draw(lines, figure, "words in the corpus", log=True)


def windows(scores: Path, folder: Path, figure: Path) -> None:
    """The mean of eight datasets by window size, with and without the word itself."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for name, values in _reports(scores):
        settings = read_manifest(folder / name)["settings"]
        if settings["settings"] == "stillvec" and settings["pool"] == "attention":
            own = settings.get("include_center", settings.get("own"))
            label = "with the word itself" if own else "neighbours only, as in the paper"
            lines.setdefault(label, []).append((settings["window"], mean(values)))
    _draw(lines, figure, "words on each side")
    table(scores, folder)


def _reports(scores: Path) -> list[tuple[str, dict[str, float]]]:
    """The names of the vectors, and their scores x 100 by dataset."""
    content = json.loads(scores.read_text())
    reports = content if isinstance(content, list) else [content]
    return [(Path(report["vectors"]).name, _values(report)) for report in reports]


def _rows(scores: Path) -> list[tuple[str, dict[str, float]]]:
    return sorted(_reports(scores), key=lambda row: -mean(row[1]))


def _values(report: Mapping[str, Any]) -> dict[str, float]:
    own = (score for score in report["scores"] if score["task"] == "similarity" and score["words"] == "own")
    return {score["dataset"]: 100 * score["value"] for score in own if score["value"] is not None}  # None: no pairs


def _label(folder: Path) -> str:
    """The method, and its settings that are not the defaults."""
    manifest = read_manifest(folder)
    given: dict[str, Any] = manifest["settings"]
    preset = given.get("settings", "stillvec")
    kind: Any = (LEARNERS if manifest["method"] in LEARNERS else BASELINES)[manifest["method"]]
    usual = json.loads(json.dumps(asdict(settings_from(kind, {} if preset == "stillvec" else {"settings": preset}))))
    odd = [f"{key} {value}" for key, value in given.items() if value != usual[key] and key != "settings"]
    return ", ".join([f"`{manifest['method']}`", *([] if preset == "stillvec" else [preset]), *odd])


def _draw(lines: Mapping[str, list[tuple[int, float]]], path: Path, across: str, *, log: bool = False) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "stillvec", "font.size": 9}
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for name, points in lines.items():
        axes.plot(
            *zip(*sorted(points), strict=True), marker="o", markersize=3.5, linewidth=1.3, label=name.replace("`", "")
        )
    if log:
        axes.set_xscale("log")
        ticks = sorted({count for points in lines.values() for count, _ in points})
        axes.set_xticks(ticks, [f"{count / 1e6:.1f}M" for count in ticks])
        axes.minorticks_off()
    axes.set(xlabel=across, ylabel="Spearman x 100, mean of 8 datasets")
    axes.grid(alpha=0.3, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right center", frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
