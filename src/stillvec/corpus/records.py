"""Records of JSON lines and Parquet, with their text in a field (`text`, or a dotted path such as `article.body`)."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

from stillvec.corpus.decoding import read_records
from stillvec.corpus.plain_text import split_paragraphs
from stillvec.corpus.reader_input import CorpusSettings, OpenedFile, ReadStats
from stillvec.errors import CorpusError, is_out_of_memory
from stillvec.files import find_parquet_chunks
from stillvec.registry import require

DEFAULT_FIELD = "text"
_BATCH_ROWS = 1024  # of Parquet
_MAX_WITHOUT_FIELD = 100  # records, after which the field is reported as unknown
_MISSING = object()
_KINDS = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}


def is_json_lines(head: bytes) -> bool:
    """Whether the first line of a file is a complete record."""
    line = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]
    if not line.startswith(b'{"'):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def read_json_lines(opened: OpenedFile, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
    """Yield the paragraphs of one field of every record; records without it, or with null, are skipped."""
    for number, _, value in read_json_values(opened, settings.field or DEFAULT_FIELD, stats):
        yield from _split_value(value, settings, opened.name, number)


def read_json_values(opened: OpenedFile, field: str, stats: ReadStats) -> Iterator[tuple[int, object, object]]:
    """Yield (line, record, value of the field) of the records that have the field; a bare string is its own value."""
    name, known, n_without = opened.name, False, 0
    record: object = None
    for number, line in enumerate(read_records(opened, stats), 1):
        if not line or line.isspace():
            continue
        record = _parse(line, name, number)
        value = record if isinstance(record, str) else _look_up(record, field, name, number)
        if value is not _MISSING:
            known = True
            yield number, record, value
            continue
        n_without += 1
        if not known and n_without >= _MAX_WITHOUT_FIELD:
            break
    if n_without and not known:
        raise unknown_field(field, record if isinstance(record, dict) else {}, name)


def read_parquet(opened: OpenedFile, settings: CorpusSettings, stats: ReadStats) -> Iterator[str]:
    """Yield the paragraphs of one column or, given a dotted path, of a member of a struct."""
    field = settings.field or DEFAULT_FIELD
    arrow, parquet, compute = (
        require(module, "parquet", "Reading Parquet") for module in ("pyarrow", "pyarrow.parquet", "pyarrow.compute")
    )
    with _translate_errors(arrow, opened.name):
        with parquet.ParquetFile(opened.path) as file:
            path = _find_column(file.schema_arrow, field, opened.name)
            repeated = _find_repeated_columns(file, ".".join(path), opened.name)
        with parquet.ParquetFile(opened.path, read_dictionary=repeated) as file:
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=[".".join(path)]):
                column = batch.column(0)
                for member in path[1:]:
                    column = compute.struct_field(column, member)
                for value in _list_values(column, arrow.types):
                    yield from _split_value(value, settings, opened.name)


def read_parquet_values(
    opened: OpenedFile, field: str, ids: Sequence[str]
) -> Iterator[tuple[int, dict[str, object], object]]:
    """Yield (row, record, value of the field) of every row; the record has the columns of `ids` that exist."""
    arrow, parquet = (require(module, "parquet", "Reading Parquet") for module in ("pyarrow", "pyarrow.parquet"))
    with _translate_errors(arrow, opened.name), parquet.ParquetFile(opened.path) as file:
        column = ".".join(_find_column(file.schema_arrow, field, opened.name))
        columns = [column, *(name for name in ids if name in file.schema_arrow.names)]
        find_parquet_chunks(file, columns, opened.name, CorpusError)  # checks them
        batches = file.iter_batches(batch_size=_BATCH_ROWS, columns=columns)
        for number, record in enumerate(chain.from_iterable(batch.to_pylist() for batch in batches), 1):
            yield number, record, _look_up(record, field, opened.name, number)


@contextmanager
def _translate_errors(arrow: Any, name: str) -> Iterator[None]:
    try:
        yield
    except (arrow.ArrowException, KeyError, OSError, UnicodeDecodeError) as error:
        if is_out_of_memory(error):
            raise MemoryError from None
        problem = str(error).partition(".")[0].strip()
        got, cure = f"another format or a damaged file ({problem})", "copy it again, or correct its suffix"
        raise CorpusError.expected("a Parquet file", got, path=name, cure=cure, code="bad-parquet") from None


def _list_values(column: Any, types: Any) -> list[object]:
    """The values of a column, those of lists one after the other; repeated values are one object."""
    if types.is_list(column.type) or types.is_large_list(column.type):
        return _list_values(column.flatten(), types)
    if not types.is_dictionary(column.type):
        return list(column.to_pylist())
    rows = column.indices.drop_null()
    used = rows.unique()
    values = dict(zip(used.to_pylist(), column.dictionary.take(used).to_pylist(), strict=True))
    return [values[row] for row in rows.to_pylist()]


def _find_repeated_columns(file: Any, column: str, name: str) -> list[str]:
    """The leaves of a column whose repeated values are stored once, and are to be read so."""
    chunks = [chunk for _, chunk in find_parquet_chunks(file, [column], name, CorpusError)]
    is_delta = any("DELTA" in encoding for chunk in chunks for encoding in chunk.encodings)  # not read so by Arrow
    return [] if is_delta else sorted({chunk.path_in_schema for chunk in chunks if chunk.has_dictionary_page})


def _split_value(value: object, settings: CorpusSettings, name: str, line: int | None = None) -> Iterator[str]:
    """Yield the paragraphs of the value of a field: a string, a list of strings, or null."""
    for text in list_texts(value, settings.field or DEFAULT_FIELD, name, line):
        yield from split_paragraphs(text, settings.paragraphs)


def list_texts(value: object, field: str, name: str, line: int | None = None) -> list[str]:
    """The texts of the value of a field: a string, a list of strings and nulls, or null."""
    texts: list[str] = []
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str):
            texts.append(text)
        elif text is not None:
            where, cure = f"field {field!r}", "give another --field"
            raise CorpusError.expected("text", _kind(text), where=where, path=name, line=line, cure=cure)
    return texts


def unknown_field(field: str, known: Iterable[object], name: str) -> CorpusError:
    return CorpusError.unknown("field", field, map(str, known), where="the records (--field NAME)", path=name)


def _parse(line: str, name: str, number: int) -> object:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        problem = f"{error.msg} at column {error.colno}"
    except RecursionError:
        problem = "nested too deeply"
    except ValueError:
        problem = "a number with thousands of digits"
    spread = line.lstrip().startswith("[") or line.strip() == "{"
    cure = "convert it with jq -c '.[]' or jq -c ." if spread else "correct or delete the line"
    what, got = "one JSON record per line", f"invalid JSON ({problem})"
    raise CorpusError.expected(what, got, path=name, line=number, cure=cure, code="not-json")


def _look_up(record: object, field: str, name: str, number: int) -> object:
    if not isinstance(record, dict):
        cure = "convert it with jq -c '.[]'"
        raise CorpusError.expected("one JSON object per line", _kind(record), path=name, line=number, cure=cure)
    if field in record:
        return record[field]
    value: object = record
    for part in field.split("."):
        if not isinstance(value, dict) or part not in value:
            return _MISSING
        value = value[part]
    return value


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "a number")


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
