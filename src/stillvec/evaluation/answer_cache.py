"""Answers on disk, so that a second evaluation of the same vectors is instant: one `.npz` a set and dataset.

Its name is a digest of all that decides the answers: the vectors (matrix, words, counts), the files of the dataset, the
task and its settings, the policy for unknown words, and our own code. Other statistics are made of the same answers; a
report with the same ones too is kept whole, as `.json`. Nothing is unpickled, and removing a file only costs time.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from stillvec.errors import StillvecWarning
from stillvec.evaluation.evaluation_report import Report
from stillvec.evaluation.tasks import Answers
from stillvec.files import atomic_file, digest, file_digest
from stillvec.vectors import WordVectors

_CHUNK = 1 << 24  # bytes hashed at once by one thread
_CODE = (
    "evaluate/*.py",
    "vectors.py",
    "subwords.py",
    "vocabulary/*.py",
    "combination/rotation.py",
    "teachers/*.py",
    "encoding/*.py",
)


@dataclass(frozen=True)
class Cache:
    """A folder of answers; None keeps nothing."""

    folder: Path | None

    def get(self, facts: Mapping[str, object]) -> Answers | None:
        """The answers of these facts, if they are there and whole."""
        if self.folder is None:
            return None
        try:
            with open(self._place(facts), "rb") as stream, np.load(stream, allow_pickle=False) as held:
                return _answers({name: held[name] for name in held.files})
        except Exception:  # a damaged archive fails in as many ways as it has bytes, and only costs time
            return None

    def report(self, facts: Mapping[str, object]) -> Report | None:
        """A whole report, if all that decides it is as it was."""
        if self.folder is None:
            return None
        try:
            kept = json.loads(self._place(facts, ".json").read_bytes())
            return Report.loads(kept["report"]) if kept["digest"] == _checksum(kept["report"]) else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def put_report(self, facts: Mapping[str, object], report: Report) -> None:
        text = report.dumps()
        kept = json.dumps({"digest": _checksum(text), "report": text})
        self._write(facts, ".json", lambda stream: stream.write(kept.encode()))

    def put(self, facts: Mapping[str, object], answers: Answers) -> None:
        """Keep answers; where that cannot be, the work goes on without."""
        arrays = dict(_arrays(answers))
        if not any(array.dtype.hasobject for array in arrays.values()):
            self._write(facts, ".npz", lambda stream: np.savez_compressed(stream, **arrays))  # type: ignore[arg-type]

    def _write(self, facts: Mapping[str, object], ending: str, write: Callable[[BinaryIO], object]) -> None:
        if self.folder is None:
            return
        try:
            with atomic_file(self._place(facts, ending)) as part, part.open("wb") as stream:
                write(stream)
        except OSError as error:
            told = f"Answers are not kept: {self.folder} cannot be written ({error.strerror})."
            warnings.warn(told, StillvecWarning, stacklevel=3)

    def _place(self, facts: Mapping[str, object], ending: str = ".npz") -> Path:
        assert self.folder is not None
        text = json.dumps({"code": _code(), **facts}, sort_keys=True, default=str)
        return self.folder / f"{digest(iter([text.encode()]))}{ending}"


def vectors_digest(vectors: WordVectors) -> str:
    """One name for a matrix, its words, their counts and n-grams; hashing is as fast as two cores read."""
    matrix, vocabulary = vectors.matrix, vectors.vocabulary
    rows = max(1, _CHUNK // max(1, matrix.itemsize * vectors.dim))
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        blocks = (matrix[start : start + rows] for start in range(0, len(matrix), rows))
        parts = [*pool.map(lambda block: hashlib.blake2b(np.ascontiguousarray(block).data).digest(), blocks)]
    facts = f"{matrix.dtype} {matrix.shape} {rows} {vocabulary.lowercase}"
    if (table := vectors.subwords) is not None:
        facts += f" {table.ngrams} {hashlib.blake2b(np.ascontiguousarray(table.matrix).data).hexdigest()}"
    words = "\n".join(vocabulary.words)
    return digest(iter([facts.encode(), *parts, words.encode(), np.ascontiguousarray(vocabulary.counts).tobytes()]))


def files_digest(path: Path) -> str:
    """One name for a dataset: its file and those that are other parts of it (`sst5.train.txt`), or a whole folder."""
    if path.is_dir():
        return folder_digest(path)
    stem = path.name.partition(".")[0]
    files = sorted(each for each in path.parent.iterdir() if each.name.partition(".")[0] == stem and each.is_file())
    return digest(f"{each.name} {file_digest(each)}\n".encode() for each in [path, *files])


def folder_digest(folder: Path) -> str:
    """One name for all files of a folder, as deep as it goes."""
    files = sorted(each for each in folder.rglob("*") if each.is_file())
    return digest(f"{each.relative_to(folder)} {file_digest(each)}\n".encode() for each in files)


def settings_of(task: object) -> dict[str, Any]:
    return asdict(task) if is_dataclass(task) and not isinstance(task, type) else {}


def _checksum(text: str) -> str:
    """Tells a report that was damaged since."""
    return digest(iter([text.encode()]))


@cache
def _code() -> str:
    """What we are, by the text of every file that has a say in an answer."""
    room = Path(__file__).parent.parent
    files = (file for pattern in _CODE for file in sorted(room.glob(pattern)))
    return digest(file.read_bytes() for file in files if file.name != "known.py")  # which only tells about datasets


def _arrays(answers: Answers) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    for field in fields(answers):
        value = getattr(answers, field.name)
        if isinstance(value, Mapping):
            yield from ((f"{field.name}:{key}", np.asarray(each)) for key, each in value.items())
        elif value is not None:
            yield field.name, np.asarray(value)


def _answers(arrays: Mapping[str, np.ndarray[Any, Any]]) -> Answers:
    found: dict[str, Any] = {"values": {}}
    for name, array in arrays.items():
        field, colon, key = name.partition(":")
        if colon:
            found.setdefault(field, {})[key] = array
        else:
            found[field] = array
    return Answers(**found)
