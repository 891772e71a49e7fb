"""Parquet: the columns `word`, `count` and `vector` (a list of `dim` float32), in row groups."""

from pathlib import Path
from typing import Any

from stillvec.arrow_stream import BATCH_ROWS, open_stream
from stillvec.errors import FormatError, is_out_of_memory
from stillvec.files import create_local, find_parquet_chunks, open_local
from stillvec.formats.arrow_table import read_batches, select_columns
from stillvec.formats.format import Format, begins_with, damage_error
from stillvec.formats.vector_table import encode_words
from stillvec.registry import require
from stillvec.vectors import WordVectors

_BATCH_BYTES = 1 << 28  # that a batch may take


def read(path: Path) -> WordVectors:
    arrow = require("pyarrow", "parquet", "Reading Parquet")
    parquet = require("pyarrow.parquet", "parquet", "Reading Parquet")
    with open_local(path, FormatError) as local:
        try:
            columns = select_columns(path, parquet.read_schema(local))
            with parquet.ParquetFile(local, read_dictionary=["word"]) as file:  # a repeated word takes no memory
                batches = file.iter_batches(batch_size=_batch_rows(path, file, columns), columns=columns)
                return read_batches(path, arrow, file.schema_arrow, batches)
        except (arrow.ArrowException, KeyError, OSError, UnicodeDecodeError, OverflowError) as error:
            if is_out_of_memory(error):
                raise MemoryError from None
            raise damage_error(path, "Parquet", error) from None


def write(vectors: WordVectors, path: Path) -> None:
    parquet = require("pyarrow.parquet", "parquet", "Writing Parquet")
    encode_words(vectors, path)
    vocabulary = vectors.vocabulary
    reader = open_stream(vocabulary.words, vocabulary.counts, vectors.matrix, vocabulary.lowercase)
    with create_local(path) as local, parquet.ParquetWriter(local, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch, row_group_size=max(1, len(batch)))


def _batch_rows(path: Path, file: Any, columns: list[str]) -> int:
    """Rows per batch, fewer if vectors are long."""
    chunks = find_parquet_chunks(file, columns, str(path), FormatError)
    numbers_per_row = max((chunk.num_values // max(1, n_rows) for n_rows, chunk in chunks), default=1)
    return max(1, min(BATCH_ROWS, _BATCH_BYTES // (8 * max(1, numbers_per_row))))


FORMAT = Format(begins_with(b"PAR1"), read, write, (".parquet",))
