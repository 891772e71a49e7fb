"""A spaCy pipeline for `spacy.load(folder)`: the multi-language tokenizer ("xx") and the vectors.

The table, the rows of hashed words and the words are read directly, without the reader of spaCy.
"""

import json
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from stillvec.errors import FormatError
from stillvec.files import FolderLayout, atomic_folder, read_object
from stillvec.formats.format import Format, contains_files, damage_error, read_json, require_files
from stillvec.formats.npy import map_table
from stillvec.formats.vector_table import assemble, encode_words, find_storable
from stillvec.registry import require
from stillvec.vectors import WordVectors

_TABLE, _KEYS, _STRINGS, _SETTINGS = "vocab/vectors", "vocab/key2row", "vocab/strings.json", "vocab/vectors.cfg"
_META, _NAME = "meta.json", "stillvec"


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
    pipeline.vocab.vectors = tables.Vectors(strings=strings, data=matrix, keys=[*vectors.words], name=_NAME)
    attribute = attrs.LOWER if vectors.vocabulary.lowercase else attrs.ORTH
    with atomic_folder(path, _LAYOUT) as part:
        pipeline.to_disk(part)
        # spaCy reads the attribute to look up, "ice" for "Ice", but writes it only for floret
        (part / _SETTINGS).write_text(json.dumps({"mode": "default", "attr": int(attribute)}) + "\n")


def _read_rows(file: Path) -> list[tuple[int, int]]:
    """The (hash, row) pairs of a msgpack map of integers."""
    msgpack = require("srsly.msgpack", "spacy", "Reading spaCy")
    try:
        rows = msgpack.unpackb(file.read_bytes(), object_pairs_hook=dict, strict_map_key=False)
        if not isinstance(rows, dict) or not all(type(number) is int for pair in rows.items() for number in pair):
            raise ValueError("it contains something else")
    except (ValueError, TypeError, RecursionError) as error:
        raise damage_error(file, "a map of hashes to rows", error) from None
    return [*rows.items()]


def _find_words(file: Path, store: Any, keys: list[int]) -> list[str]:
    words = read_json(file)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise FormatError.expected("a list of words", type(words).__name__, path=file)
    try:
        for word in words:
            store.add(word)
        return [store[key] for key in keys]
    except (KeyError, ValueError, OverflowError) as error:
        raise damage_error(file, "every word that has a vector", error) from None


def _is_ours(folder: Path) -> bool:
    facts = read_object(folder / _META).get("vectors")
    return isinstance(facts, dict) and facts.get("name") == _NAME


_OTHERS = ("config.cfg", "tokenizer", "vocab/lookups.bin")
_LAYOUT = FolderLayout((_META, _TABLE, _KEYS, _STRINGS, _SETTINGS, *_OTHERS), _is_ours)
FORMAT = Format(contains_files(_TABLE, _KEYS), read, write, layout=_LAYOUT)
