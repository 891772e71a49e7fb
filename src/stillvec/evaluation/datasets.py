"""Where datasets are found: a data folder, or the datasets that ship with gensim."""

from __future__ import annotations

import importlib.util
import os
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from stillvec.errors import DatasetError, MissingExtra, UsageError
from stillvec.evaluation.tasks import Items, Task, task_class
from stillvec.files import atomic_file, cache_folder, inner_name
from stillvec.vectors import WordVectors

_TEST_DATA = Path("test", "test_data")  # in the package gensim
# in it, for the demo: the start of a Wikipedia dump, and news (lee.cor has an invalid byte)
PACKAGED_TEXTS = ("enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2", "lee_background.cor")
# task → files in it
PACKAGED = {"similarity": ("simlex999.txt", "wordsim353.tsv"), "analogy": ("questions-words.txt",)}


@dataclass(frozen=True)
class Dataset:
    task: str
    name: str
    path: Path | None  # None: the items are taken from the vectors

    def read(self, task: Task, sets: Sequence[WordVectors]) -> Items:
        """Its items."""
        return task.choose_items(sets) if self.path is None else task.read(self.path)


@dataclass(frozen=True)
class DatasetSource:
    """A data folder, or the datasets of gensim."""

    folder: Path
    packaged: bool = False

    @classmethod
    def of(cls, data: str | os.PathLike[str] | None) -> DatasetSource:
        """The folder given; by default $STILLVEC_DATA, and without that the packaged datasets."""
        folder = data if data is not None else os.environ.get("STILLVEC_DATA") or None
        source = cls.of_package() if folder is None else cls(Path(folder))
        if not source.folder.is_dir():
            raise UsageError.not_found(source.folder, "a data folder with similarity/, analogy/, ...")
        return source

    @classmethod
    def of_package(cls, purpose: str = "Evaluating without a data folder") -> DatasetSource:
        """gensim's test data: in $STILLVEC_GENSIM, a wheel for any Python or a folder, or where gensim is installed.

        gensim is not imported, which takes a second, and need not support this Python.
        """
        if given := os.environ.get("STILLVEC_GENSIM"):
            return cls(_unpack_test_data(Path(given)), True)
        spec = importlib.util.find_spec("gensim")
        if spec is None or not spec.submodule_search_locations:
            raise MissingExtra("gensim", "packaged", purpose)
        return cls(Path(spec.submodule_search_locations[0]) / _TEST_DATA, True)

    def find(self, name: str, task: Task) -> list[Dataset]:
        """The datasets of one task, each with its own name."""
        packaged = [self.folder / file for file in PACKAGED.get(name, ())]
        paths = packaged if self.packaged else task.find(self.folder)
        stems = [Path(inner_name(path)).stem for path in paths]
        n_paths = Counter(stems)
        names = [stem if n_paths[stem] == 1 else path.name for stem, path in zip(stems, paths, strict=True)]
        return [Dataset(name, *place) for place in zip(names, paths, strict=True)]


def find_datasets(
    data: str | os.PathLike[str] | None, tasks: Mapping[str, Task], *, named: bool, only: Sequence[str] | None = None
) -> list[Dataset]:
    """The datasets of tasks in a folder; by default in $STILLVEC_DATA, and without that the packaged ones.

    A named task must have a file, and each name in `only` a dataset.
    """
    own = [Dataset(name, task.item_source, None) for name, task in tasks.items() if task.item_source]
    datasets: list[Dataset] = []
    tasks = {name: task for name, task in tasks.items() if not task.item_source}
    source = DatasetSource.of(data) if tasks else DatasetSource(Path())
    for name, task in tasks.items():
        of_task = source.find(name, task)
        if not of_task and named:
            raise _no_data(source, [name])
        datasets += of_task
    datasets += own
    if not datasets:
        raise _no_data(source, tasks)
    if only is None:
        return datasets
    names = {dataset.name for dataset in datasets}
    for name in only:
        if name not in names:
            raise UsageError.unknown("dataset", name, names, where="these tasks")
    return [dataset for dataset in datasets if dataset.name in {*only}]


def _unpack_test_data(path: Path) -> Path:
    """The folder of gensim's test data; of a wheel, or the only wheel of a folder, unpacked into the cache."""
    for folder in (path, path / _TEST_DATA, path / "gensim" / _TEST_DATA):
        if (folder / PACKAGED["similarity"][0]).is_file():
            return folder
    wheels = sorted(path.glob("gensim-*.whl")) if path.is_dir() else [path]
    names = [*PACKAGED["similarity"], *PACKAGED["analogy"], *PACKAGED_TEXTS]
    try:
        with zipfile.ZipFile(wheels[0]) as wheel:
            folder = cache_folder() / "gensim" / wheels[0].stem
            folder.mkdir(parents=True, exist_ok=True)
            for name in names:
                member = wheel.getinfo(f"gensim/{_TEST_DATA.as_posix()}/{name}")
                if not (folder / name).is_file() or (folder / name).stat().st_size != member.file_size:
                    with atomic_file(folder / name) as part:
                        part.write_bytes(wheel.read(member))
    except (IndexError, KeyError, OSError, zipfile.BadZipFile) as error:
        what = "a wheel of gensim, or a folder with one"
        raise DatasetError.expected(what, f"another file ({error})", where="$STILLVEC_GENSIM", path=path) from None
    return folder


def _no_data(source: DatasetSource, tasks: Iterable[str]) -> DatasetError:
    names = (next(iter(task_class(name).files), name) for name in tasks)
    folders = ", ".join(f"{name}/" for name in dict.fromkeys(names))
    return DatasetError.expected(f"files in {folders}", "none", path=source.folder, code="no-data")


class KnownDataset(NamedTuple):
    """An entry of `catalog.tsv`, the datasets used in papers; files that are not in it are evaluated as well."""

    names: tuple[str, ...]  # of the file, without its ending
    task: str
    items: str  # as its authors count them
    source: str
    terms: str  # only a licence that we have read is stated
    published: str  # where its authors say how to get it

    @property
    def name(self) -> str:
        return self.names[0]


_LINES = [line.split("\t") for line in files(__package__).joinpath("catalog.tsv").read_text("utf-8").splitlines()[1:]]
KNOWN = tuple(KnownDataset(tuple(names.split()), *fields) for names, *fields in _LINES)


def find_known(name: str, task: str | None = None) -> KnownDataset | None:
    """The entry for the dataset of a file, that of the task if there are several; `stsb.test` is a part of `stsb`."""
    file = f"{name.lower()}."
    items = [item for item in KNOWN if any(file.startswith(f"{known}.") for known in item.names)]
    return next((item for item in items if item.task == task), items[0] if items else None)
