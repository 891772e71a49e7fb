"""Parquet: one column, read a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stillvec.corpus.json_lines import DEFAULT_FIELD, to_texts, unknown_field
from stillvec.corpus.opened_file import OpenedFile
from stillvec.corpus.plain_text import split_paragraphs
from stillvec.corpus.read_settings import CorpusSettings, ReadStats
from stillvec.errors import CorpusError
from stillvec.registry import require

_ROWS = 1024


def is_parquet(head: bytes) -> bool:
    """Whether a file begins like Parquet."""
    return head.startswith(b"PAR1")


def read_parquet(opened: OpenedFile, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
    """The paragraphs of one column (or, with a dotted path, of a struct's member)."""
    field, mode = settings.field or DEFAULT_FIELD, settings.paragraphs
    arrow = require("pyarrow", "parquet", "Reading Parquet")
    try:
        with _open(opened) as file:
            path = _column(file.schema_arrow, field, opened.name)
            for batch in file.iter_batches(batch_size=_ROWS, columns=[".".join(path)]):
                column = batch.column(0)
                for member in path[1:]:
                    column = require("pyarrow.compute", "parquet", "Reading Parquet").struct_field(column, member)
                for value in column.to_pylist():
                    for text in to_texts(value, field, opened.name):
                        yield from split_paragraphs(text, mode)
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        problem = str(error).partition(".")[0].strip()
        raise CorpusError(f"The Parquet file {opened.name} is damaged ({problem}); copy it again.") from None


def _open(opened: OpenedFile) -> Any:
    arrow = require("pyarrow", "parquet", "Reading Parquet")
    parquet = require("pyarrow.parquet", "parquet", "Reading Parquet")
    try:
        return parquet.ParquetFile(opened.path)
    except (arrow.ArrowInvalid, OSError) as error:
        problem = str(error).partition(".")[0].strip()
    raise CorpusError(
        f"{opened.name} is not a Parquet file, or is cut short ({problem}); copy it again, or name it by what it is."
    )


def _column(schema: Any, field: str, name: str) -> list[str]:
    """The field as a path of names; a column whose own name has dots goes before a path."""
    if field in schema.names:
        return [field]
    path = field.split(".")
    if path[0] not in schema.names:
        raise unknown_field(field, list(schema.names), name)
    kind = schema.field(path[0]).type
    for depth, member in enumerate(path[1:], 1):
        members = [kind.field(i).name for i in range(kind.num_fields)]
        if member not in members:
            raise unknown_field(field, [".".join([*path[:depth], each]) for each in members], name)
        kind = kind.field(members.index(member)).type
    return path
