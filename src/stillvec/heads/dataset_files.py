"""Readers of dataset files; every DatasetError has the path and the line."""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from stillvec.errors import DatasetError
from stillvec.files import check_is_text, detect_encoding, inner_suffix, open_bytes, read_lines, read_records
from stillvec.lexicons.rated_pairs import read_columns

lines = partial(read_lines, error=DatasetError)  # (line number, line)
_HEAD_BYTES = 4096  # that show whether a file is text
columns = partial(read_columns, error=DatasetError)  # (line number, fields)
records = partial(read_records, error=DatasetError)  # (line number, fields)


def read_blocks(path: Path) -> Iterator[list[tuple[int, str]]]:
    """The numbered lines between blank lines."""
    for has_text, block in groupby(lines(path), lambda line: bool(line[1].strip())):
        if has_text:
            yield [*block]


def read_table(path: Path, names: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """(line number, column → field) of each record of a CSV file whose header has these columns."""
    rows = records(path)
    line, header = next(rows, (1, []))
    if not set(names) <= set(header):
        raise DatasetError.expected(f"a header with {', '.join(names)}", repr(",".join(header)), path=path, line=line)
    for line, fields in rows:
        if len(fields) != len(header):
            raise DatasetError.expected(f"{len(header)} fields", len(fields), path=path, line=line)
        yield line, dict(zip(header, fields, strict=True))


def read_texts(path: Path, field: str) -> Iterator[str]:
    """The texts of a CSV or TSV with this column or of JSON lines with this field, or the lines of any other file."""
    suffix = inner_suffix(path)
    if suffix in (".csv", ".tsv"):
        rows = records(path, delimiter="," if suffix == ".csv" else "\t")
        _, header = next(rows, (1, []))
        if field in header:
            column = header.index(field)
            for line, fields in rows:
                if len(fields) != len(header):
                    raise DatasetError.expected(f"{len(header)} fields", len(fields), path=path, line=line)
                yield fields[column]
            return
    for line, content in lines(path):
        if suffix != ".jsonl":
            yield content
        elif content.strip():
            yield _read_field(path, line, content, field)


def _read_field(path: Path, line: int, content: str, field: str) -> str:
    try:
        text = json.loads(content)[field]
    except (ValueError, TypeError, KeyError, RecursionError):
        text = None
    if not isinstance(text, str):
        raise DatasetError.expected(f"a JSON object with {field!r}", repr(content[:80]), path=path, line=line)
    return text


def read_labelled(path: Path, *, allow_empty: bool = True) -> Iterator[tuple[str, str]]:
    """(label, text) of each line; invalid UTF-8 is read as Latin-1. A label and a space may be an empty text (MPQA)."""
    return ((label, text) for _, label, text in read_numbered(path, allow_empty=allow_empty))


def read_numbered(path: Path, *, allow_empty: bool = True) -> Iterator[tuple[int, str, str]]:
    """(line number, label, text) of each line, as `read_labelled`; UTF-16 and UTF-32 need a byte order mark."""
    what = "a label, a space and a text"
    with open_bytes(path, DatasetError) as stream:
        content: bytes = stream.read().removeprefix(b"\xef\xbb\xbf")
    check_is_text(content[:_HEAD_BYTES], str(path), DatasetError)
    if encoding := detect_encoding(content):
        try:
            content = content.decode(encoding).encode()
        except UnicodeError as problem:
            raise DatasetError.expected(f"{encoding.upper()} text", problem, path=path, code="encoding") from None
    empty = True
    for number, raw in enumerate(content.split(b"\n"), 1):
        try:
            line = raw.decode()
        except UnicodeDecodeError:
            line = raw.decode("latin-1")
        label, *text = line.split(None, 1) or [""]
        if label and (line.rstrip("\r") == label or not (text or allow_empty)):
            raise DatasetError.expected(what, repr(label[:40]), path=path, line=number)
        if label:
            empty = False
            yield number, label, "".join(text).strip()
    if empty:
        raise DatasetError.expected(f"{what} per line", "an empty file", path=path, line=1)


class Pair(NamedTuple):
    label: str
    first: str
    second: str
    kinds: tuple[str, ...] = ()


def read_pairs(path: Path) -> Iterator[Pair]:
    """The pairs of a file, at least one."""
    what, empty = "a label, a text and a text, separated by tabs", True
    for number, line in lines(path):
        if not line.strip():
            continue
        label, first, second, *kinds = [cell.strip() for cell in line.split("\t")] + [""] * max(0, 2 - line.count("\t"))
        if not (label and first and second):
            raise DatasetError.expected(what, count_fields(line.split("\t")[:3]), path=path, line=number)
        empty = False
        yield Pair(label, first, second, tuple(filter(None, kinds[0].split(","))) if kinds else ())
    if empty:
        raise DatasetError.expected(f"{what} per line", "an empty file", path=path, line=1)


def count_fields(fields: Sequence[str]) -> str:
    """`1 field`, `3 fields`: those that are not empty."""
    n_filled = len([*filter(None, fields)])
    return f"{n_filled} field{'' if n_filled == 1 else 's'}"
