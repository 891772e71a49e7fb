"""Parquet: one column, read in batches of rows."""

from collections.abc import Iterator
from typing import Any

from stillvec.corpus.json_lines import DEFAULT_FIELD, to_texts, unknown_field
from stillvec.corpus.opened_file import OpenedFile
from stillvec.corpus.plain_text import split_paragraphs
from stillvec.corpus.read_settings import CorpusSettings, ReadStats
from stillvec.errors import CorpusError
from stillvec.registry import require

_BATCH_ROWS = 1024


def is_parquet(head: bytes) -> bool:
    """Whether a file begins with the magic bytes of Parquet."""
    return head.startswith(b"PAR1")


def read_parquet(opened: OpenedFile, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
    """Yield the paragraphs of one column or, given a dotted path, of a member of a struct."""
    field = settings.field or DEFAULT_FIELD
    arrow, parquet, compute = (
        require(module, "parquet", "Reading Parquet") for module in ("pyarrow", "pyarrow.parquet", "pyarrow.compute")
    )
    try:
        with parquet.ParquetFile(opened.path) as file:
            path = _find_column(file.schema_arrow, field, opened.name)
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=[".".join(path)]):
                column = batch.column(0)
                for member in path[1:]:
                    column = compute.struct_field(column, member)
                for value in column.to_pylist():
                    for text in to_texts(value, field, opened.name):
                        yield from split_paragraphs(text, settings.paragraphs)
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        problem = str(error).partition(".")[0].strip()
        raise CorpusError.expected(
            "a Parquet file",
            f"another format or a damaged file ({problem})",
            path=opened.name,
            cure="copy it again, or correct its suffix",
            code="bad-parquet",
        ) from None


def _find_column(schema: Any, field: str, name: str) -> list[str]:
    """The field as a path of names; a column whose own name contains dots has precedence."""
    if field in schema.names:
        return [field]
    path = field.split(".")
    if path[0] not in schema.names:
        raise unknown_field(field, schema.names, name)
    kind = schema.field(path[0]).type
    for depth, member in enumerate(path[1:], 1):
        members = [kind.field(i).name for i in range(kind.num_fields)]
        if member not in members:
            raise unknown_field(field, [".".join([*path[:depth], other]) for other in members], name)
        kind = kind.field(members.index(member)).type
    return path
