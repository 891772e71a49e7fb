"""stillvec evaluate VECTORS...: how good vectors are, side by side, and which differences are real."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from stillvec.cli import console, scoreboard
from stillvec.cli.progress_bar import watch
from stillvec.errors import UsageError
from stillvec.evaluation import TASKS, Evaluation
from stillvec.evaluation.encoders import TeacherEncoder, rival
from stillvec.evaluation.task_selection import split_tasks
from stillvec.evaluation.tasks import task_class
from stillvec.files import atomic_file, cache_folder
from stillvec.formats import load, read_manifest
from stillvec.vectors import WordVectors
from stillvec.verbs.transformation import unique_names

_POLICIES = {
    "skip": "Items with unknown words are left out",
    "mean": "Unknown words have the mean vector",
    "zero": "Unknown words have the zero vector",
    "subword": "Unknown words have the vector of their n-grams",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("vectors", metavar="VECTORS", nargs="+", help="folders of vectors, or files in any format we read")
    add(
        "--data",
        metavar="DIR",
        help="a folder with similarity/, analogy/, sentences/ (default: $STILLVEC_DATA, else what gensim carries)",
    )
    add(
        "--tasks",
        metavar="A,B:key=value",
        type=_tasks,
        help=f"of {', '.join(TASKS)}, perhaps with settings (default: all there is data for that are not costly)",
    )
    add("--only", metavar="A,B", type=_names, help="datasets by name (stillvec datasets lists them)")
    add("--all", action="store_true", help="costly tasks too, those that train")
    add("--quick", action="store_true", help="the quick form of costly tasks: less data, one seed")
    add("--unknown", choices=[*_POLICIES], default="skip", help="items with unknown words (default: skip)")
    add("--policies", action="store_true", help="tell where another policy for unknown words gives another order")
    add(
        "--lexicon",
        action="append",
        default=[],
        metavar="FILE|wordnet",
        help="one that vectors were refined with: similarity also on the pairs that it does not hold; may be repeated",
    )
    add("--teacher", metavar="DIR", help="a teacher, judged on sentences beside the vectors as their ceiling")
    add("--rival", metavar="model2vec:DIR", help="what model2vec wrote, judged on sentences as model2vec encodes them")
    add("--overlap", action="store_true", help="how many nearest neighbours each two sets share")
    add("--json", metavar="FILE", help="write the scores as JSON; - prints only them")
    add(
        "--report",
        action="append",
        default=[],
        metavar="FILE.html",
        help="write a page; or tables, as .md, .csv, .json, .tex; may be repeated",
    )
    add("--seed", type=int, default=0, metavar="N", help="of the intervals (default: 0)")
    add(
        "--no-cache", action="store_true", help="answer all anew, and keep nothing ($STILLVEC_CACHE, or a cache folder)"
    )
    add("--quiet", action="store_true", help="no progress")


def run(options: argparse.Namespace) -> int:
    if options.report:
        from stillvec.report import check_writable

        for file in options.report:
            check_writable(Path(file))
    names = unique_names(options.vectors)
    sets = {name: load(path) for name, path in zip(names, options.vectors, strict=True)}
    work = _evaluation(options, sets)
    watch(work.steps(), quiet=options.quiet or options.json == "-")
    report = work.report
    text = json.dumps(report.to_json(), ensure_ascii=False, indent=1)
    if options.json == "-":
        print(text)
    else:
        scoreboard.show_report(report)
        console.note(f"{_POLICIES[options.unknown]}.")
        console.note(legend({score.task for score in report.scores}))
        if options.json:
            with atomic_file(options.json) as part:
                part.write_text(text + "\n", "utf-8")
    if options.report:
        _write_page(options, work, sets)
    for error in report.errors:
        print(f"stillvec: {error}", file=sys.stderr)
    return 1 if report.errors else 0


def _evaluation(options: argparse.Namespace, sets: dict[str, WordVectors]) -> Evaluation:
    encoders: dict[str, Any] = {}
    if options.teacher:
        encoders["teacher"] = TeacherEncoder(options.teacher)
    if options.rival:
        encoders["model2vec"] = rival(options.rival)
    return Evaluation(
        sets,
        options.data,
        options.tasks,
        options.only,
        unknown=options.unknown,
        seed=options.seed,
        lexicons=tuple(options.lexicon),
        policies=options.policies or bool(options.report),
        overlap=options.overlap or bool(options.report),
        costly=options.all,
        quick=options.quick,
        encoders=encoders,
        cache=None if options.no_cache else cache_folder() / "answers",
    )


def _write_page(options: argparse.Namespace, work: Evaluation, sets: dict[str, WordVectors]) -> None:
    from stillvec.report import write_report

    folders = {name: Path(path) for name, path in zip(sets, options.vectors, strict=True)}
    manifests = {name: read_manifest(path) for name, path in folders.items() if (path / "manifest.json").is_file()}
    for file in options.report:
        write_report(work.report, sets, file, manifests=manifests, data=options.data)
        if options.json != "-":
            console.note(f"Wrote {file}")


def legend(tasks: set[str]) -> str:
    """What covered means for these tasks."""
    rules = {
        "word": "an item counts as covered if every word in it has a vector",
        "text": "a text if at least one word has one",
    }
    units = {task_class(task).item_unit for task in tasks}
    if units == {"text"}:
        return "A text counts as covered if at least one word in it has a vector."
    return f"{', '.join(rule for unit, rule in rules.items() if unit in units).capitalize()}."


def _tasks(text: str) -> list[str]:
    try:
        return split_tasks(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
