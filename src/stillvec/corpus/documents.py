"""Documents with ids: files of a folder, lines, articles, and records of JSON lines, CSV, TSV and Parquet."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stillvec.corpus.conllu import read_conllu
from stillvec.corpus.decoding import decode, read_records
from stillvec.corpus.reader_input import CorpusSettings, OpenedFile, ReadStats, open_file, text_suffix
from stillvec.corpus.records import (
    DEFAULT_FIELD,
    list_texts,
    read_json_lines,
    read_json_values,
    read_parquet,
    read_parquet_values,
    unknown_field,
)
from stillvec.corpus.sources import DOCUMENTS, Pipe, Source, check_packages, find_reader, resolve
from stillvec.corpus.wikipedia import read_articles, read_wikipedia
from stillvec.errors import CorpusError, UsageError
from stillvec.files.path_names import show_path

DocumentUnit = Literal["auto", "files", "lines"]
_TABLES = {".csv": ",", ".tsv": "\t"}  # suffix → separator
_IDS = ("id", "_id")
_MAX_FIELD = 1 << 26  # characters of a cell

Records = Iterator[tuple[int, object, object]]  # line or row, record, value of the text field


@dataclass(frozen=True)
class Document:
    """A text and its id."""

    id: str
    text: str


@dataclass(frozen=True)
class DocumentSettings:
    """How files become documents."""

    field: str | None = None  # with the text of a record (default: "text")
    id_field: str | None = None  # with its id (default: "id" or "_id", else the file and line)
    unit: DocumentUnit = "auto"  # of plain text: a document per file or line; auto: lines of a single file

    def __post_init__(self) -> None:
        if self.unit not in ("auto", "files", "lines"):
            raise UsageError.unknown("unit of documents", self.unit, ("auto", "files", "lines"))


def read_documents(
    sources: Sequence[str | os.PathLike[str]], settings: DocumentSettings | None = None
) -> Iterator[Document]:
    """Yield the documents of files, folders and globs; those without text are skipped."""
    settings = settings or DocumentSettings()
    files = resolve(sources, _TABLES)
    check_packages(files)
    only = Path(os.path.expanduser(sources[0])) if len(sources) == 1 else None
    by_line = settings.unit == "lines" or (settings.unit == "auto" and only is not None and not only.is_dir())
    if settings.unit == "auto" and len(files) > 1:  # a glob
        by_line = False
    stats = ReadStats()
    for source in files:
        name = show_path(source.path.relative_to(only)) if only is not None and only.is_dir() else source.name
        try:
            source.watch()
            for document in _read(source, name, settings, by_line, stats):
                if document.text and not document.text.isspace():
                    yield document
            source.check_unchanged()
        finally:
            source.close()
    if stats.n_replaced:
        stats.warn_replaced()


def _read(source: Source, name: str, settings: DocumentSettings, by_line: bool, stats: ReadStats) -> Iterator[Document]:
    opened = open_file(source.open_path(), source.name)
    field = settings.field or DEFAULT_FIELD
    ids = _IDS if settings.id_field is None else (settings.id_field,)
    suffix = text_suffix(source.path)
    reader = find_reader(opened)
    if suffix in _TABLES:
        yield from _read_table(opened, name, field, ids, stats)
    elif reader is read_json_lines:
        yield from _convert_records(read_json_values(opened, field, stats), opened, name, field, ids)
    elif reader is read_parquet:
        yield from _convert_records(read_parquet_values(opened, field, ids), opened, name, field, ids)
    elif reader is read_wikipedia:
        yield from (Document(title, "\n".join(paragraphs)) for title, paragraphs in read_articles(opened))
    elif reader is read_conllu:
        yield Document(name, "\n".join(read_conllu(opened, CorpusSettings(), stats)))
    elif reader in DOCUMENTS:
        yield Document(name, "\n\n".join(reader(opened, CorpusSettings(), stats)))
    elif by_line or (isinstance(source, Pipe) and settings.unit == "auto"):
        lines = enumerate(read_records(opened, stats), 1)
        yield from (Document(f"{name}:{number}", line.strip()) for number, line in lines)
    else:
        yield Document(name, "".join(decode(opened, stats)).strip())


def _convert_records(
    records: Records, opened: OpenedFile, name: str, field: str, ids: Sequence[str]
) -> Iterator[Document]:
    for number, record, value in records:
        text = "\n\n".join(list_texts(value, field, opened.name, number)).strip()
        if text:
            yield Document(_find_id(record, ids, opened.name, number) or f"{name}:{number}", text)


def _find_id(record: object, ids: Sequence[str], path: str, line: int) -> str:
    """The id of a record as text; empty if there is none."""
    value = next((record[key] for key in ids if key in record), None) if isinstance(record, Mapping) else None
    if value is None and ids is _IDS:
        return ""
    if not isinstance(value, str | int) or value == "":
        where = f"field {ids[0]!r}"
        raise CorpusError.expected(
            "an id, a text or a whole number", repr(value)[:60], where=where, path=path, line=line
        )
    return str(value)


def _read_table(opened: OpenedFile, name: str, field: str, ids: Sequence[str], stats: ReadStats) -> Iterator[Document]:
    """CSV as of RFC 4180 (also with `;`); TSV without quotes. The first line has the names of the columns."""
    separator = _TABLES[text_suffix(opened.path)]
    if separator == "," and b"," not in (head := opened.head.partition(b"\n")[0]) and b";" in head:
        separator = ";"
    lines = (line + "\n" for line in read_records(opened, stats))
    rows = csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_NONE if separator == "\t" else csv.QUOTE_MINIMAL)
    limit = csv.field_size_limit(_MAX_FIELD)
    try:
        header = next(rows, [])
        if field not in header:
            raise unknown_field(field, header, opened.name)
        at = header.index(field)
        records = ((rows.line_num, dict(zip(header, row, strict=False)), row[at]) for row in rows if len(row) > at)
        yield from _convert_records(records, opened, name, field, ids)
    except csv.Error as error:
        raise CorpusError.expected("CSV", f"a damaged line ({error})", path=opened.name, line=rows.line_num) from None
    finally:
        csv.field_size_limit(limit)
