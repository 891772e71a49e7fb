"""Tables and figures of the documentation from the output of the recipes: prints Markdown, draws SVG.

    python recipes/tables.py NAME [LABEL=]SCORES.json[:VECTORS] ...
    python recipes/tables.py sizes out/sizes docs/figures/sizes.svg

The header of a table says what is printed; NAME is a key of HEADERS. One row per set of vectors in the files, by the
first column of scores, best first. The vectors of out/x.json are in out/x/, or in the current folder. With :VECTORS,
LABEL is the row of these vectors; without, it begins the columns of that file: `MiniLM 8` is the column `8` of MiniLM.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scores import DEVELOPMENT, OTHER_SCORES, format_interval, mean, print_header, print_row, split_cells

from stillvec.baselines import BASELINES
from stillvec.formats import read_manifest
from stillvec.learners import LEARNERS
from stillvec.registry import settings_from

HEADERS = {
    "auto": "| vectors | MiniLM 8 | MPNet 8 |",
    "auto-sentences": "| vectors | MiniLM STS | MPNet STS |",
    "auto-cpu": "| vectors | 8 | RG | WS | WS-sim | WS-rel | SimLex | SimVerb | RareWord | MEN |",
    "methods-mpnet": "| vectors | 8 | dev | held out | RG | WS | SimLex | SimVerb | RareWord | MEN |",
    "methods-minilm": "| vectors | 8 | dev | held out | RG | WS | SimLex | SimVerb | RareWord | MEN |",
    "sizes": "| vectors | 0.3M words | 0.6M | 1.2M | 2.4M | 4.7M | 9.4M | 19.0M |",
    "analogies": "| vectors | Google | MSR |",
    "categories": "| vectors | SemEval-2012 [95%] | AP [95%] | Battig [95%] | ESSLLI verbs [95%] |",
    "trained": "| vectors | 8 | Google | MSR | SemEval-2012 | AP | Battig | ESSLLI verbs |",
    "trained-small": "| vectors | 8 | Google | MSR | SemEval-2012 | AP | Battig | ESSLLI verbs |",
    "tuning": "| method and settings | dev | RG | WS | SimLex | seconds |",
    "readme": "| vectors | mean of 8 word-similarity datasets (Spearman x 100) | WordSim-353 | SimLex-999 |",
}
DATASETS = {
    "RG": "rg65",
    "WS": "ws353",
    "WordSim-353": "ws353",
    "WS-sim": "ws353-similarity",
    "WS-rel": "ws353-relatedness",
    "SimLex": "simlex999",
    "SimLex-999": "simlex999",
    "SimVerb": "simverb3500",
    "RareWord": "rareword",
    "MEN": "men3000",
}

Report = Mapping[str, Any]


def main() -> None:
    kind, *rest = sys.argv[1:] or [""]
    if kind == "sizes":
        print_sizes(*map(Path, rest))
    elif kind in HEADERS:
        print_table(kind, rest)
    else:
        sys.exit(f"Expected the name of a table, got {kind!r}: {', '.join(HEADERS)}")


def print_table(name: str, sources: list[str]) -> None:
    """Print one row per set of vectors, best first."""
    first, *columns = split_cells(HEADERS[name])
    rows: dict[str, dict[str, tuple[Path, Report]]] = {}
    for source in sources:
        label, path, chosen = _parse_source(source)
        for folder, report in _read_reports(path):
            if chosen in ("", folder.name):
                group = "" if chosen else label
                row = label if chosen and label else _label(folder)
                if group in rows.get(row, {}):  # another run of the same method
                    row += f", contexts {read_manifest(folder)['distillation']['contexts'] or 'all'}"
                rows.setdefault(row, {})[group] = folder, report
    cells = {row: [_cell(column, parts) for column in columns] for row, parts in rows.items()}
    print_header(first, *columns)
    for row in sorted(cells, key=lambda row: -_number(cells[row][0])):
        print_row(row, *cells[row])


def _parse_source(source: str) -> tuple[str, Path, str]:
    label, _, path = source.rpartition("=")
    path, _, chosen = path.partition(":")
    return label, Path(path), chosen


def _read_reports(path: Path) -> list[tuple[Path, Report]]:
    """The reports of an evaluation, each with the folder of its vectors."""
    content = json.loads(path.read_text())
    reports = content if isinstance(content, list) else [content]
    folders = [path.with_suffix("") / Path(report["vectors"]).name for report in reports]
    return [(folder if folder.exists() else Path(r["vectors"]), r) for folder, r in zip(folders, reports, strict=True)]


def _number(cell: str | float) -> float:
    return cell if isinstance(cell, float) else float("-inf") if cell == "–" else float(cell.split()[0])


def _cell(column: str, parts: Mapping[str, tuple[Path, Report]]) -> str | float:
    """The value of a column; – where there is none. ` [95%]` adds the interval."""
    group = next((label for label in parts if label and column.startswith(f"{label} ")), "")
    if group not in parts:
        return "–"
    folder, report = parts[group]
    measure = column.removeprefix(group).strip()
    if measure == "seconds":
        return f"{read_manifest(folder)['trained']['seconds']:.0f}"
    values = _values(report)
    means: dict[str, Callable[[str], bool]] = {
        "8": lambda _: True,
        "mean of 8 word-similarity datasets (Spearman x 100)": lambda _: True,
        "dev": lambda dataset: dataset in DEVELOPMENT,
        "held out": lambda dataset: dataset not in DEVELOPMENT,
    }
    if measure in means:
        chosen = list(filter(means[measure], values))
        return mean(values, chosen) if chosen else "–"
    name, _, interval = measure.partition(" [")
    wanted = OTHER_SCORES.get(name, ("similarity", DATASETS.get(name, name), "spearman"))
    for score in report["scores"]:
        key = (score["task"], score["dataset"], score["metric"], score["words"])
        if key == (*wanted, "own") and score["value"] is not None:
            value = float(score["value"])
            return format_interval(value, score["low"], score["high"]) if interval else 100 * value
    return "–"


def print_sizes(folder: Path, figure: Path) -> None:
    """The mean of eight datasets by corpus size."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for scores in folder.glob("scores-*.json"):
        every = scores.stem.removeprefix("scores-")
        for name, values in _reports(scores):
            vectors = next(folder.glob(f"*-{every}/{name}"))
            point = read_manifest(vectors)["corpus"]["words"], mean(values)
            lines.setdefault(_label(vectors), []).append(point)
    counts = sorted({count for points in lines.values() for count, _ in points})
    print_header(*split_cells(HEADERS["sizes"]))
    for name, points in lines.items():
        print_row(name, *(dict(points).get(count, "–") for count in counts))
    _draw(lines, figure, "words in the corpus", log=True)


def _reports(scores: Path) -> list[tuple[str, dict[str, float]]]:
    """The names of the vectors, and their scores x 100 by dataset."""
    return [(folder.name, _values(report)) for folder, report in _read_reports(scores)]


def _values(report: Mapping[str, Any]) -> dict[str, float]:
    own = (score for score in report["scores"] if score["task"] == "similarity" and score["words"] == "own")
    return {score["dataset"]: 100 * score["value"] for score in own if score["value"] is not None}  # None: no pairs


def _label(folder: Path) -> str:
    """The method, and its settings that are not the defaults; the name of vectors that stillvec did not make."""
    if not (folder / "manifest.json").exists():
        return folder.name
    manifest = read_manifest(folder)
    if manifest["method"] not in {*LEARNERS, *BASELINES}:
        return folder.name
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
