"""The folder of vectors: a matrix, plain (version 1) or packed (2), its words, a manifest and perhaps statistics.

Written down in docs/formats.md. Opening maps the matrix, but for a packed one, which is unpacked, and reads the words;
many words only when one is asked for. Nothing is ever unpickled.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError, UsageError, VocabularyError
from stillvec.files import atomic_folder
from stillvec.formats.format import Format
from stillvec.formats.matrix_compression import PACKINGS, pack, unpack
from stillvec.formats.model_card import CARD, card
from stillvec.formats.tensors import map_tensors, write_tensors
from stillvec.formats.vector_table import LOOKED_AT, check_finite, check_numbers, encode_words
from stillvec.registry import settings_from
from stillvec.subwords import Ngrams, SubwordTable
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

VERSION = 2  # a folder says the lowest version that can say it: 1, or 2 where the matrix is packed
_MANIFEST, _VECTORS, _WORDS, _STATISTICS, _MODEL, _SUBWORDS = (
    "manifest.json", "vectors.safetensors", "vocabulary.tsv", "statistics.safetensors", "model.safetensors",
    "subwords.safetensors",
)  # fmt: skip
_NOT_PARTING = bytes({*range(256)} - {*b"\t\n"})
_AT_ONCE = 1 << 20  # bytes of words read on opening; of a larger file, only how many lines it has


def recognize(path: Path, head: bytes) -> bool:
    return path.is_dir() and (path / _MANIFEST).exists()


def read(path: Path) -> WordVectors:
    manifest = read_manifest(path)
    vocabulary = _read_vocabulary(_part(path, _WORDS), manifest.get("lowercase"))
    file = _part(path, _VECTORS)
    matrix = _read_matrix(file, manifest)
    if matrix.ndim != 2 or matrix.dtype.kind != "f":
        raise FormatError(
            f"{file}: 'matrix' should be a table of floats, and is {matrix.dtype} of shape {matrix.shape}."
        )
    if len(matrix) != len(vocabulary):
        raise FormatError(f"{path}: {_VECTORS} has {len(matrix):,} rows and {_WORDS} {len(vocabulary):,} words.")
    announced = (manifest.get("words", len(matrix)), manifest.get("dim", matrix.shape[1]))
    if announced != matrix.shape:
        raise FormatError(f"{path}: {_VECTORS} is of shape {matrix.shape}, and {_MANIFEST} says {announced}.")
    check_finite(file, vocabulary, matrix)
    return WordVectors(vocabulary, matrix, subwords=_read_subwords(path, manifest, matrix), provenance=manifest)


def write(vectors: WordVectors, path: Path) -> None:
    write_folder(vectors, path, vectors.provenance)


def write_folder(
    vectors: WordVectors,
    path: str | os.PathLike[str],
    manifest: Mapping[str, object],
    statistics: Mapping[str, NDArray[Any]] | None = None,
    model: Mapping[str, NDArray[Any]] | None = None,
    *,
    packed: str | None = None,
) -> None:
    """Write vectors with their manifest, the statistics they were computed from and a trained model, atomically.

    The matrix is packed (int8, pq or sparse; default: as the last refine step allows) if that loses not a bit.
    """
    from stillvec import __version__

    place = Path(path)
    if vectors.matrix.dtype not in (np.float16, np.float32, np.float64):
        raise FormatError(f"{place} was not written: numbers of type {vectors.matrix.dtype} are not kept.")
    check_numbers(vectors, place, vectors.matrix.dtype.type)
    words = encode_words(vectors, place)
    packed = packed or packing_of(manifest)
    arrays = None if packed is None else pack(vectors.matrix, packed)
    facts: dict[str, object] = {
        "format": 1 if arrays is None else VERSION,
        "stillvec": __version__,
        "words": len(vectors),
        "dim": vectors.dim,
        "dtype": vectors.matrix.dtype.name,
        "lowercase": vectors.vocabulary.lowercase,
    }
    history = {key: value for key, value in manifest.items() if key not in ("stored", "subwords")}
    if vectors.subwords is not None:
        facts["subwords"] = asdict(vectors.subwords.ngrams)
    if arrays is not None:
        facts["stored"] = packed
    text = json.dumps({**history, **facts}, indent=2, sort_keys=True, ensure_ascii=False, default=_plain)
    with atomic_folder(place, _MANIFEST) as part:
        write_tensors(part / _VECTORS, arrays or {"matrix": vectors.matrix})
        lines = zip(words, vectors.vocabulary.counts.tolist(), strict=True)
        (part / _WORDS).write_bytes(b"".join([b"%b\t%d\n" % line for line in lines]))
        if statistics is not None:
            write_tensors(part / _STATISTICS, statistics)
        if vectors.subwords is not None:
            write_tensors(part / _SUBWORDS, {"matrix": vectors.subwords.matrix})
        if model:
            write_tensors(part / _MODEL, model)
        (part / _MANIFEST).write_bytes(text.encode() + b"\n")
        (part / CARD).write_bytes(card(json.loads(text)).encode())


def packing_of(manifest: Mapping[str, Any]) -> str | None:
    """The packing (int8, pq or sparse) that the last refine step allows; `subword` leaves the matrix as it was."""
    changed = [step for step in manifest.get("refined") or () if step.get("step") != "subword"]
    packing = changed[-1].get("stored") if changed else manifest.get("stored")
    return packing if packing in PACKINGS else None


def read_manifest(path: str | os.PathLike[str]) -> dict[str, Any]:
    """How the vectors of a folder were made."""
    place = Path(path)
    if not place.is_dir():
        raise FormatError(f"{place} is not a folder of vectors.")
    file = _part(place, _MANIFEST)
    try:
        manifest = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{file} is not JSON ({error}).") from error
    version = manifest.get("format") if isinstance(manifest, dict) else None
    if not isinstance(version, int) or version < 1:
        raise FormatError(f"{file} does not say which version of the format it is ('format': {VERSION}).")
    if version > VERSION:
        raise FormatError(
            f"{file} is of version {version} of the format, written by a newer stillvec, and this one reads "
            f"up to {VERSION}: pip install --upgrade stillvec."
        )
    return dict(manifest)


def read_statistics(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """The sums the vectors were made of, memory-mapped."""
    read_manifest(path)
    file = Path(path) / _STATISTICS
    if not file.exists():
        raise FormatError(f"{path} has no {_STATISTICS}: its method keeps no sums, so it cannot be merged or added to.")
    return map_tensors(file)


def read_model(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """What a method that trains learnt beside the vectors, memory-mapped; nothing for the others."""
    read_manifest(path)
    file = Path(path) / _MODEL
    return map_tensors(file) if file.exists() else {}


def _part(path: Path, name: str) -> Path:
    if not (path / name).is_file():
        raise FormatError(f"The folder {path} has no {name}; it is not a whole folder of vectors.")
    return path / name


def _read_matrix(file: Path, manifest: Mapping[str, Any]) -> NDArray[Any]:
    arrays, kind = map_tensors(file), manifest.get("stored")
    if kind is None:
        if "matrix" not in arrays:
            raise FormatError(f"{file} has no array called 'matrix'.")
        return arrays["matrix"]
    words, dim = manifest.get("words"), manifest.get("dim")
    if str(kind) not in PACKINGS or not isinstance(words, int) or not isinstance(dim, int):
        raise FormatError(f"{file.parent / _MANIFEST}: no packing and shape are known of {kind!r}, {words} x {dim}.")
    try:
        matrix = unpack(arrays, kind, (words, dim))
    except MemoryError:
        raise FormatError(f"{file} says {words:,} x {dim:,} numbers, which this machine cannot hold.") from None
    if matrix is None:
        raise FormatError(f"{file} does not hold the arrays of {words} x {dim} numbers packed as {kind!r}.")
    return matrix


def _read_subwords(path: Path, manifest: Mapping[str, Any], words: NDArray[Any]) -> SubwordTable | None:
    told = manifest.get("subwords")
    if told is None:
        return None
    file = _part(path, _SUBWORDS)
    matrix = map_tensors(file).get("matrix")
    try:
        ngrams = settings_from(Ngrams, told if isinstance(told, dict) else {"subwords": told}, _MANIFEST)
    except UsageError as error:
        raise FormatError(f"{path / _MANIFEST} describes no n-grams: {error}") from None
    dim = words.shape[1]
    if matrix is None or matrix.shape != (ngrams.buckets, dim) or matrix.dtype.kind != "f":
        came = None if matrix is None else f"{matrix.dtype} {matrix.shape}"
        raise FormatError(f"{file}: 'matrix' should be {ngrams.buckets:,} x {dim} floats, and is {came}.")
    if not np.isfinite(matrix[:: max(1, matrix.size // LOOKED_AT)]).all():
        raise FormatError(f"{file} holds a number that is not finite.")
    return SubwordTable(ngrams, matrix)


class _Unread(Vocabulary):
    """The words of a large file as it was when it was opened, looked at when the first is asked for."""

    def __init__(self, file: Path, raw: bytes, lowercase: bool) -> None:
        self.lowercase = lowercase
        self._file, self._raw, self._size = file, raw, raw.count(b"\n")

    def __len__(self) -> int:
        return self._size

    def __getattr__(self, name: str) -> Any:
        if name not in ("words", "counts"):  # and only as long as they are not there
            raise AttributeError(f"A vocabulary has no {name!r}.")
        if raw := self._raw:  # else another thread was first
            read = _vocabulary(self._file, raw, self.lowercase)
            self.words, self.counts, self.__dict__["index"] = read.words, read.counts, read.index
            self._raw = b""
        return self.__dict__[name]


def _read_vocabulary(file: Path, lowercase: bool | None) -> Vocabulary:
    raw = file.read_bytes()
    if raw and not raw.endswith(b"\n"):
        last = raw.count(b"\n") + 1
        raise FormatError(f"{file}:{last}: the last line does not end; the file is cut short.")
    if len(raw) > _AT_ONCE and lowercase is not None:
        return _Unread(file, raw, lowercase)
    return _vocabulary(file, raw, lowercase)


def _vocabulary(file: Path, raw: bytes, lowercase: bool | None) -> Vocabulary:
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"{file} is not UTF-8 ({error}).") from error
    fields = text[:-1].replace("\n", "\t").split("\t") if raw else []
    words, counts = fields[::2], fields[1::2]
    whole = raw.translate(None, _NOT_PARTING) == b"\t\n" * len(words)
    if not whole or "" in words or not all(map(str.isdecimal, counts)):
        _name_bad_line(file, text)
    try:
        return Vocabulary(words, map(int, counts), lowercase=lowercase)
    except (ValueError, OverflowError):
        raise FormatError(f"{file}: a count is larger than 64 bits hold; the file is damaged.") from None
    except VocabularyError:
        first: dict[str, int] = {}
        row = next(row for row, word in enumerate(words) if first.setdefault(word, row) != row)
        before = f"{file}:{first[words[row]] + 1}"
        raise FormatError(f"{file}:{row + 1}: the word {words[row]!r} came before, at {before}.") from None


def _name_bad_line(file: Path, text: str) -> NoReturn:
    lines = [line.split("\t") for line in text.split("\n")]
    bad = (i for i, line in enumerate(lines) if len(line) != 2 or not line[0] or not line[1].isdecimal())
    row = next(bad)
    line = "\t".join(lines[row])
    raise FormatError(f"{file}:{row + 1}: a word, a tab and a count are wanted, and the line is {line!r}.")


def _plain(value: object) -> object:
    """What JSON does not know: numbers and arrays of numpy, and anything else by its text."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else str(value)


FORMAT = Format(recognize, read, write, ("",))
