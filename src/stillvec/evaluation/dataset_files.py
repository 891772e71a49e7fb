"""Reading files of items: every complaint is one sentence that names the file and the line."""

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


def columns(path: Path) -> Iterator[tuple[str, list[str]]]:
    """(file:line, fields) of each line: parted by tabs, else in a .csv by commas, else by spaces."""
    indexed = False
    first = True
    for number, line in lines(path):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if "\t" in text:
            fields = text.split("\t")
        elif "," in text and inner_suffix(path) == ".csv":
            fields = _fields(text, f"{path}:{number}")
            # pandas writes a column of numbers, and no name over it
            indexed = indexed or (first and not fields[0])
            fields = fields[1:] if indexed else fields
        else:
            fields = text.split()
        first = False
        yield f"{path}:{number}", [field.strip() for field in fields]


def _fields(text: str, where: str) -> list[str]:
    try:
        return next(csv.reader([text]))
    except csv.Error as error:
        raise DatasetError(f"{where}: fields parted by commas are wanted, and there are none: {error}.") from None


def records(path: Path) -> Iterator[tuple[str, list[str]]]:
    """(file:line, fields) of each record of a CSV file; a quoted field may run over several lines."""
    reader = csv.reader(line + "\n" for _, line in lines(path))
    start = 1
    while True:
        try:
            fields = next(reader, None)
        except csv.Error as error:
            raise DatasetError(f"{path}:{start}: a CSV record is wanted, and this is none: {error}.") from None
        if fields is None:
            return
        if any(field.strip() for field in fields):
            yield f"{path}:{start}", [field.strip() for field in fields]
        start = reader.line_num + 1


def scored_pairs(rows: Iterator[tuple[str, list[str]]], path: Path, what: str) -> Items:
    """Items of two texts and a number a row; a first row without a number is a header."""
    texts: list[tuple[str, ...]] = []
    gold: list[float] = []
    for place, (where, fields) in enumerate(rows):
        if len(fields) != 3 or not all(fields):
            raise DatasetError(f"{where}: {what} is wanted, and {len([*filter(None, fields)])} fields came.")
        try:
            value = float(fields[2])
        except ValueError:
            if place == 0:
                continue
            raise DatasetError(f"{where}: {what} is wanted, and {fields[2]!r} is no number.") from None
        if not math.isfinite(value):
            raise DatasetError(f"{where}: {what} is wanted, and {fields[2]!r} is not a finite number.")
        texts.append((fields[0], fields[1]))
        gold.append(value)
    if not texts:
        raise DatasetError(f"{path}:1: {what} a line is wanted, and there is none in the file.")
    return Items(tuple(texts), np.array(gold))
