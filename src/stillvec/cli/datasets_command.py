"""stillvec datasets: which tests there are by name, how large they are, and where those that are missing come from."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from stillvec.cli import console
from stillvec.errors import DatasetError, MissingExtra
from stillvec.evaluation import TASKS
from stillvec.evaluation.catalog import KNOWN, find_known
from stillvec.evaluation.datasets import Dataset, DatasetSource
from stillvec.files import atomic_file


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", metavar="DIR", help="a folder with similarity/, analogy/, ... (default: $STILLVEC_DATA)"
    )
    parser.add_argument("--json", metavar="FILE", help="write the list as JSON; - prints only it")


def run(options: argparse.Namespace) -> int:
    tasks = {name: TASKS[name]() for name in TASKS}
    errors: list[str] = []
    listed: list[dict[str, Any]] = []
    for source in _sources(options.data):
        for name, task in tasks.items():
            for dataset in source.find(name, task):
                try:
                    # the files of tasks that train are large, and reading them takes longer than a list is worth
                    size = None if task.costly else len(task.read(dataset.path))
                except DatasetError as error:
                    errors.append(str(error))
                else:
                    listed.append(_described(dataset, size, source))
    missing = _missing(listed)
    text = json.dumps({"found": listed, "missing": missing}, ensure_ascii=False, indent=1)
    if options.json == "-":
        print(text)
    else:
        _tables(listed, missing)
        if options.json:
            with atomic_file(options.json) as part:
                part.write_text(text + "\n", "utf-8")
    for told in errors:
        print(f"stillvec: {told}", file=sys.stderr)
    return 1 if errors else 0


def _sources(data: str | None) -> list[DatasetSource]:
    """The folder that is named, and what gensim carries."""
    named = data if data is not None else os.environ.get("STILLVEC_DATA") or None
    sources = [] if named is None else [DatasetSource.of(named)]
    try:
        return [*sources, DatasetSource.of_package()]
    except MissingExtra:
        if not sources:
            raise
        return sources


def _described(dataset: Dataset, size: int | None, source: DatasetSource) -> dict[str, Any]:
    known = find_known(dataset.name)
    return {
        "name": dataset.name,
        "task": dataset.task,
        "items": size,
        "source": known.source if known else "",
        "terms": known.terms if known else "",
        "folder": "gensim" if source.packaged else str(source.folder),
    }


def _missing(listed: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    there = {known.name for each in listed if (known := find_known(each["name"]))}
    return [
        {"name": each.name, "task": each.task, "items": each.items, "terms": each.terms, "published": each.published}
        for each in KNOWN
        if each.name not in there
    ]


def _tables(listed: Sequence[dict[str, Any]], missing: Sequence[dict[str, str]]) -> None:
    columns = ("name", "task", "items", "source", "terms")
    for folder in dict.fromkeys(each["folder"] for each in listed):
        here = [each for each in listed if each["folder"] == folder]
        rows = [[_size(each) if column == "items" else each[column] for column in columns] for each in here]
        packaged = "carried by gensim, used where no folder is named"
        console.table(packaged if folder == "gensim" else f"in {folder}", columns, rows)
    if missing:
        wanted = ("name", "task", "items", "published")
        rows = [[each[column] for column in wanted] for each in missing]
        console.table("not there, and where it is from", wanted, rows)
    console.note("Put a file into the folder of its task (similarity/, analogy/, ...); its name is the dataset's.")


def _size(each: dict[str, Any]) -> str:
    """The items that were counted, else what its authors say."""
    known = find_known(each["name"])
    return f"{each['items']:,}" if each["items"] is not None else known.items.split()[0] if known else "-"
