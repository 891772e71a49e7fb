"""Vectors from Arrow record batches: of a Parquet file, or of any data frame or table with `__arrow_c_stream__`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stillvec.arrow_stream import BATCH_ROWS, LOWERCASE
from stillvec.errors import FormatError
from stillvec.formats.vector_table import assemble
from stillvec.registry import require
from stillvec.vectors import WordVectors

_COLUMNS = ("word", "vector", "count")


class ArrowTable(Protocol):
    """A data frame of Polars or pandas, a relation of DuckDB, a table of pyarrow."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


def read_stream(table: ArrowTable) -> WordVectors:
    """The vectors of a table with the columns `word`, `vector` and optionally `count`."""
    arrow = require("pyarrow", "parquet", "Reading a data frame")
    path = Path(type(table).__name__)  # for messages
    try:
        with arrow.RecordBatchReader.from_stream(table) as reader:
            columns = select_columns(path, reader.schema)
            batches = (part for batch in reader for part in _split(batch.select(columns)))
            return read_batches(path, arrow, reader.schema, batches)
    except arrow.ArrowException as error:
        raise FormatError.expected("a table of words and vectors", error, path=path) from None


def _split(batch: Any) -> Iterable[Any]:
    return (batch.slice(start, BATCH_ROWS) for start in range(0, len(batch), BATCH_ROWS))


def select_columns(path: Path, schema: Any) -> list[str]:
    """The columns that are read."""
    if not {"word", "vector"} <= {*schema.names}:
        got = ", ".join(map(repr, schema.names)) or "none"
        raise FormatError.expected("the columns 'word' and 'vector'", got, path=path)
    return [name for name in _COLUMNS if name in schema.names]


def read_batches(path: Path, arrow: Any, schema: Any, batches: Iterable[Any]) -> WordVectors:
    columns = select_columns(path, schema)
    words: list[str] = []
    counts: list[int] = []
    blocks: list[NDArray[np.float32]] = []
    n_checked = BATCH_ROWS
    for batch in batches:
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
    flag = (schema.metadata or {}).get(LOWERCASE)
    lowercase = None if flag is None else flag == b"true"
    return assemble(path, words, np.concatenate(blocks), counts if "count" in columns else None, lowercase=lowercase)


def _read_vectors(path: Path, arrow: Any, column: Any, row: int) -> NDArray[np.float32]:
    """The lists of numbers in a batch as a table; `row` is the index of the first."""
    kinds, what, after = arrow.types, "a list of floats, equally long in each row", f"after row {row:,}"
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
