"""stillvec datasets: list available datasets with their sizes, and sources of missing ones."""

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
        "--data", metavar="DIR", help="data folder with similarity/, analogy/, ... (default: $STILLVEC_DATA)"
    )
    parser.add_argument("--json", metavar="FILE", help="write the list as JSON; - prints only the JSON")


def run(options: argparse.Namespace) -> int:
    tasks = {name: TASKS[name]() for name in TASKS}
    errors: list[str] = []
    listed: list[dict[str, Any]] = []
    for source in _sources(options.data):
        for name, task in tasks.items():
            for dataset in source.find(name, task):
                try:
                    # files of costly tasks are large and slow to read
                    size = None if task.costly else len(task.read(dataset.path))
                except DatasetError as error:
                    errors.append(str(error))
                else:
                    listed.append(_describe(dataset, size, source))
    missing = _list_missing(listed)
    text = json.dumps({"found": listed, "missing": missing}, ensure_ascii=False, indent=1)
    if options.json == "-":
        print(text)
    else:
        _tables(listed, missing)
        if options.json:
            with atomic_file(options.json) as part:
                part.write_text(text + "\n", "utf-8")
    for message in errors:
        print(f"stillvec: {message}", file=sys.stderr)
    return 1 if errors else 0


def _sources(data: str | None) -> list[DatasetSource]:
    """The data folder and gensim's datasets."""
    named = data if data is not None else os.environ.get("STILLVEC_DATA") or None
    sources = [] if named is None else [DatasetSource.of(named)]
    try:
        return [*sources, DatasetSource.of_package()]
    except MissingExtra:
        if not sources:
            raise
        return sources


def _describe(dataset: Dataset, size: int | None, source: DatasetSource) -> dict[str, Any]:
    known = find_known(dataset.name)
    return {
        "name": dataset.name,
        "task": dataset.task,
        "items": size,
        "source": known.source if known else "",
        "terms": known.terms if known else "",
        "folder": "gensim" if source.packaged else str(source.folder),
    }


def _list_missing(listed: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    present = {known.name for entry in listed if (known := find_known(entry["name"]))}
    return [
        {"name": item.name, "task": item.task, "items": item.items, "terms": item.terms, "published": item.published}
        for item in KNOWN
        if item.name not in present
    ]


def _tables(listed: Sequence[dict[str, Any]], missing: Sequence[dict[str, str]]) -> None:
    columns = ("name", "task", "items", "source", "terms")
    for folder in dict.fromkeys(entry["folder"] for entry in listed):
        entries = [entry for entry in listed if entry["folder"] == folder]
        rows = [[_size(entry) if column == "items" else entry[column] for column in columns] for entry in entries]
        packaged = "in gensim, used when no data folder is given"
        console.table(packaged if folder == "gensim" else f"in {folder}", columns, rows)
    if missing:
        missing_columns = ("name", "task", "items", "published")
        rows = [[entry[column] for column in missing_columns] for entry in missing]
        console.table("not found, with download sources", missing_columns, rows)
    console.note("To add a dataset, copy its file to the folder of its task (similarity/, analogy/, ...).")


def _size(each: dict[str, Any]) -> str:
    """Number of items in the file if it was read, else the published number."""
    known = find_known(each["name"])
    return f"{each['items']:,}" if each["items"] is not None else known.items.split()[0] if known else "-"
