"""Lines of a word and its numbers, which word2vec, fastText, GloVe and floret share.

Only "\\n" ends a line and only the ASCII space separates fields, so words may contain any other character.
The last `dim` fields are the vector and everything before them is the word, so words may contain spaces.
"""

import codecs
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError
from stillvec.files import create_bytes
from stillvec.formats.format import write_error
from stillvec.formats.numbers import DECIMAL, NUMBER, parse, render
from stillvec.formats.vector_table import VectorTableBuilder, encode_words
from stillvec.numerics import iterate_blocks
from stillvec.vectors import WordVectors

_BLOCK = 1 << 21  # bytes per read
_NUMBERS = 1 << 16  # numbers per write
_MAX_LINE = 1 << 26  # bytes
MAX_DIM = 1 << 21


def parse_header(line: bytes) -> tuple[int, int] | None:
    """(words, dim) if a line is the header of a word2vec file, else None."""
    fields = line.removeprefix(codecs.BOM_UTF8).split()
    if len(fields) != 2 or not all(field.isdigit() and len(field) < 19 for field in fields):
        return None
    n_words, dim = map(int, fields)
    return (n_words, dim) if 0 < dim <= MAX_DIM else None


def read_header(path: Path, stream: IO[bytes]) -> tuple[int, int]:
    line = stream.readline(_BLOCK)
    header = parse_header(line)
    if header is None:
        raise line_error(path, "the numbers of words and dimensions ('400000 300')", line, "without them use 'glove'")
    return header


def line_error(path: Path, what: str, line: bytes, cure: str = "") -> FormatError:
    start = line[:60].decode(errors="replace").rstrip("\n")
    return FormatError.expected(what, repr(start), path=path, line=1, cure=cure, code="header")


def count_trailing_numbers(line: bytes) -> int:
    """How many numbers a line ends with; its first field is always a word."""
    fields = line.rstrip(b" \r").split(b" ")[1:]
    return next((i for i, field in enumerate(reversed(fields)) if not NUMBER.fullmatch(field)), len(fields))


def iterate_lines(path: Path, stream: IO[bytes]) -> Iterator[list[bytes]]:
    """The lines of a stream in blocks, without the trailing spaces that fastText writes."""
    rest = b""
    blank: list[bytes] = []  # delayed: an error, except at the end of a file
    while chunk := stream.read(_BLOCK):
        *raw, rest = (rest + chunk).split(b"\n")
        if len(rest) > _MAX_LINE:
            raise FormatError.expected("a word and its numbers", f"a line of more than {_MAX_LINE:,} bytes", path=path)
        lines = blank + [line.rstrip(b" \r") for line in raw]
        blank = []
        while lines and not lines[-1]:
            blank.append(lines.pop())
        if lines:
            yield lines
    if last := rest.rstrip(b" \r"):
        yield [*blank, last]


def read_rows(
    path: Path, blocks: Iterable[list[bytes]], dim: int, *, first_line: int, n_words: int | None = None
) -> WordVectors:
    """Vectors from blocks of lines; `n_words` is the number of words in the header."""
    rows = VectorTableBuilder(path, dim, first_line)
    for lines in blocks:
        rows.add(*(_parse_block(lines, dim) or _parse_lines(lines, dim, rows)))
        if n_words is not None and len(rows) > n_words:
            raise rows.error(n_words, f"{n_words:,} words as in line 1", "more")
    if n_words is not None and len(rows) < n_words:
        raise rows.error(len(rows), f"{n_words:,} words as in line 1", f"{len(rows):,}", "the file may be truncated")
    return rows.finish()


def write_rows(vectors: WordVectors, path: Path, header: bytes = b"") -> None:
    """Write a header and one line per word; refuse, before writing anything, what could not be read back.

    A word that ends with a decimal number ("windows 3.1") looks like a line with one number too many; without a header
    that gives the dimension, so does one that ends with an integer.
    """
    words = encode_words(vectors, path)
    if not words and not header:
        raise write_error(path, "there are no words, and without a header the file would be empty")
    pattern = DECIMAL if header else NUMBER
    for word in words:
        if b" " in word and pattern.fullmatch(word.rpartition(b" ")[2]):
            reason = f"the word {word.decode()!r} ends with a number, which would be read as part of its vector"
            raise write_error(path, reason, "replace the space (convert --replace-space _) or use format 'stillvec'")
    with create_bytes(path) as stream:
        stream.write(header)
        for rows, block in iterate_blocks(vectors.matrix, np.float32, max(1, _NUMBERS // vectors.dim)):
            lines = zip(words[rows], render(block), strict=True)
            stream.write(b"".join([part for word, numbers in lines for part in (word, numbers, b"\n")]))


def _parse_block(lines: list[bytes], dim: int) -> tuple[list[bytes], NDArray[np.float32]] | None:
    """All lines at once; None unless every line is a word without spaces and `dim` numbers."""
    parts = [line.partition(b" ") for line in lines]
    numbers = parse(b"\n".join([rest for _, _, rest in parts]), len(lines), dim)
    return None if numbers is None else ([word for word, _, _ in parts], numbers)


def _parse_lines(lines: Sequence[bytes], dim: int, rows: VectorTableBuilder) -> tuple[list[bytes], NDArray[np.float32]]:
    """Line by line, to read words with spaces and to report the line that cannot be read."""
    words: list[bytes] = []
    numbers: list[NDArray[np.float32]] = []
    for row, line in enumerate(lines, len(rows)):
        word, *fields = line.rsplit(b" ", dim)
        bad = next((field for field in fields if not NUMBER.fullmatch(field)), None)
        got = ""
        if len(fields) < dim:
            got = f"{len(line.split(b' ')) if line else 0:,} fields"
        elif bad is not None:
            got = f"{bad.decode(errors='replace')!r} instead of a number"
        elif b" " in word and DECIMAL.fullmatch(word.rpartition(b" ")[2]):
            got = f"{count_trailing_numbers(line):,} numbers"
        if got:
            raise rows.error(row, f"a word and {dim} numbers", got)
        words.append(word)
        with np.errstate(over="ignore"):
            numbers.append(np.array([float(field) for field in fields]).astype(np.float32))
    return words, np.array(numbers, np.float32).reshape(-1, dim)
