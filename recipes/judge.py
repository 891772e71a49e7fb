"""Nearest neighbours as a judge (paper 12), and training on one dataset to test on others (paper 01).

    STILLVEC_WORKSHOP=... python recipes/judge.py neighbours NAME=VECTORS... [--all]
    STILLVEC_WORKSHOP=... python recipes/judge.py transfer NAME=VECTORS... [--device cuda] [--seeds N]

VECTORS are folders of vectors or teacher:NAME@LAYER. A script because `neighbours` needs a dataset with another share
of the frequent label, and the tables join several evaluations. The posts of EDOS are offensive: none is printed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from scores import argument_parser, format_interval, print_header, print_row, split_cells

from stillvec import evaluate
from stillvec.evaluation import Report, Score
from stillvec.files import cache_folder

HEADERS = {
    "neighbours": "| training posts | vectors | KNN | KNN, centred | KNN, balanced votes | linear | known words |",
    "transfer": "| vectors | frozen | tuned | frozen less tuned | known words |",
}
N_NONE = 2500  # posts of the label "none" in the smaller training set
MODELS = "classification:model=knn+linear"
TARGETS = tuple(f"crossner-{name}.test" for name in ("ai", "literature", "music", "politics", "science"))


def main() -> None:
    parser = argument_parser(__doc__)
    commands = parser.add_subparsers(required=True)
    for name, run in (("neighbours", print_neighbours), ("transfer", print_transfer)):
        command = commands.add_parser(name)
        command.add_argument("vectors", nargs="+", metavar="NAME=VECTORS")
        command.set_defaults(run=run)
        command.add_argument("--all", action="store_true", help="also with all training posts")
    command.add_argument("--device", default="auto")
    command.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    options.run(options)


def print_neighbours(options: argparse.Namespace) -> None:
    """EDOS with five categories: macro-F1 of the neighbours, beside the linear probe."""
    print_header(*split_cells(HEADERS["neighbours"]))
    sources = dict(pair.split("=", 1) for pair in options.vectors)
    whole = workshop_folder()
    folders = {"5,898, 42% none": _write_fewer(whole, Path("out/judge"))}
    for label, folder in (folders | ({"16,000, 76% none": whole} if options.all else {})).items():
        settings = {"only": "edos-category.test", "common": False, "cache": cache_folder() / "answers"}
        plain = evaluate(sources, folder, MODELS, **settings, progress=True)
        centred = evaluate(sources, folder, "classification:model=knn,center=true", **settings, progress=True)
        for name in sources:
            cells = [(plain, "knn"), (centred, "knn"), (plain, "knn-balanced"), (plain, "linear")]
            shown = [_show(_score(report, name, f"macro-f1-{model}")) for report, model in cells]
            print_row(label, name, *shown, f"{100 * _score(plain, name, 'known-words').value:.0f}%")
        majority = _show(_score(plain, next(iter(sources)), "macro-f1-majority"))
        print_row(label, "most frequent label", majority, "", "", "", "")


def print_transfer(options: argparse.Namespace) -> None:
    """Taggers trained on wikigold, tested on five other domains: mean span F1, over domains and seeds."""
    print_header(*split_cells(HEADERS["transfer"]))
    sources = dict(pair.split("=", 1) for pair in options.vectors)
    settings = {"only": TARGETS, "common": False, "cache": cache_folder() / "answers"}
    tagging = f"tagging:source=wikigold,seeds={options.seeds},device={options.device}"
    frozen = evaluate(sources, workshop_folder(), tagging, **settings, progress=True)
    static = {name: source for name, source in sources.items() if not source.startswith("teacher:")}
    tuned = evaluate(static, workshop_folder(), f"{tagging},tuned=true", **settings, progress=True)
    for name in sources:
        first, known = _mean(frozen, name, "f1"), _mean(frozen, name, "known-words")
        if name in static:
            second = _mean(tuned, name, "f1")
            print_row(name, f"{first:.1f}", f"{second:.1f}", f"{first - second:+.1f}", f"{known:.0f}%")
        else:
            print_row(name, f"{first:.1f}", "", "", f"{known:.0f}%")


def workshop_folder() -> Path:
    """The data of the workshop's papers."""
    if "STILLVEC_WORKSHOP" not in os.environ:
        sys.exit("Expected the folder with the data of the workshop in the environment variable STILLVEC_WORKSHOP.")
    return Path(os.environ["STILLVEC_WORKSHOP"])


def _write_fewer(source: Path, target: Path) -> Path:
    """EDOS with all training posts that have a category, and 2,500 others; the test posts are the same."""
    (target / "classification").mkdir(parents=True, exist_ok=True)
    for part in ("train", "test"):
        name = f"classification/edos-category.{part}.txt"
        lines = (source / name).read_text("utf-8").splitlines()
        none = [at for at, line in enumerate(lines) if line.startswith("none ")] if part == "train" else []
        dropped = {*none[N_NONE:]}
        kept = [line for at, line in enumerate(lines) if at not in dropped]
        (target / name).write_text("\n".join(kept) + "\n", "utf-8")
    return target


def _score(report: Report, name: str, metric: str) -> Score:
    return next(score for score in report.scores if (score.vectors, score.metric) == (name, metric))


def _show(score: Score) -> str:
    return format_interval(score.value, score.low, score.high)


def _mean(report: Report, name: str, metric: str) -> float:
    scores: Mapping[str, float] = {
        score.dataset: score.value for score in report.scores if (score.vectors, score.metric) == (name, metric)
    }
    return 100 * float(np.mean([*scores.values()]))


if __name__ == "__main__":
    main()
