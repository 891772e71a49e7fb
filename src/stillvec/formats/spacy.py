"""A pipeline of spaCy, for `spacy.load(folder)`: the tokenizer of no one language ("xx") and the vectors, nothing else.

Read are the table, the rows of hashed words and the words themselves, by hand: spaCy's own reader is not asked.
"""

from __future__ import annotations

import json
import struct
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from stillvec.errors import FormatError
from stillvec.files import atomic_folder
from stillvec.formats.format import Format
from stillvec.formats.npy import map_table
from stillvec.formats.vector_table import assemble, check_numbers, encode_words, storable
from stillvec.registry import require
from stillvec.vectors import WordVectors

_TABLE, _KEYS, _STRINGS, _SETTINGS = "vocab/vectors", "vocab/key2row", "vocab/strings.json", "vocab/vectors.cfg"
_WHOLE = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}  # msgpack


def recognize(path: Path, head: bytes) -> bool:
    return (path / _TABLE).is_file() and (path / _KEYS).is_file()


def read(path: Path) -> WordVectors:
    strings, attrs = (require(f"spacy.{name}", "spacy", "Reading a pipeline of spaCy") for name in ("strings", "attrs"))
    for name in (_TABLE, _KEYS, _STRINGS):
        if not (path / name).is_file():
            raise FormatError(f"{path} has no {name}; it is no pipeline of spaCy with vectors.")
    settings = _json(path / _SETTINGS) if (path / _SETTINGS).is_file() else {}
    if not isinstance(settings, dict) or settings.get("mode", "default") != "default":
        raise FormatError(f"{path} holds floret vectors, a table of hashed n-grams and none of words.")
    table = map_table(path / _TABLE, path / _TABLE)
    pairs = sorted(_key_rows(path / _KEYS), key=lambda pair: pair[1])
    if pairs and pairs[-1][1] >= 1 << 63:
        raise FormatError(f"{path / _KEYS} tells of row {pairs[-1][1]}, and {_TABLE} is of shape {table.shape}.")
    rows = np.array([row for _, row in pairs], np.int64)
    if len(rows) and (table.ndim != 2 or not 0 <= rows[0] <= rows[-1] < len(table)):
        raise FormatError(
            f"{path / _KEYS} tells of rows {rows[0]} to {rows[-1]}, and {_TABLE} is of shape {table.shape}."
        )
    words = _words(path / _STRINGS, strings.StringStore(), [key for key, _ in pairs])
    good = storable(path, words)
    words, rows = [*compress(words, good)], rows[good]
    matrix = table if np.array_equal(rows, np.arange(len(table))) else table[rows]  # rows may be shared
    return assemble(path, words, matrix, lowercase=settings.get("attr") == attrs.LOWER or None)


def write(vectors: WordVectors, path: Path) -> None:
    spacy, tables, attrs = (
        require(name, "spacy", "Writing a pipeline of spaCy") for name in ("spacy", "spacy.vectors", "spacy.attrs")
    )
    check_numbers(vectors, path, np.float32)
    encode_words(vectors, path)
    pipeline = spacy.blank("xx")
    for word in vectors.words:
        pipeline.vocab.strings.add(word)
    matrix = np.array(vectors.matrix, np.float32)
    pipeline.vocab.vectors = tables.Vectors(
        strings=pipeline.vocab.strings, data=matrix, keys=[*vectors.words], name="stillvec"
    )
    attribute = attrs.LOWER if vectors.vocabulary.lowercase else attrs.ORTH
    with atomic_folder(path, "meta.json") as part:
        pipeline.to_disk(part)
        # spaCy reads the attribute whose text is looked up, "ice" for "Ice", but writes it for floret only
        (part / _SETTINGS).write_text(json.dumps({"mode": "default", "attr": int(attribute)}) + "\n")


def _key_rows(file: Path) -> list[tuple[int, int]]:
    """The pairs of a map from whole numbers to whole numbers in msgpack."""
    raw = file.read_bytes()
    try:
        size, place = _size(raw)
        numbers = []
        for _ in range(2 * size):
            kind = raw[place]
            form = _WHOLE.get(kind)
            numbers.append(kind if form is None else struct.unpack_from(form, raw, place + 1)[0])
            place += 1 if form is None else 1 + struct.calcsize(form)
            if form is None and kind > 0x7F:
                raise ValueError(f"the byte {kind:#x} begins no whole number")
        if place != len(raw):
            raise ValueError(f"{len(raw) - place} bytes are left")
    except (ValueError, IndexError, struct.error) as error:
        raise FormatError(f"{file} is cut short or no map of hashes to rows ({error}).") from error
    return [*zip(numbers[::2], numbers[1::2], strict=True)]


def _size(raw: bytes) -> tuple[int, int]:
    """How many pairs a map of msgpack has, and where the first begins."""
    if raw[0] & 0xF0 == 0x80:
        return raw[0] & 0x0F, 1
    forms = {0xDE: (">H", 3), 0xDF: (">I", 5)}
    if raw[0] not in forms:
        raise ValueError(f"the byte {raw[0]:#x} begins no map")
    form, begin = forms[raw[0]]
    return int(struct.unpack_from(form, raw, 1)[0]), begin


def _words(file: Path, store: Any, keys: list[int]) -> list[str]:
    """The words whose hashes are `keys`."""
    told = _json(file)
    if not isinstance(told, list) or not all(isinstance(word, str) for word in told):
        raise FormatError(f"{file} should be a list of words.")
    try:
        for word in told:
            store.add(word)
        return [store[key] for key in keys]
    except (KeyError, ValueError, OverflowError) as error:
        raise FormatError(f"{file} lacks a word that has a vector, or has one that is no text.") from error


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{file} is not JSON ({error}).") from error


FORMAT = Format(recognize, read, write)
