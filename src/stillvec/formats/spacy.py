"""A spaCy pipeline for `spacy.load(folder)`: the multi-language tokenizer ("xx") and the vectors.

The table, the rows of hashed words and the words are read directly, without the reader of spaCy.
"""

import json
import struct
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from stillvec.errors import FormatError
from stillvec.files import atomic_folder
from stillvec.formats.format import Format, contains_files, damage_error, read_json, require_files
from stillvec.formats.npy import map_table
from stillvec.formats.vector_table import assemble, encode_words, find_storable
from stillvec.registry import require
from stillvec.vectors import WordVectors

_TABLE, _KEYS, _STRINGS, _SETTINGS = "vocab/vectors", "vocab/key2row", "vocab/strings.json", "vocab/vectors.cfg"
_INTEGERS = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}  # msgpack


def read(path: Path) -> WordVectors:
    strings, attrs = (require(f"spacy.{name}", "spacy", "Reading spaCy") for name in ("strings", "attrs"))
    require_files(path, (_TABLE, _KEYS, _STRINGS), "spaCy pipeline with vectors")
    settings = read_json(path / _SETTINGS) if (path / _SETTINGS).is_file() else {}
    if not isinstance(settings, dict) or settings.get("mode", "default") != "default":
        raise FormatError.expected("word vectors", "a table of n-grams (floret)", path=path, code="floret")
    table = map_table(path / _TABLE, path / _TABLE)
    pairs = sorted(_read_rows(path / _KEYS), key=lambda pair: pair[1])
    if pairs and (table.ndim != 2 or not 0 <= pairs[0][1] <= pairs[-1][1] < len(table)):
        got = f"rows {pairs[0][1]} to {pairs[-1][1]}"
        raise FormatError.expected(f"rows of {_TABLE}, which has shape {table.shape}", got, path=path / _KEYS)
    rows = np.array([row for _, row in pairs], np.int64)
    words = _find_words(path / _STRINGS, strings.StringStore(), [key for key, _ in pairs])
    storable = find_storable(path, words)
    words, rows = [*compress(words, storable)], rows[storable]
    matrix = table if np.array_equal(rows, np.arange(len(table))) else table[rows]  # words may share rows
    return assemble(path, words, matrix, lowercase=settings.get("attr") == attrs.LOWER or None)


def write(vectors: WordVectors, path: Path) -> None:
    names = ("spacy", "spacy.vectors", "spacy.attrs")
    spacy, tables, attrs = (require(name, "spacy", "Writing spaCy") for name in names)
    encode_words(vectors, path)
    pipeline = spacy.blank("xx")
    strings, matrix = pipeline.vocab.strings, np.array(vectors.matrix, np.float32)
    for word in vectors.words:
        strings.add(word)
    pipeline.vocab.vectors = tables.Vectors(strings=strings, data=matrix, keys=[*vectors.words], name="stillvec")
    attribute = attrs.LOWER if vectors.vocabulary.lowercase else attrs.ORTH
    with atomic_folder(path, "meta.json") as part:
        pipeline.to_disk(part)
        # spaCy reads the attribute to look up, "ice" for "Ice", but writes it only for floret
        (part / _SETTINGS).write_text(json.dumps({"mode": "default", "attr": int(attribute)}) + "\n")


def _read_rows(file: Path) -> list[tuple[int, int]]:
    """The (hash, row) pairs of a msgpack map of integers."""
    raw = file.read_bytes()
    try:
        size, position = _parse_size(raw)
        numbers = []
        for _ in range(2 * size):
            kind = raw[position]
            form = _INTEGERS.get(kind)
            numbers.append(kind if form is None else struct.unpack_from(form, raw, position + 1)[0])
            position += 1 if form is None else 1 + struct.calcsize(form)
            if form is None and kind > 0x7F:
                raise ValueError(f"the byte {kind:#x} does not start an integer")
        if position != len(raw):
            raise ValueError(f"{len(raw) - position} bytes are left")
    except (ValueError, IndexError, struct.error) as error:
        raise damage_error(file, "a map of hashes to rows", error) from None
    return [*zip(numbers[::2], numbers[1::2], strict=True)]


def _parse_size(raw: bytes) -> tuple[int, int]:
    """The number of pairs in a msgpack map, and the position of the first."""
    if raw[0] & 0xF0 == 0x80:
        return raw[0] & 0x0F, 1
    forms = {0xDE: (">H", 3), 0xDF: (">I", 5)}
    if raw[0] not in forms:
        raise ValueError(f"the byte {raw[0]:#x} does not start a map")
    form, start = forms[raw[0]]
    return int(struct.unpack_from(form, raw, 1)[0]), start


def _find_words(file: Path, store: Any, keys: list[int]) -> list[str]:
    """The words whose hashes are `keys`."""
    words = read_json(file)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise FormatError.expected("a list of words", type(words).__name__, path=file)
    try:
        for word in words:
            store.add(word)
        return [store[key] for key in keys]
    except (KeyError, ValueError, OverflowError) as error:
        raise damage_error(file, "every word that has a vector", error) from None


FORMAT = Format(contains_files(_TABLE, _KEYS), read, write)
