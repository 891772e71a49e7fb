"""The same pairs and texts with other names in them: does the answer change? (paper 24)

    STILLVEC_WORKSHOP=... python recipes/other_names.py paraphrases|texts|canonical NAME=VECTORS ... [--glove FOLDER]
        [--lists companies countries] [--quick]

`--quick`: at most 100 items, 10 other names for each, and 2,000 training texts or pairs.
`canonical` measures RESEMBLE, an ensemble with the answers for one or three canonical names.

The representations are those of text_pairs.py. A script because the tables join several evaluations.
"""

from __future__ import annotations

import argparse
from typing import Any

from scores import argument_parser, print_header, print_row, split_cells
from text_pairs import add_representations, read_representations, show, workshop_folder

from stillvec import evaluate
from stillvec.evaluation import Report
from stillvec.evaluation.teacher_states import is_teacher
from stillvec.files import cache_folder

HEADERS = {
    "substitution-paraphrases": "| names | pairs | representation | accuracy | worst | best | stability [95%] | "
    "mean of other names | without a name | names known |",
    "substitution-texts": "| texts | names | items | representation | accuracy | worst | best | stability [95%] | "
    "mean of other names | without a name | names known |",
    "substitution-canonical": "| names | pairs | representation | canonical names | accuracy | worst | best | "
    "best - worst | stability [95%] | mean of other names |",
}
CANONICAL = {  # companies and persons are those of the paper
    "companies": ("Microsoft", "Nasdaq", "IBM"),
    "countries": ("France", "China", "Germany"),
    "first-female": ("Patricia", "Mary", "Jennifer"),
    "first-male": ("John", "James", "Robert"),
    "last": ("Brown", "Johnson", "Jones"),
}
LISTS = ("companies", "countries", "first-female", "first-male", "last")
TEXTS = (("sport20ng.test", "countries"), ("sport20ng.test", "last"))


def main() -> None:
    parser = argument_parser(__doc__)
    commands = parser.add_subparsers(required=True)
    for name, run in (("paraphrases", print_paraphrases), ("texts", print_texts), ("canonical", print_canonical)):
        command = commands.add_parser(name)
        add_representations(command)
        command.add_argument("--items", type=int, default=300)
        command.add_argument("--lists", nargs="+", default=LISTS, choices=LISTS, metavar="LIST", help="lists of names")
        command.add_argument("--teachers-on", nargs="*", default=LISTS, metavar="LIST", help="for teachers, only these")
        command.set_defaults(run=run)
    options = parser.parse_args()
    options.run(options)


def print_paraphrases(options: argparse.Namespace) -> None:
    """MRPC, a list of names after the other."""
    print_header(*split_cells(HEADERS["substitution-paraphrases"]))
    for names in options.lists:
        print_rows(options, "mrpc.test", names, [names])


def print_texts(options: argparse.Namespace) -> None:
    """Single texts with a label."""
    print_header(*split_cells(HEADERS["substitution-texts"]))
    for dataset, names in (pair for pair in TEXTS if pair[1] in options.lists):
        print_rows(options, dataset, names, [dataset.removesuffix(".test"), names])


def print_canonical(options: argparse.Namespace) -> None:
    """MRPC without, with one and with three canonical names."""
    print_header(*split_cells(HEADERS["substitution-canonical"]))
    representations = read_representations(options)
    for names in options.lists:
        for n_canonical in (0, 1, 3):
            canonical = "+".join(CANONICAL[names][:n_canonical])
            task = f"substitution:names={names},items={options.items}" + f",canonical={canonical}" * bool(canonical)
            report = evaluate_cached(representations, task, "mrpc.test", options.quick)
            for name in representations:
                scores = {score.metric: score for score in report.scores if score.vectors == name}
                values = {metric: 100 * score.value for metric, score in scores.items()}
                print_row(
                    names,
                    str(scores["stability"].n_covered),
                    name,
                    str(n_canonical),
                    values["accuracy"],
                    values["worst"],
                    values["best"],
                    values["best"] - values["worst"],
                    show(scores["stability"]),
                    values["accuracy-substituted"],
                )


def print_rows(options: argparse.Namespace, dataset: str, names: str, cells: list[str]) -> None:
    representations = read_representations(options)
    if names not in options.teachers_on:
        representations = {name: source for name, source in representations.items() if not is_teacher(source)}
    task = f"substitution:names={names},items={options.items}"
    report = evaluate_cached(representations, task, dataset, options.quick)
    for name in representations:
        scores = {score.metric: score for score in report.scores if score.vectors == name}
        values = {metric: 100 * score.value for metric, score in scores.items()}
        print_row(
            *cells,
            str(scores["stability"].n_covered),
            name,
            values["accuracy"],
            values["worst"],
            values["best"],
            show(scores["stability"]),
            values["accuracy-substituted"],
            values["accuracy-removed"],
            f"{values['names-known']:.0f}%",
        )


def evaluate_cached(representations: dict[str, Any], task: str, dataset: str, quick: bool) -> Report:
    folder, cache = workshop_folder(), cache_folder() / "answers"
    return evaluate(representations, folder, [task], only=[dataset], common=False, quick=quick, cache=cache)


if __name__ == "__main__":
    main()
