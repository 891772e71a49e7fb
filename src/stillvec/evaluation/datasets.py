"""Where the items are: a folder of data, or the datasets that the package gensim carries."""

from __future__ import annotations

import importlib.util
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stillvec.errors import DatasetError, MissingExtra, UsageError, suggest
from stillvec.evaluation.task_selection import chosen_tasks
from stillvec.evaluation.tasks import Task
from stillvec.files import uncompressed_name

PACKAGED = {  # task: files in gensim/test/test_data
    "similarity": ("simlex999.txt", "wordsim353.tsv"),
    "analogy": ("questions-words.txt",),
}


@dataclass(frozen=True)
class Dataset:
    task: str
    name: str
    path: Path


@dataclass(frozen=True)
class Place:
    """Where datasets are looked for: a folder of data, or what gensim carries."""

    folder: Path
    packaged: bool = False

    @classmethod
    def of(cls, data: str | os.PathLike[str] | None) -> Place:
        """The folder given; without one $STILLVEC_DATA; without that the packaged datasets."""
        given = data if data is not None else os.environ.get("STILLVEC_DATA") or None
        place = cls.of_package() if given is None else cls(Path(given))
        if not place.folder.is_dir():
            raise UsageError(
                f"The folder of data {place.folder} does not exist; give one that holds similarity/, analogy/, ..."
            )
        return place

    @classmethod
    def of_package(cls) -> Place:
        return cls(_packaged_folder(), True)

    def find(self, name: str, task: Task) -> list[Dataset]:
        """The datasets of one task, each with a name of its own."""
        packaged = [self.folder / file for file in PACKAGED.get(name, ())]
        paths = packaged if self.packaged else task.find(self.folder)
        stems = [Path(uncompressed_name(path)).stem for path in paths]
        n_paths = Counter(stems)
        return [
            Dataset(name, stem if n_paths[stem] == 1 else path.name, path)
            for stem, path in zip(stems, paths, strict=True)
        ]


def datasets(data: str | os.PathLike[str] | None, tasks: Sequence[str] | None) -> list[Dataset]:
    """The datasets of `tasks` in a folder; without one in $STILLVEC_DATA; without that the packaged ones."""
    chosen, _ = chosen_tasks(tasks)
    return find_datasets(data, chosen, named=tasks is not None)


def find_datasets(
    data: str | os.PathLike[str] | None, tasks: Mapping[str, Task], *, named: bool, only: Sequence[str] | None = None
) -> list[Dataset]:
    """The same for tasks with settings; a task that was named must have a file, and each name in `only` a dataset."""
    place = Place.of(data)
    found: list[Dataset] = []
    for name, task in tasks.items():
        some = place.find(name, task)
        if not some and named:
            source = "The packaged datasets have" if place.packaged else f"The folder {place.folder} has"
            raise DatasetError(f"{source} no file for the task {name!r}; name a folder of data that has {name}/.")
        found += some
    if not found:
        folders = ", ".join(f"{name}/" for name in tasks)
        raise DatasetError(f"The folder {place.folder} has no datasets: files are wanted in {folders} inside it.")
    if only is None:
        return found
    names = {dataset.name for dataset in found}
    for name in only:
        if name not in names:
            raise UsageError(f"There is no dataset {name!r} for these tasks; {suggest(name, names)}")
    return [dataset for dataset in found if dataset.name in {*only}]


def _packaged_folder() -> Path:
    """gensim's test data, found without importing gensim, which takes a second."""
    spec = importlib.util.find_spec("gensim")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("gensim", "packaged", "Evaluating without a folder of data")
    return Path(spec.submodule_search_locations[0]) / "test" / "test_data"
