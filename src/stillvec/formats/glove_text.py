"""GloVe's text: one line a word and no header (Pennington et al., 2014)."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from pathlib import Path

from stillvec.errors import FormatError
from stillvec.files import create_bytes, open_bytes
from stillvec.formats.format import Format
from stillvec.formats.text_rows import blocks, check_text, count_trailing_numbers, header, read_rows, write_rows
from stillvec.vectors import WordVectors

_ASKED = 1000  # lines that vote on the dimension


def recognize(path: Path, head: bytes) -> bool:
    lines = head.split(b"\n")
    whole = lines[:-1][:5] or lines
    return header(whole[0]) is None and all(count_trailing_numbers(line) for line in whole)


def read(path: Path) -> WordVectors:
    with open_bytes(path, FormatError) as stream:
        lines = blocks(path, stream)
        first = next(lines, None)
        if first is None:
            raise FormatError(f"{path} is empty, and vectors were to be read from it.")
        return read_rows(path, chain([first], lines), _dim(path, first), first_line=1)


def write(vectors: WordVectors, path: Path) -> None:
    if not len(vectors):
        raise FormatError(f"{path} was not written: there are no words, and without a header the file would be empty.")
    check_text(vectors, path, whole_numbers=True)
    with create_bytes(path) as stream:
        write_rows(vectors, path, stream)


def _dim(path: Path, lines: list[bytes]) -> int:
    """How many numbers most of the first lines end in: two in "new york 0.1 0.2", and in "1984 0.1 0.2"."""
    votes = Counter(count_trailing_numbers(line) for line in lines[:_ASKED])
    dim = votes.most_common(1)[0][0]
    if dim == 0:
        start = lines[0][:60].decode(errors="replace")
        raise FormatError(f"{path}:1: a word and its numbers are wanted, and the line begins with {start!r}.")
    return dim


FORMAT = Format(recognize, read, write, (".glove",))
