"""stillvec evaluate VECTORS...: how good vectors are, side by side."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from stillvec.cli import show
from stillvec.errors import CallError
from stillvec.evaluate import TASKS, Report, Score, evaluate
from stillvec.files import atomic_file
from stillvec.formats import load

_POLICIES = {
    "skip": "Items with unknown words are left out",
    "mean": "Unknown words have the mean vector",
    "zero": "Unknown words have the zero vector",
}
_LEGEND = "In a cell: the value, its 95% interval, the share of items whose words are all known."


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "vectors", metavar="VECTORS", nargs="+", help="folders of vectors, or files in any format we read"
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="a folder with similarity/, analogy/, sentences/ (default: $STILLVEC_DATA, else what gensim carries)",
    )
    parser.add_argument(
        "--tasks", metavar="A,B", type=_tasks, help=f"of {', '.join(TASKS)} (default: all there is data for)"
    )
    parser.add_argument(
        "--unknown", choices=[*_POLICIES], default="skip", help="items with unknown words (default: skip)"
    )
    parser.add_argument("--json", metavar="FILE", help="write the scores as JSON; - prints only them")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the intervals (default: 0)")


def run(options: argparse.Namespace) -> int:
    names = unique_names(options.vectors)
    sets = {name: load(path) for name, path in zip(names, options.vectors, strict=True)}
    report = evaluate(sets, options.data, options.tasks, unknown=options.unknown, seed=options.seed)
    text = json.dumps(report.to_json(), ensure_ascii=False, indent=1)
    if options.json == "-":
        print(text)
    else:
        _tables(report)
        show.note(f"{_POLICIES[options.unknown]}.")
        show.note(_LEGEND)
        if options.json:
            with atomic_file(options.json) as part:
                part.write_text(text + "\n", "utf-8")
    for error in report.errors:
        print(f"stillvec: {error}", file=sys.stderr)
    return 1 if report.errors else 0


def unique_names(paths: Sequence[str]) -> list[str]:
    """The last part of each path, with as many parts before it as it takes to tell them apart."""
    parts = [Path(path).resolve().parts for path in paths]
    for depth in range(1, max(map(len, parts)) + 1):
        names = ["/".join(each[-depth:]) for each in parts]
        if len(set(names)) == len(names):
            return names
    raise CallError("The same vectors are given twice; give each set once.")


def _tasks(text: str) -> list[str]:
    tasks = [task.strip() for task in text.split(",") if task.strip()]
    for task in tasks:
        if task not in TASKS:
            raise argparse.ArgumentTypeError(f"there is no task {task!r}; known are {', '.join(TASKS)}")
    return tasks


def _tables(report: Report) -> None:
    """A table a task: a row for each dataset, a column for each set of vectors."""
    for task in dict.fromkeys(score.task for score in report.scores):
        rows: dict[tuple[str, str, str], list[Score]] = {}
        for score in report.scores:
            if score.task == task:
                rows.setdefault((score.dataset, score.metric, score.words), []).append(score)
        if _same_items(rows):
            rows = {key: scores for key, scores in rows.items() if key[2] == "own"}
        metrics = [*dict.fromkeys(metric for _, metric, _ in rows)]
        ordered = sorted(rows.items(), key=lambda row: (row[0][0], metrics.index(row[0][1]), row[0][2] != "own"))
        cells = [(_label(*key, several=len(metrics) > 1), *map(_cell, scores)) for key, scores in ordered]
        if task == "similarity":
            cells += _means([*rows.values()])
        what = metrics[0] if len(metrics) == 1 else "correlations" if task == "sentences" else ", ".join(metrics)
        show.table(f"{task}: {what} x 100 [95%] coverage", ("dataset", *report.names), cells)


def _same_items(rows: dict[tuple[str, str, str], list[Score]]) -> bool:
    """Whether the sets know the same items, so that rows on common words would only repeat their own."""
    for (dataset, metric, words), scores in rows.items():
        if words == "common":
            own = rows[dataset, metric, "own"]
            if any(mine.n_covered != ours.n_covered for mine, ours in zip(own, scores, strict=True)):
                return False
    return True


def _label(dataset: str, metric: str, words: str, *, several: bool) -> str:
    if words == "common":
        return "  on common words"
    return f"{dataset} {metric.removeprefix('spearman-')}" if several else dataset


def _cell(score: Score) -> str:
    share = f"{100 * score.n_covered / score.n_items:3.0f}%"
    if math.isnan(score.value):
        return f"{'-':>4} {'':12} {share}"
    return f"{_hundredths(score.value)} [{_hundredths(score.low)}, {_hundredths(score.high)}] {share}"


def _hundredths(value: float) -> str:
    """Four characters where it can: 45.3, -7.1, 100."""
    return f"{100 * value:4.1f}" if abs(value) < 0.9995 else f"{100 * value:4.0f}"


def _means(rows: list[list[Score]]) -> Iterator[tuple[str, ...]]:
    """The mean over the datasets on which every set of vectors has a value, if there are several."""
    for words, label in (("own", "mean of {}"), ("common", "  on common words")):
        whole = [row for row in rows if row[0].words == words and not any(math.isnan(s.value) for s in row)]
        if len(whole) > 1:
            sums = [sum(score.value for score in column) for column in zip(*whole, strict=True)]
            yield (label.format(len(whole)), *(_hundredths(total / len(whole)) for total in sums))
