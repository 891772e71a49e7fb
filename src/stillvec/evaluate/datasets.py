"""Where the items are: a folder of data, or the datasets that the package gensim carries."""

from __future__ import annotations

import importlib.util
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stillvec.errors import CallError, DatasetError, MissingExtra
from stillvec.evaluate.tasks import TASKS

PACKAGED = {  # task: files in gensim/test/test_data
    "similarity": ("simlex999.txt", "wordsim353.tsv"),
    "analogy": ("questions-words.txt",),
}


@dataclass(frozen=True)
class Dataset:
    task: str
    name: str
    path: Path


def datasets(data: str | os.PathLike[str] | None, tasks: Sequence[str] | None) -> list[Dataset]:
    """The datasets of `tasks` in a folder; without one in $STILLVEC_DATA; without that the packaged ones."""
    asked = [*TASKS] if tasks is None else [*dict.fromkeys(tasks)]
    kinds = {task: TASKS[task]() for task in asked}  # a wrong name is told before anything is looked for
    place = data if data is not None else os.environ.get("STILLVEC_DATA") or None
    folder = _packaged_folder() if place is None else Path(place)
    if not folder.is_dir():
        raise CallError(f"The folder of data {folder} does not exist; give one that holds similarity/, analogy/, ...")
    found: list[Dataset] = []
    for task, kind in kinds.items():
        paths = kind.find(folder) if place is not None else [folder / name for name in PACKAGED.get(task, ())]
        if not paths and tasks is not None:
            source = f"The folder {folder} has" if place is not None else "The packaged datasets have"
            raise DatasetError(f"{source} no file for the task {task!r}; name a folder of data that has {task}/.")
        stems = Counter(path.stem for path in paths)
        found += [Dataset(task, path.stem if stems[path.stem] == 1 else path.name, path) for path in paths]
    if not found:
        folders = ", ".join(f"{task}/" for task in asked)
        raise DatasetError(f"The folder {folder} has no datasets: files are wanted in {folders} inside it.")
    return found


def _packaged_folder() -> Path:
    """gensim's test data, found without importing gensim, which takes a second."""
    spec = importlib.util.find_spec("gensim")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("gensim", "packaged", "Evaluating without a folder of data")
    return Path(spec.submodule_search_locations[0]) / "test" / "test_data"
