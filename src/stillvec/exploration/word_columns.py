"""Columns of a table of the user: values of words by which the map is coloured, filtered and searched."""

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stillvec.errors import InputError, UsageError, is_out_of_memory
from stillvec.exploration.byte_text import encode_base64
from stillvec.files import find_parquet_chunks, inner_suffix, open_local, read_records
from stillvec.registry import require
from stillvec.vocabulary import Vocabulary

MAX_COLUMNS = 50
_MAX_CODED = 8  # distinct whole numbers that are codes of categories rather than amounts
_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
_PARQUET = (".parquet", ".pq")
Value = str | float | None


@dataclass(frozen=True)
class ColumnTable:
    """Values of words by the name of the column; None where there is none."""

    words: Sequence[str]
    columns: Mapping[str, Sequence[Value]]

    def pack(self, vocabulary: Vocabulary, n_words: int) -> list[dict[str, Any]]:
        """The columns as JSON, for the first words of a vocabulary; of a word that is listed twice, the first row."""
        rows = np.full(n_words, -1, np.int64)
        for at, word in enumerate(self.words):
            row = vocabulary.row(word)
            if row is not None and row < n_words and rows[row] < 0:
                rows[row] = at
        return [pack_column(name, values, rows) for name, values in self.columns.items()]


def pack_column(name: str, values: Sequence[Value], rows: Any) -> dict[str, Any]:
    """A column of numbers as 32-bit floats, NaN where missing; texts as codes of their levels, or -1."""
    known = [value for value in values if value is not None]
    distinct = Counter(known)
    numeric = bool(known) and all(isinstance(value, float) for value in distinct)
    if numeric and (len(distinct) > _MAX_CODED or not all(float(value).is_integer() for value in distinct)):
        numbers = np.array([math.nan if value is None else value for value in values], "<f4")
        return {"name": name, "numbers": encode_base64(np.where(rows >= 0, numbers[rows], np.nan).astype("<f4"))}
    levels = sorted(distinct) if numeric else [value for value, _ in distinct.most_common()]
    code = {value: number for number, value in enumerate(levels)}
    codes = np.array([-1 if value is None else code[value] for value in values], "<i4")
    texts = [f"{value:g}" if isinstance(value, float) else value for value in levels]
    return {"name": name, "levels": texts, "codes": encode_base64(np.where(rows >= 0, codes[rows], -1).astype("<i4"))}


def load_columns(source: str | os.PathLike[str] | Mapping[str, Iterable[Any]]) -> ColumnTable:
    """A table with the column `word`: a CSV, TSV or Parquet file, a mapping of columns, or a data frame."""
    if isinstance(source, str | os.PathLike):
        path: Path | None = Path(source)
        table = _read_file(Path(source))
    else:
        path, names = None, getattr(source, "columns", source)
        table = {str(name): [*source[name]] for name in names}
    if "word" not in table:
        raise InputError.expected("a table with the column 'word'", f"columns {', '.join(map(repr, table))}", path=path)
    words = table.pop("word")
    if not 0 < len(table) <= MAX_COLUMNS:
        raise InputError.expected(f"1 to {MAX_COLUMNS} columns besides 'word'", len(table), path=path)
    if not all(len(column) == len(words) for column in table.values()):
        raise InputError.expected("columns of equal length", "different lengths", path=path)
    columns = {name: _parse_numbers([_plain_value(value) for value in column]) for name, column in table.items()}
    return ColumnTable(["" if word is None else str(word) for word in words], columns)


def _read_file(path: Path) -> dict[str, list[Any]]:
    suffix = inner_suffix(path)
    if not path.exists():
        raise InputError.not_found(path, "a table of columns")
    if suffix in _PARQUET:
        return _read_parquet(path)
    if suffix not in _DELIMITERS:
        known = ", ".join([*_DELIMITERS, *_PARQUET])
        raise UsageError.expected(f"a file with one of the suffixes {known}", repr(path.suffix), path=path)
    records = read_records(path, InputError, _DELIMITERS[suffix])
    line, header = next(records, (1, []))
    if len({*header}) < len(header):
        raise InputError.expected("different names of columns", ", ".join(map(repr, header)), path=path, line=line)
    table: dict[str, list[Any]] = {name: [] for name in header}
    for line, fields in records:
        if len(fields) != len(header):
            raise InputError.expected(f"{len(header)} fields", len(fields), path=path, line=line)
        for name, field in zip(header, fields, strict=True):
            table[name].append(field)
    return table


def _read_parquet(path: Path) -> dict[str, list[Any]]:
    arrow = require("pyarrow", "parquet", "Reading Parquet")
    parquet = require("pyarrow.parquet", "parquet", "Reading Parquet")
    with open_local(path, InputError) as local:
        try:
            with parquet.ParquetFile(local) as file:
                schema = file.schema_arrow
                names = [name for name in dict.fromkeys(schema.names) if _is_scalar(arrow, schema, name)]
                find_parquet_chunks(file, names, str(path), InputError)
                return dict(file.read(columns=names).to_pydict()) if names else {}
        except (arrow.ArrowException, KeyError, OSError, UnicodeDecodeError, OverflowError, ValueError) as error:
            if is_out_of_memory(error):
                raise MemoryError from None
            problem = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
            got = f"a damaged or truncated file ({problem})"
            raise InputError.expected("Parquet", got, path=path, code="damaged") from None


def _is_scalar(arrow: Any, schema: Any, name: str) -> bool:
    """Whether a column holds texts, numbers or truth values; vectors and others are left out."""
    kinds = arrow.types
    kind = schema.field(schema.get_all_field_indices(name)[0]).type
    kind = kind.value_type if kinds.is_dictionary(kind) else kind
    tests = (kinds.is_string, kinds.is_large_string, kinds.is_integer, kinds.is_floating, kinds.is_boolean)
    return any(test(kind) for test in tests)


def _plain_value(value: Any) -> Value:
    """A text or a finite number; None for what is missing."""
    if value is None:
        return None
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, int | float | np.integer | np.floating):
        return float(value) if math.isfinite(value) else None
    return str(value).strip() or None


def _parse_numbers(values: list[Value]) -> list[Value]:
    """The column with its texts as numbers, if all of them are."""
    try:
        numbers = [None if value is None else float(value) for value in values]
    except ValueError:
        return [f"{value:g}" if isinstance(value, float) else value for value in values]
    return [None if number is None or not math.isfinite(number) else number for number in numbers]
