"""Parquet: the columns `word`, `count` and `vector`, a list of `dim` float32, a group of rows at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError
from stillvec.files import create_local, open_local
from stillvec.formats.format import Format
from stillvec.formats.vector_table import assemble, check_numbers, encode_words
from stillvec.registry import require
from stillvec.vectors import WordVectors

_ROWS = 1 << 14  # rows of a group
_LOWERCASE = b"stillvec.lowercase"


def recognize(path: Path, head: bytes) -> bool:
    return head.startswith(b"PAR1")


def read(path: Path) -> WordVectors:
    arrow = require("pyarrow", "parquet", "Reading Parquet")
    parquet = require("pyarrow.parquet", "parquet", "Reading Parquet")
    with open_local(path, FormatError) as place:
        try:
            with parquet.ParquetFile(place) as file:
                return _read(path, arrow, file)
        except (arrow.ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
            problem = str(error).partition("\n")[0].partition(". ")[0]
            raise FormatError(f"{path} is empty, cut short or no Parquet file ({problem}).") from error


def write(vectors: WordVectors, path: Path) -> None:
    arrow = require("pyarrow", "parquet", "Writing Parquet")
    parquet = require("pyarrow.parquet", "parquet", "Writing Parquet")
    check_numbers(vectors, path, np.float32)
    encode_words(vectors, path)
    item = arrow.field("item", arrow.float32())
    kinds = [("word", arrow.string()), ("count", arrow.int64()), ("vector", arrow.list_(item, vectors.dim))]
    schema = arrow.schema(kinds, {_LOWERCASE: json.dumps(vectors.vocabulary.lowercase)})
    with create_local(path) as place, parquet.ParquetWriter(place, schema) as writer:
        for first in range(0, len(vectors), _ROWS):
            some = slice(first, first + _ROWS)
            numbers = arrow.array(np.asarray(vectors.matrix[some], np.float32).ravel())
            columns = [
                arrow.array(vectors.words[some], arrow.string()),
                arrow.array(vectors.vocabulary.counts[some]),
                arrow.FixedSizeListArray.from_arrays(numbers, type=schema.field("vector").type),
            ]
            writer.write_table(arrow.Table.from_arrays(columns, schema=schema))


def _read(path: Path, arrow: Any, file: Any) -> WordVectors:
    schema = file.schema_arrow
    missing = [name for name in ("word", "vector") if name not in schema.names]
    if missing:
        raise FormatError(
            f"{path} has no column {missing[0]!r}; 'word' and 'vector' are wanted, and there are "
            f"{', '.join(map(repr, schema.names))}."
        )
    columns = [name for name in ("word", "vector", "count") if name in schema.names]
    words: list[str] = []
    counts: list[int] = []
    blocks: list[NDArray[np.float32]] = []
    for batch in file.iter_batches(batch_size=_ROWS, columns=columns):
        if any(batch.column(name).null_count for name in columns):
            raise FormatError(f"{path}: a word, count or vector is missing after row {len(words):,}.")
        blocks.append(_numbers(path, arrow, batch.column("vector"), len(words)))
        words += batch.column("word").cast(arrow.string()).to_pylist()
        counts += batch.column("count").cast(arrow.int64()).to_pylist() if "count" in columns else []
    if not blocks:
        blocks = [np.zeros((0, max(0, getattr(schema.field("vector").type, "list_size", 0))), np.float32)]
    if len({block.shape[1] for block in blocks}) > 1:
        raise FormatError(f"{path}: the vectors are not all of one length.")
    lowercase = (schema.metadata or {}).get(_LOWERCASE)
    told = None if lowercase is None else lowercase == b"true"
    return assemble(path, words, np.concatenate(blocks), counts if "count" in columns else None, lowercase=told)


def _numbers(path: Path, arrow: Any, column: Any, row: int) -> NDArray[np.float32]:
    """The lists of numbers of some rows, as a table; `row` is the first of them."""
    kinds = arrow.types
    if not (kinds.is_list(column.type) or kinds.is_large_list(column.type) or kinds.is_fixed_size_list(column.type)):
        raise FormatError(f"{path}: the column 'vector' should hold lists of numbers, and is {column.type}.")
    flat = column.flatten()
    if not kinds.is_floating(flat.type) or flat.null_count or not len(column) or len(flat) % len(column):
        raise FormatError(f"{path}: the vectors after row {row:,} should be lists of as many floats each.")
    if not kinds.is_fixed_size_list(column.type):
        lengths = np.diff(column.offsets.to_numpy(zero_copy_only=False))
        if (lengths != lengths[0]).any():
            raise FormatError(f"{path}: the vectors after row {row:,} are not all of one length.")
    with np.errstate(over="ignore"):
        return np.asarray(flat.to_numpy(zero_copy_only=False), np.float32).reshape(len(column), -1)


FORMAT = Format(recognize, read, write, (".parquet",))
