"""stillvec datasets: list available datasets with their sizes, and sources of missing ones."""

import argparse
import os
from collections.abc import Sequence
from typing import Any

from stillvec.cli import console
from stillvec.cli.flags import add_json
from stillvec.cli.terminal_text import warn
from stillvec.errors import DatasetError, MissingExtra
from stillvec.evaluation import TASKS
from stillvec.evaluation.datasets import KNOWN, Dataset, DatasetSource, find_known


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", metavar="DIR", help="folder with similarity/, analogy/, ... (default: $STILLVEC_DATA)"
    )
    add_json(parser, words_follow=False)


def run(options: argparse.Namespace) -> int:
    errors: list[str] = []
    listed: list[dict[str, Any]] = []
    for source in _sources(options.data):
        for name in TASKS:
            task = TASKS[name]()
            for dataset in source.find(name, task):
                try:
                    # files of costly tasks are large and slow to read
                    size = None if task.costly else len(dataset.read(task, ()))
                except DatasetError as error:
                    errors.append(str(error))
                else:
                    listed.append(_describe(dataset, size, source))
    present = {known for entry in listed if (known := find_known(entry["name"], entry["task"]))}
    columns = ("name", "task", "items", "terms", "published")
    missing = [{key: getattr(item, key) for key in columns} for item in KNOWN if item not in present]
    values = {"found": listed, "missing": missing}
    console.show(values, options.json, lambda: _tables(listed, missing))
    for message in errors:
        warn(f"stillvec: {message}")
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
    known = find_known(dataset.name, dataset.task)
    outside = dataset.path if dataset.path and not dataset.path.is_relative_to(source.folder) else None  # WordNet
    return {
        "name": dataset.name,
        "task": dataset.task,
        "items": size,
        "source": known.source if known else "",
        "terms": known.terms if known else "",
        "folder": "gensim" if source.packaged else str(outside or source.folder),
    }


def _tables(listed: Sequence[dict[str, Any]], missing: Sequence[dict[str, str]]) -> None:
    columns = ("name", "task", "items", "source", "terms")
    for folder in dict.fromkeys(entry["folder"] for entry in listed):
        entries = [entry for entry in listed if entry["folder"] == folder]
        rows = [[_size(entry) if column == "items" else entry[column] for column in columns] for entry in entries]
        packaged = "in gensim, used when no data folder is given"
        console.table(packaged if folder == "gensim" else f"in {folder}", columns, rows)
    if missing:
        wanted = ("name", "task", "items", "published")
        rows = [[entry[column] for column in wanted] for entry in missing]
        console.table("not found, with download sources", wanted, rows)
    console.note("To add a dataset, copy its file to the folder of its task (similarity/, analogy/, ...).")


def _size(each: dict[str, Any]) -> str:
    """Number of items in the file if it was read, else the published number."""
    known = find_known(each["name"], each["task"])
    return f"{each['items']:,}" if each["items"] is not None else known.items.split()[0] if known else "-"
