"""Answers on disk, so that a second evaluation of the same vectors is instant: one `.npz` per set and dataset.

Its name is a digest of everything that determines the answers: the vectors (matrix, words, counts), the files of the
dataset, the task and its settings, the policy for OOV words, and the code: our version and those of the libraries that
compute, in a checkout also our source files. Statistics are recomputed from the answers; a report with the same
settings is stored whole, as `.json`. Nothing is unpickled, and removing a file only costs time.
"""

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import BinaryIO

import numpy as np

from stillvec import __version__
from stillvec.errors import StillvecWarning
from stillvec.evaluation.evaluation_report import Report
from stillvec.evaluation.tasks import Answers, Task
from stillvec.files import digest, file_digest
from stillvec.files.private_files import private_file

_LIBRARIES = ("numpy", "scipy", "torch", "transformers", "tokenizers", "model2vec")  # those that compute answers


@dataclass(frozen=True)
class AnswerCache:
    """A folder of answers; None stores nothing."""

    folder: Path | None

    def get(self, key: Mapping[str, object]) -> Answers | None:
        """The answers of a key, if they are stored and intact."""
        if self.folder is None:
            return None
        try:
            with open(self._path(key), "rb") as stream, np.load(stream, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            covered = arrays.pop("covered")
            return Answers(covered, {name.removeprefix("values:"): array for name, array in arrays.items()})
        except Exception:  # a damaged archive fails in many ways, and only costs time
            return None

    def put(self, key: Mapping[str, object], answers: Answers) -> None:
        """Store answers; where that fails, the work continues without."""
        arrays = {"covered": answers.covered} | {f"values:{name}": array for name, array in answers.values.items()}
        if not any(array.dtype.hasobject for array in arrays.values()):
            self._write(key, ".npz", lambda stream: np.savez_compressed(stream, **arrays))

    def get_report(self, key: Mapping[str, object]) -> Report | None:
        """A whole report, if everything that determines it is unchanged."""
        if self.folder is None:
            return None
        try:
            stored = json.loads(self._path(key, ".json").read_bytes())
            return Report.loads(stored["report"]) if stored["digest"] == _digest_text(stored["report"]) else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def put_report(self, key: Mapping[str, object], report: Report) -> None:
        text = report.dumps()
        stored = json.dumps({"digest": _digest_text(text), "report": text})
        self._write(key, ".json", lambda stream: stream.write(stored.encode()))

    def _write(self, key: Mapping[str, object], ending: str, write: Callable[[BinaryIO], object]) -> None:
        if self.folder is None:
            return
        try:
            with private_file(self._path(key, ending), sync=False) as part, part.open("wb") as stream:
                write(stream)
        except OSError as error:
            message = f"Answers are not cached: cannot write to {self.folder} ({error.strerror})."
            warnings.warn(message, StillvecWarning, stacklevel=3)

    def _path(self, key: Mapping[str, object], ending: str = ".npz") -> Path:
        assert self.folder is not None
        text = json.dumps({"code": code_identity(), **key}, sort_keys=True, default=str)
        return self.folder / f"{_digest_text(text)}{ending}"


def digest_data(task: Task, path: Path | None) -> str:
    """A digest of all files that the answers of a task to a dataset depend on."""
    files = () if path is None else (path, *task.other_data(path))
    return " ".join(map(digest_files, (*files, *task.own_data())))


def digest_files(path: Path) -> str:
    """A digest of a dataset: its file and the other parts of it (`sst5.train.txt`), or a whole folder."""
    if path.is_dir():
        return digest_folder(path)
    stem = path.name.partition(".")[0]
    files = sorted(file for file in path.parent.iterdir() if file.name.partition(".")[0] == stem and file.is_file())
    return digest(f"{file.name} {file_digest(file)}\n".encode() for file in [path, *files])


def digest_folder(folder: Path, pattern: str = "*") -> str:
    """A digest of all files of a folder and its subfolders."""
    files = sorted(file for file in folder.rglob(pattern) if file.is_file())
    return digest(f"{file.relative_to(folder)} {file_digest(file)}\n".encode() for file in files)


@cache
def code_identity(package: Path = Path(__file__).parent.parent) -> str:
    """What the answers depend on besides the inputs: our version, those of the libraries, our source in a checkout."""
    versions = {"stillvec": __version__}
    for library in _LIBRARIES:
        try:
            versions[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            versions[library] = ""
    if (package.parent.parent / "pyproject.toml").is_file():  # a checkout changes without a new version
        versions["source"] = digest_folder(package, "*.py")
    return json.dumps(versions)


def _digest_text(text: str) -> str:
    return digest(iter([text.encode()]))
