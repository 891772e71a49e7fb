"""Records of CSV and TSV files, which may be compressed."""

import csv
from collections.abc import Iterator
from pathlib import Path

from stillvec.errors import InputError
from stillvec.files.text_lines import read_lines


def read_records(path: Path, error: type[InputError], delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """(line number, fields) of each record that is not empty; a quoted field may span lines."""
    reader = csv.reader((line + "\n" for _, line in read_lines(path, error)), delimiter=delimiter)
    start = 1
    while True:
        try:
            fields = next(reader, None)
        except csv.Error as problem:
            raise error.expected("a CSV record", problem, path=path, line=start) from None
        if fields is None:
            return
        if any(field.strip() for field in fields):
            yield start, [field.strip() for field in fields]
        start = reader.line_num + 1
