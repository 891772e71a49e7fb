"""Lines of a word and its numbers, which word2vec, fastText and GloVe share.

Only "\\n" ends a line and only the ASCII space parts fields, so that words may hold any other character.
The last `dim` fields are the vector and all before them is the word, so that words may hold spaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError
from stillvec.formats.numbers import DECIMAL, NUMBER, parse, render
from stillvec.formats.vector_table import VectorTableBuilder, check_numbers, encode_words
from stillvec.vectors import WordVectors

_BLOCK = 1 << 21  # bytes read at once
_NUMBERS = 1 << 16  # numbers written at once
_LONGEST = 1 << 26  # bytes of a line; what is longer is no line of vectors
WIDEST = 1 << 21  # numbers of a vector


def header(line: bytes) -> tuple[int, int] | None:
    """(words, numbers a word) if a line is the first one of word2vec, else None."""
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() and len(field) < 19 for field in fields):
        return None
    words, dim = map(int, fields)
    return (words, dim) if 0 < dim <= WIDEST else None


def read_header(path: Path, stream: IO[bytes]) -> tuple[int, int]:
    """Take the first line of word2vec from a stream."""
    line = stream.readline(_BLOCK)
    found = header(line)
    if found is None:
        start = line[:60].decode(errors="replace").rstrip("\n")
        raise FormatError(
            f"{path}:1: the first line should give the words and the numbers of each ('400000 300'), and is "
            f"{start!r}; a file without that line is of format 'glove'."
        )
    return found


def count_trailing_numbers(line: bytes) -> int:
    """How many numbers a line ends in; its first field is a word, whatever it looks like."""
    fields = line.rstrip(b" \r").split(b" ")[1:]
    return next((i for i, field in enumerate(reversed(fields)) if not NUMBER.fullmatch(field)), len(fields))


def blocks(path: Path, stream: IO[bytes]) -> Iterator[list[bytes]]:
    """The lines of a stream, some megabytes at a time, without the spaces fastText ends them with."""
    left = b""
    blank: list[bytes] = []  # held back: bad lines, but not at the end of a file
    while chunk := stream.read(_BLOCK):
        left, lines = _cut(left + chunk)
        if len(left) > _LONGEST:
            raise FormatError(f"{path} has a line of more than {_LONGEST:,} bytes, which is no word and its numbers.")
        lines = blank + lines
        blank = []
        while lines and not lines[-1]:
            blank.append(lines.pop())
        if lines:
            yield lines
    if last := left.rstrip(b" \r"):
        yield [*blank, last]


def read_rows(
    path: Path, lines: Iterable[list[bytes]], dim: int, *, first_line: int, announced: int | None = None
) -> WordVectors:
    """Vectors from blocks of lines; `announced` is the number of words that a header gave."""
    rows = VectorTableBuilder(path, dim, lambda row: f"{path}:{first_line + row}")
    for block in lines:
        rows.add(*(_fast(block, dim) or _slow(block, dim, rows)))
        if announced is not None and len(rows) > announced:
            raise FormatError(f"{rows.where(announced)}: the file announces {announced:,} words in line 1 and goes on.")
    if announced is not None and len(rows) < announced:
        raise FormatError(
            f"{rows.where(len(rows))}: the file ends after {len(rows):,} words and announces {announced:,} "
            "in line 1; it may be cut short."
        )
    return rows.finish()


def write_rows(vectors: WordVectors, path: Path, stream: IO[bytes]) -> None:
    """One line a word."""
    words = encode_words(vectors, path)
    step = max(1, _NUMBERS // vectors.dim)
    for first in range(0, len(words), step):
        some = zip(words[first : first + step], render(vectors.matrix[first : first + step]), strict=True)
        stream.write(b"".join([part for word, numbers in some for part in (word, numbers, b"\n")]))


def check_text(vectors: WordVectors, path: Path, *, whole_numbers: bool) -> None:
    """Refuse, before a byte is written, what could not be read back.

    A word that ends in a decimal number ("windows 3.1") looks like a line with one number too many; without a
    header that tells the dimension, so does one that ends in a whole number.
    """
    check_numbers(vectors, path, np.float32)
    pattern = NUMBER if whole_numbers else DECIMAL
    for word in encode_words(vectors, path):
        if b" " in word and pattern.fullmatch(word.rpartition(b" ")[2]):
            raise FormatError(
                f"{path} was not written: the word {word.decode()!r} ends in a number after a space, which "
                "would be read as part of its vector; replace the space (convert --replace-space _) or use "
                "format 'stillvec'."
            )


def _cut(text: bytes) -> tuple[bytes, list[bytes]]:
    """What is left of a block after its last line break, and the lines before."""
    *lines, left = text.split(b"\n")
    return left, [line.rstrip(b" \r") for line in lines]


def _fast(lines: list[bytes], dim: int) -> tuple[list[bytes], NDArray[np.float32]] | None:
    """All lines at once; None if one of them is not a word without spaces and `dim` numbers."""
    parts = [line.partition(b" ") for line in lines]
    numbers = parse(b"\n".join([rest for _, _, rest in parts]), len(lines), dim)
    return None if numbers is None else ([word for word, _, _ in parts], numbers)


def _slow(lines: Sequence[bytes], dim: int, rows: VectorTableBuilder) -> tuple[list[bytes], NDArray[np.float32]]:
    """Line by line, to read words with spaces, and to name a line that cannot be read."""
    words: list[bytes] = []
    numbers: list[NDArray[np.float32]] = []
    for i, line in enumerate(lines):
        word, *fields = line.rsplit(b" ", dim)
        wanted = f"{rows.where(len(rows) + i)}: a word and {dim} numbers are wanted, and"
        if len(fields) < dim:
            raise FormatError(f"{wanted} the line has {len(line.split(b' ')) if line else 0:,} fields.")
        bad = next((field for field in fields if not NUMBER.fullmatch(field)), None)
        if bad is not None:
            raise FormatError(f"{wanted} {bad.decode(errors='replace')!r} stands where a number should.")
        if b" " in word and DECIMAL.fullmatch(word.rpartition(b" ")[2]):
            raise FormatError(f"{wanted} the line ends in {count_trailing_numbers(line):,} numbers.")
        words.append(word)
        with np.errstate(over="ignore"):
            numbers.append(np.array([float(field) for field in fields]).astype(np.float32))
    return words, np.array(numbers, np.float32).reshape(-1, dim)
