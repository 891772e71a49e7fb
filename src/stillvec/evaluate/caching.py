"""Answers on disk, so that a second evaluation of the same vectors is instant: one `.npz` a set and dataset.

Its name is a digest of all that decides the answers: the vectors (matrix, words, counts), the files of the dataset, the
task and its settings, the policy for unknown words, and our own code. Scores, intervals and comparisons are made anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from stillvec.errors import StillvecWarning
from stillvec.evaluate.tasks import Answers
from stillvec.files import atomic_file, digest, file_digest
from stillvec.vectors import WordVectors

_CHUNK = 1 << 24  # bytes hashed at once by one thread
_CODE = ("evaluate/*.py", "vectors.py", "vocabulary/*.py", "combine/rotating.py", "teachers/*.py", "encoding/*.py")


@dataclass(frozen=True)
class Cache:
    """A folder of answers; None keeps nothing."""

    folder: Path | None

    def get(self, facts: Mapping[str, object]) -> Answers | None:
        """The answers of these facts, if they are there and whole."""
        if self.folder is None:
            return None
        try:
            with np.load(self._place(facts), allow_pickle=False) as held:
                return _answers({name: held[name] for name in held.files})
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
            return None

    def put(self, facts: Mapping[str, object], answers: Answers) -> None:
        """Keep answers; where that cannot be, the work goes on without."""
        arrays = dict(_arrays(answers))
        if self.folder is None or any(array.dtype.hasobject for array in arrays.values()):
            return
        try:
            with atomic_file(self._place(facts)) as part, part.open("wb") as stream:
                np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
        except OSError as error:
            told = f"Answers are not kept: {self.folder} cannot be written ({error.strerror})."
            warnings.warn(told, StillvecWarning, stacklevel=2)

    def _place(self, facts: Mapping[str, object]) -> Path:
        assert self.folder is not None
        text = json.dumps({"code": _code(), **facts}, sort_keys=True, default=str)
        return self.folder / f"{digest(iter([text.encode()]))}.npz"


def vectors_digest(vectors: WordVectors) -> str:
    """One name for a matrix, its words and their counts; hashing is as fast as two cores read."""
    matrix, vocabulary = vectors.matrix, vectors.vocabulary
    rows = max(1, _CHUNK // max(1, matrix.itemsize * vectors.dim))
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        blocks = (matrix[start : start + rows] for start in range(0, len(matrix), rows))
        parts = [*pool.map(lambda block: hashlib.blake2b(np.ascontiguousarray(block).data).digest(), blocks)]
    facts = f"{matrix.dtype} {matrix.shape} {rows} {vocabulary.lowercase}"
    words = "\n".join(vocabulary.words)
    return digest(iter([facts.encode(), *parts, words.encode(), np.ascontiguousarray(vocabulary.counts).tobytes()]))


def files_digest(path: Path) -> str:
    """One name for a dataset: its file and those that are other parts of it (`sst5.train.txt`), or a whole folder."""
    beside = path.rglob("*") if path.is_dir() else path.parent.glob("*")
    stem = path.name.partition(".")[0]
    files = [each for each in beside if each.is_file() and (path.is_dir() or each.name.partition(".")[0] == stem)]
    told = [f"{each.name} {file_digest(each)}" for each in sorted(files)]
    return digest(iter([path.name.encode(), *(line.encode() for line in told)]))


def settings_of(task: object) -> dict[str, Any]:
    return asdict(task) if is_dataclass(task) and not isinstance(task, type) else {}


@cache
def _code() -> str:
    """What we are, by the text of every file that has a say in an answer."""
    room = Path(__file__).parent.parent
    return digest(file.read_bytes() for pattern in _CODE for file in sorted(room.glob(pattern)))


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
