"""Readers of dataset files; every DatasetError has the path and the line."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from stillvec.errors import DatasetError
from stillvec.evaluation.tasks import Items
from stillvec.files import inner_suffix, read_lines

_NOT_DATA = ("readme", "license", "licence")


def files_in(folder: Path, suffixes: Sequence[str]) -> list[Path]:
    """The files of a folder with one of these endings, in order of name."""
    if not folder.is_dir():
        return []
    wanted = (path for path in folder.iterdir() if inner_suffix(path) in suffixes and path.is_file())
    return sorted(path for path in wanted if not path.name.lower().startswith((".", *_NOT_DATA)))


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file, which may be compressed, with their numbers from 1."""
    return read_lines(path, DatasetError)


def columns(path: Path) -> Iterator[tuple[int, list[str]]]:
    """(line number, fields) of each line: separated by tabs, else in a .csv by commas, else by spaces."""
    indexed = False
    first = True
    for number, line in lines(path):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if "\t" in text:
            fields = text.split("\t")
        elif "," in text and inner_suffix(path) == ".csv":
            fields = _fields(text, path, number)
            # pandas writes a column of numbers, and no name over it
            indexed = indexed or (first and not fields[0])
            fields = fields[1:] if indexed else fields
        else:
            fields = text.split()
        first = False
        yield number, [field.strip() for field in fields]


def _fields(text: str, path: Path, line: int) -> list[str]:
    try:
        return next(csv.reader([text]))
    except csv.Error as error:
        raise DatasetError.expected("fields separated by commas", error, path=path, line=line) from None


def records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """(line number, fields) of each record of a CSV file; a quoted field may span lines."""
    reader = csv.reader(line + "\n" for _, line in lines(path))
    start = 1
    while True:
        try:
            fields = next(reader, None)
        except csv.Error as error:
            raise DatasetError.expected("a CSV record", error, path=path, line=start) from None
        if fields is None:
            return
        if any(field.strip() for field in fields):
            yield start, [field.strip() for field in fields]
        start = reader.line_num + 1


def parse_scored_pairs(rows: Iterator[tuple[int, list[str]]], path: Path, what: str) -> Items:
    """Items of two texts and a number per row; a first row without a number is a header."""
    texts: list[tuple[str, ...]] = []
    gold: list[float] = []
    for place, (line, fields) in enumerate(rows):
        if len(fields) != 3 or not all(fields):
            raise DatasetError.expected(what, count_fields(fields), path=path, line=line)
        try:
            value = float(fields[2])
        except ValueError:
            if place == 0:
                continue
            raise DatasetError.expected(what, repr(fields[2]), path=path, line=line) from None
        if not math.isfinite(value):
            raise DatasetError.expected("a finite number", repr(fields[2]), path=path, line=line)
        texts.append((fields[0], fields[1]))
        gold.append(value)
    if not texts:
        raise DatasetError.expected(f"{what} per line", "an empty file", path=path, line=1)
    return Items(tuple(texts), np.array(gold))


def count_fields(fields: Sequence[str]) -> str:
    """`1 field`, `3 fields`: those that are not empty."""
    n_filled = len([*filter(None, fields)])
    return f"{n_filled} field{'' if n_filled == 1 else 's'}"
