"""Nearest neighbours as a judge (paper 12), and training on one dataset to test on others (paper 01).

    STILLVEC_WORKSHOP=... python recipes/judge.py neighbours NAME=VECTORS... [--all]
    STILLVEC_WORKSHOP=... python recipes/judge.py transfer NAME=VECTORS... [--device cuda] [--seeds N]

VECTORS are folders of vectors or teacher:NAME@LAYER. A script because `neighbours` needs a dataset with another share
of the frequent label, and `transfer` trains a tagger once for all domains. The posts of EDOS are offensive: none is
printed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scores import argument_parser, format_interval, print_header, print_row, split_cells

from stillvec import evaluate, load
from stillvec.evaluation import Report, Score
from stillvec.evaluation.supervised import LearntItems
from stillvec.evaluation.tagging import Tagging
from stillvec.evaluation.teacher_states import open_teachers
from stillvec.files import cache_folder
from stillvec.heads.lookup import Lookup
from stillvec.heads.sequence_batches import Representation
from stillvec.heads.splits import Round

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
    folders = {"5,898, 42% none": write_fewer(whole, Path("out/judge"))}
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
    """Taggers trained on wikigold, tested on five other domains: mean span F1 over domains and seeds."""
    print_header(*split_cells(HEADERS["transfer"]))
    frozen = Tagging(source="wikigold", seeds=options.seeds, device=options.device)
    items, domains = _pool_domains(frozen)
    for name, source in (pair.split("=", 1) for pair in options.vectors):
        teacher = source.startswith("teacher:")
        known, first = _tag(frozen, _open(source), items, domains)
        shown = [_show_seeds(first)]
        if not teacher:
            _, second = _tag(replace(frozen, tuned=True), _open(source), items, domains)
            gap = first - second
            shown += [_show_seeds(second), f"{100 * gap.mean():+.1f} ({100 * gap.mean(axis=0).std(ddof=1):.1f})"]
        print_row(name, *(shown if not teacher else [*shown, "", ""]), f"{known:.0f}%")


def _pool_domains(task: Tagging) -> tuple[LearntItems, list[slice]]:
    """The test sentences of all domains as one dataset, so that a tagger is trained once; and which are whose."""
    read = [task.read(workshop_folder() / "tagging" / f"{name}.tsv") for name in TARGETS]
    ends = np.cumsum([len(items) for items in read])
    tested = [words for items in read for words in items.texts]
    labels = [tags for items in read for tags in items.labels[: len(items)]]
    source = read[0]
    (split,), shift = source.rounds, int(ends[-1]) - len(source)
    rounds = (Round(split.train + shift, split.dev + shift, np.arange(ends[-1])),)
    rest = source.labels[len(source) :]
    pooled = LearntItems.from_sentences((*tested, *source.more), len(tested), (*labels, *rest), rounds)
    return pooled, [slice(end - len(items), end) for items, end in zip(read, ends, strict=True)]


def _tag(
    task: Tagging, lookup: Representation, items: LearntItems, domains: Sequence[slice]
) -> tuple[float, NDArray[np.float64]]:
    """The percentage of known words, and span F1 of each domain and seed (domains, seeds)."""
    answers = task.answer(lookup, items)
    known = answers.values["known-words"].sum(axis=0)
    totals = [answers.values["f1"][rows].sum(axis=0) for rows in domains]  # (3, seeds): correct, predicted, gold
    f1 = np.stack([2 * correct / (predicted + gold) for correct, predicted, gold in totals])
    return 100 * known[0] / known[1], f1


def _open(source: str) -> Representation:
    if source.startswith("teacher:"):
        return open_teachers({"teacher": source}, cache_folder())["teacher"]
    return Lookup(load(source))


def _show_seeds(f1: NDArray[np.float64]) -> str:
    """The mean, and the standard deviation over seeds of the mean over domains."""
    return f"{100 * f1.mean():.1f} ({100 * f1.mean(axis=0).std(ddof=1):.1f})"


def workshop_folder() -> Path:
    """The data of the workshop's papers."""
    if "STILLVEC_WORKSHOP" not in os.environ:
        sys.exit("Expected the folder with the data of the workshop in the environment variable STILLVEC_WORKSHOP.")
    return Path(os.environ["STILLVEC_WORKSHOP"])


def write_fewer(source: Path, target: Path) -> Path:
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


if __name__ == "__main__":
    main()
