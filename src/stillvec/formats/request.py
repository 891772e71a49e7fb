"""Results that are asked for again: digests of what decides a result are in its manifest, under `request`."""

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from stillvec import __version__
from stillvec.errors import AlreadyFinished
from stillvec.files import FolderLayout, check_replaceable, digest, exists_error, file_digest, read_object
from stillvec.formats.stillvec_folder import LAYOUT, read
from stillvec.vectors import WordVectors
from stillvec.vocabulary.segmenters import SPACES

_CHUNK_BYTES = 1 << 24  # hashed at once by one thread
_FINISHED = "{} is already finished, with the same settings and inputs: {}; --force (force=True) makes it again."


@dataclass(frozen=True)
class Request:
    """What decides a result: settings, and digests of the inputs, which are computed only if they are needed."""

    verb: str
    settings: Mapping[str, Any]
    read_inputs: Callable[[], Mapping[str, str]]
    layout: FolderLayout = LAYOUT  # of the result; its first file is the manifest

    @cached_property
    def settings_digest(self) -> str:
        return digest_json({"verb": self.verb, "stillvec": __version__, **self.settings})

    @cached_property
    def inputs(self) -> dict[str, str]:
        return {**self.read_inputs()}

    def to_manifest(self) -> dict[str, Any]:
        return {"settings": self.settings_digest, "inputs": self.inputs}

    def has_settings_of(self, folder: str | os.PathLike[str]) -> bool:
        """Whether a folder was made with these settings, perhaps from other inputs."""
        return self._read(folder).get("settings") == self.settings_digest

    def check(self, folder: str | os.PathLike[str], *, force: bool = False) -> bool:
        """Whether a folder has the result of this request; raises an error if it has another, except with `force`."""
        if not force and self.has_settings_of(folder):
            stored = self._read(folder).get("inputs")
            if stored == self.inputs:
                return True
            known = stored if isinstance(stored, dict) else {}
            changed = [name for name in {**known, **self.inputs} if known.get(name) != self.inputs.get(name)]
            raise exists_error(folder, self.layout.describe(Path(folder)), f"with another {' and '.join(changed)}")
        check_replaceable(folder, self.layout, force=force)
        return False

    def _read(self, folder: str | os.PathLike[str]) -> dict[str, Any]:
        """What decided the result in a folder; empty if that is not known."""
        request = read_object(Path(folder) / self.layout.names[0]).get("request")
        return request if isinstance(request, dict) else {}


def load_finished(folder: str | os.PathLike[str]) -> WordVectors:
    """The vectors of a finished folder, with a warning that nothing was computed."""
    warn_finished(folder, LAYOUT.describe(Path(folder)))
    return read(Path(folder))


def warn_finished(path: str | os.PathLike[str], what: str) -> None:
    warnings.warn(AlreadyFinished(_FINISHED.format(os.fspath(path), what), path), stacklevel=3)


def digest_json(value: object) -> str:
    return digest(iter([json.dumps(value, sort_keys=True, default=str).encode()]))


def digest_setting_files(settings: Mapping[str, Any]) -> dict[str, str]:
    """Digests of the files that settings name."""
    paths = {name: Path(value) for name, value in settings.items() if isinstance(value, str | Path) and str(value)}
    for name, value in settings.items():
        listed = [each for each in value if isinstance(each, Path)] if isinstance(value, tuple) else []
        paths |= {f"{name} {number}": each for number, each in enumerate(listed, 1)}
    return {name: file_digest(path) for name, path in paths.items() if path.is_file()}


def digest_vectors(vectors: WordVectors) -> str:
    """A digest of a matrix, its words, their counts, n-grams and contained weights; hashed by several threads."""
    matrix, vocabulary = vectors.matrix, vectors.vocabulary
    n_rows = max(1, _CHUNK_BYTES // max(1, matrix.itemsize * vectors.dim))
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        blocks = (matrix[start : start + n_rows] for start in range(0, len(matrix), n_rows))
        parts = [*pool.map(lambda block: hashlib.blake2b(np.ascontiguousarray(block).data).digest(), blocks)]
    header = f"{matrix.dtype} {matrix.shape} {n_rows} {vocabulary.lowercase}"
    if vocabulary.segmenter != SPACES:
        header += f" {vocabulary.segmenter}"
    if (table := vectors.subwords) is not None:
        header += f" {table.ngrams} {hashlib.blake2b(np.ascontiguousarray(table.matrix).data).hexdigest()}"
    if contained := vectors.find_smoothing():  # texts are encoded by it
        header += f" {contained}"
    if vectors.contexts is not None:
        header += f" {hashlib.blake2b(np.ascontiguousarray(vectors.contexts.matrix).data).hexdigest()}"
    words = "\n".join(vocabulary.words)
    return digest(iter([header.encode(), *parts, words.encode(), np.ascontiguousarray(vocabulary.counts).tobytes()]))
