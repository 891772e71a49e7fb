"""Label probes of several sets of vectors over restarts (Chang & Rafferty 2020): the tables of docs/papers/02.

    STILLVEC_DATA=... python recipes/label_probes.py TABLE NAME=VECTORS ... [--seeds 3] [--hidden 32] [--dim 64]
    STILLVEC_WORKSHOP=... python recipes/label_probes.py constituents|constituents-agreement NAME=VECTORS ...

TABLE is accuracy, f1 or agreement. Treebank: UD English EWT, or its constituents, the labels of the paper. All vectors
are reduced to the same number of principal components; a teacher, NAME=teacher:minilm@4, keeps those of its layer.
`--quick`: 3,000 training sentences, one restart.
Answers are cached in `--cache`, so that a second table of the same vectors takes seconds. A script for the layout;
`stillvec evaluate --tasks labels` prints the same figures.
"""

from __future__ import annotations

import os
import sys
from itertools import combinations_with_replacement
from pathlib import Path

from scores import argument_parser, data_folder, print_header, print_row, split_cells

import stillvec
from stillvec import WordVectors
from stillvec.evaluation import LabelProbe
from stillvec.evaluation.label_probes import RANDOM
from stillvec.evaluation.label_tables import format_p, format_restarts
from stillvec.evaluation.teacher_states import is_teacher

HEADERS = {
    "label-accuracy": "| vectors | part of speech | relation | parent | grandparent |",
    "label-f1": "| vectors | NOUN | VERB | PRON | nsubj | case | det | advmod | obj |",
    "label-constituents": "| vectors | tag | parent | grandparent | great-grandparent |",
    "label-constituents-agreement": (
        "| pair | κ tag | κ parent | κ grandparent | κ great-grandparent | r of F1 | r of sentences |"
    ),
    "label-agreement": "| pair | κ upos | κ relation | κ parent | κ grandparent | r of F1 | r of sentences |",
}
DEPENDENCIES, CONSTITUENTS = "ud-ewt.test", "ewt.test"


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("table", choices=[name.removeprefix("label-") for name in HEADERS])
    parser.add_argument("vectors", nargs="+", metavar="NAME=VECTORS")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cache", type=Path, default=Path("out/label-probes"))
    options = parser.parse_args()
    sets: dict[str, WordVectors | str] = {}
    for name, _, path in (text.partition("=") for text in options.vectors):
        sets[name] = path if is_teacher(path) else stillvec.refine(stillvec.load(path), f"pca:dim={options.dim}")
    n_hidden = 10 * options.hidden if options.quick else options.hidden  # the quick form has a tenth
    task, folder, treebank = f"labels:seeds={options.seeds},hidden={n_hidden}", data_folder, DEPENDENCIES
    if options.table.startswith("constituents"):
        task, folder, treebank = f"{task},of=constituents", workshop_folder, CONSTITUENTS
    settings = {"resamples": 200, "cache": options.cache, "quick": options.quick, "progress": True}
    report = stillvec.evaluate(sets, folder(), [task], only=[treebank], **settings)
    print_header(*split_cells(HEADERS[f"label-{options.table}"]))
    printers = {"accuracy": print_accuracies, "f1": print_f1, "agreement": print_agreements}
    printers |= {"constituents": print_accuracies, "constituents-agreement": print_agreements}
    printers[options.table](report.label_probes)


def workshop_folder() -> Path:
    if "STILLVEC_WORKSHOP" not in os.environ:
        sys.exit("Expected the folder with trees/ in the environment variable STILLVEC_WORKSHOP.")
    return Path(os.environ["STILLVEC_WORKSHOP"])


def print_accuracies(probes: tuple[LabelProbe, ...]) -> None:
    for name in probes[0].names:
        print_row(name, *(_accuracy(probe, name) for probe in probes))
    tests = "; ".join(f"{p.kind} F = {p.anova.statistic:.1f}, p {format_p(p.anova.p)}" for p in probes if p.anova)
    print(f"\n{probes[0].n_words:,} words. Analysis of variance over the sets: {tests}.")


def _accuracy(probe: LabelProbe, name: str) -> str:
    test = probe.t_tests.get(name)
    star = "" if test is None or not test.p_corrected < 0.05 else " ↑" if test.statistic > 0 else " ↓"
    return format_restarts(probe.accuracies[name]) + star


def print_f1(probes: tuple[LabelProbe, ...]) -> None:
    columns = split_cells(HEADERS["label-f1"])[1:]
    by_kind = {probe.kind: probe for probe in probes}
    for name in probes[0].names:
        of_labels = by_kind["upos"].f1[name] | by_kind["relation"].f1[name]
        print_row(name, *(format_restarts(of_labels[label]) for label in columns))
    shares = {label: n / probe.n_words for probe in probes[:2] for label, n in probe.labels.items()}
    print_row("share of words", *(f"{100 * shares[label]:.1f}%" for label in columns))


def print_agreements(probes: tuple[LabelProbe, ...]) -> None:
    names = [name for name in probes[0].names if name != RANDOM]
    pairs = [*combinations_with_replacement(names, 2), (names[0], RANDOM)]
    by_pair = [{(pair.a, pair.b): pair for pair in probe.agreements} for probe in probes]
    for key in pairs:
        if key in by_pair[0]:
            label = f"{key[0]}, two restarts" if key[0] == key[1] else " – ".join(key)
            rs = by_pair[1][key].r_labels, by_pair[3][key].r_sentences
            print_row(label, *(f"{100 * of_kind[key].kappa:.1f}" for of_kind in by_pair), *(f"{r:.2f}" for r in rs))


if __name__ == "__main__":
    main()
