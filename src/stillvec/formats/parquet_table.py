"""Parquet: the columns `word`, `count` and `vector` (a list of `dim` float32), in row groups."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError, is_out_of_memory
from stillvec.files import create_local, find_parquet_chunks, open_local
from stillvec.formats.format import Format, begins_with, damage_error
from stillvec.formats.vector_table import assemble, encode_words
from stillvec.numerics import iterate_blocks
from stillvec.registry import require
from stillvec.vectors import WordVectors

_ROWS = 1 << 14  # rows per group
_BATCH_BYTES = 1 << 28  # that a batch may take
_LOWERCASE = b"stillvec.lowercase"


def read(path: Path) -> WordVectors:
    arrow = require("pyarrow", "parquet", "Reading Parquet")
    parquet = require("pyarrow.parquet", "parquet", "Reading Parquet")
    with open_local(path, FormatError) as local:
        try:
            names = parquet.read_schema(local).names
            if not {"word", "vector"} <= {*names}:
                raise FormatError.expected("the columns 'word' and 'vector'", ", ".join(map(repr, names)), path=path)
            with parquet.ParquetFile(local, read_dictionary=["word"]) as file:  # a repeated word takes no memory
                return _read_table(path, arrow, file)
        except (arrow.ArrowException, KeyError, OSError, UnicodeDecodeError, OverflowError) as error:
            if is_out_of_memory(error):
                raise MemoryError from None
            raise damage_error(path, "Parquet", error) from None


def write(vectors: WordVectors, path: Path) -> None:
    arrow = require("pyarrow", "parquet", "Writing Parquet")
    parquet = require("pyarrow.parquet", "parquet", "Writing Parquet")
    encode_words(vectors, path)
    item = arrow.field("item", arrow.float32())
    kinds = [("word", arrow.string()), ("count", arrow.int64()), ("vector", arrow.list_(item, vectors.dim))]
    schema = arrow.schema(kinds, {_LOWERCASE: json.dumps(vectors.vocabulary.lowercase)})
    with create_local(path) as local, parquet.ParquetWriter(local, schema) as writer:
        for rows, block in iterate_blocks(vectors.matrix, np.float32, _ROWS):
            columns = [
                arrow.array(vectors.words[rows], arrow.string()),
                arrow.array(vectors.vocabulary.counts[rows]),
                arrow.FixedSizeListArray.from_arrays(arrow.array(block.ravel()), type=schema.field("vector").type),
            ]
            writer.write_table(arrow.Table.from_arrays(columns, schema=schema))


def _read_table(path: Path, arrow: Any, file: Any) -> WordVectors:
    schema = file.schema_arrow
    columns = [name for name in ("word", "vector", "count") if name in schema.names]
    words: list[str] = []
    counts: list[int] = []
    blocks: list[NDArray[np.float32]] = []
    n_checked = _ROWS
    for batch in file.iter_batches(batch_size=_batch_rows(path, file, columns), columns=columns):
        if any(batch.column(name).null_count for name in columns):
            got = f"missing values after row {len(words):,}"
            raise FormatError.expected("a word, count and vector in each row", got, path=path)
        blocks.append(_read_vectors(path, arrow, batch.column("vector"), len(words)))
        column = batch.column("word")
        if arrow.types.is_dictionary(column.type) and len(column.indices.unique()) < len(column):
            first = next(row["values"] for row in column.value_counts().to_pylist() if row["counts"] > 1)
            raise FormatError.expected("one vector per word", f"{first[:60]!r} again", path=path)
        words += column.cast(arrow.string()).to_pylist()
        if len(words) > 2 * n_checked:  # long before the last of millions
            n_checked = len(words)
            if len(set(words)) < n_checked:
                raise FormatError.expected("one vector per word", f"a word again before row {n_checked:,}", path=path)
        counts += batch.column("count").cast(arrow.int64()).to_pylist() if "count" in columns else []
    if not blocks:
        blocks = [np.zeros((0, max(0, getattr(schema.field("vector").type, "list_size", 0))), np.float32)]
    if len({block.shape[1] for block in blocks}) > 1:
        raise FormatError.expected("vectors of equal length", "different lengths", path=path)
    flag = (schema.metadata or {}).get(_LOWERCASE)
    lowercase = None if flag is None else flag == b"true"
    return assemble(path, words, np.concatenate(blocks), counts if "count" in columns else None, lowercase=lowercase)


def _batch_rows(path: Path, file: Any, columns: list[str]) -> int:
    """Rows per batch, fewer if vectors are long."""
    chunks = find_parquet_chunks(file, columns, str(path), FormatError)
    numbers_per_row = max((chunk.num_values // max(1, n_rows) for n_rows, chunk in chunks), default=1)
    return max(1, min(_ROWS, _BATCH_BYTES // (8 * max(1, numbers_per_row))))


def _read_vectors(path: Path, arrow: Any, column: Any, row: int) -> NDArray[np.float32]:
    """The lists of numbers in a batch as a table; `row` is the index of the first."""
    kinds, what, after = arrow.types, "a list of floats, equally long in each row,", f"after row {row:,}"
    if not (kinds.is_list(column.type) or kinds.is_large_list(column.type) or kinds.is_fixed_size_list(column.type)):
        raise FormatError.expected(what, column.type, where="column 'vector'", path=path)
    flat = column.flatten()
    if not kinds.is_floating(flat.type) or flat.null_count or not len(column) or len(flat) % len(column):
        raise FormatError.expected(what, f"others {after}", where="column 'vector'", path=path)
    if not kinds.is_fixed_size_list(column.type):
        lengths = np.diff(column.offsets.to_numpy(zero_copy_only=False))
        if (lengths != lengths[0]).any():
            raise FormatError.expected(what, f"different lengths {after}", where="column 'vector'", path=path)
    with np.errstate(over="ignore"):
        return np.asarray(flat.to_numpy(zero_copy_only=False), np.float32).reshape(len(column), -1)


FORMAT = Format(begins_with(b"PAR1"), read, write, (".parquet",))
