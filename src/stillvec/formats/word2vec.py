"""The formats of word2vec, text and binary, of fastText's `.vec` and of GloVe's text files.

word2vec text (Mikolov et al., 2013; `-binary 0`) is a line "words dim", then one line per word; fastText's `.vec` is
the same under another suffix (Bojanowski et al., 2017). GloVe (Pennington et al., 2014) has no header. The binary
format (`word2vec.c -binary 1`) is the header, then each word, a space and its float32.
"""

from collections import Counter
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError
from stillvec.files import create_bytes, inner_suffix, open_bytes
from stillvec.formats import text_rows
from stillvec.formats.format import Format, empty_error
from stillvec.formats.numbers import NUMBER
from stillvec.formats.text_rows import parse_header, read_header
from stillvec.formats.vector_table import VectorTableBuilder, encode_words
from stillvec.numerics import iterate_blocks
from stillvec.vectors import WordVectors

_BLOCK = 1 << 21  # bytes per read
_FLOAT = np.dtype("<f4")
_SAMPLE = 1000  # lines that decide on the dimension of GloVe


def recognize_text(path: Path, head: bytes) -> bool:
    first, _, rest = head.partition(b"\n")
    header = parse_header(first)
    if header is None:
        return False
    line, end, _ = rest.partition(b"\n")
    if not end:  # the head may end within a line, and within a number
        line = line.rpartition(b" ")[0] if len(rest) > 1 << 16 else line
    return header[0] == 0 or text_rows.count_trailing_numbers(line) > 0 or _is_text_row(line, header[1])


def _is_text_row(line: bytes, dim: int) -> bool:
    """Whether a line is a word and `dim` printable fields, if not numbers ("0,5"): the text format, to be refused."""
    try:
        text = line.decode().strip()
    except UnicodeDecodeError:
        return False
    return text.isprintable() and len(text.split(" ")) > dim


def read_text(path: Path) -> WordVectors:
    with open_bytes(path, FormatError) as stream:
        n_words, dim = read_header(path, stream)
        return text_rows.read_rows(path, text_rows.iterate_lines(path, stream), dim, first_line=2, n_words=n_words)


def write_text(vectors: WordVectors, path: Path) -> None:
    text_rows.write_rows(vectors, path, b"%d %d\n" % (len(vectors), vectors.dim))


def recognize_glove(path: Path, head: bytes) -> bool:
    lines = head.split(b"\n")
    complete = lines[:-1][:5] or lines
    return parse_header(complete[0]) is None and all(map(text_rows.count_trailing_numbers, complete))


def read_glove(path: Path) -> WordVectors:
    with open_bytes(path, FormatError) as stream:
        blocks = text_rows.iterate_lines(path, stream)
        first = next(blocks, None)
        if first is None:
            raise empty_error(path)
        return text_rows.read_rows(path, chain([first], blocks), _find_dim(path, first), first_line=1)


def _find_dim(path: Path, lines: list[bytes]) -> int:
    """How many numbers most of the first lines end with: two for "new york 0.1 0.2" and for "1984 0.1 0.2"."""
    fields = lines[0].split()
    if len(fields) == 2 and all(map(NUMBER.fullmatch, fields)) and text_rows.count_trailing_numbers(lines[-1]) != 1:
        what, cure = "a word and its numbers, or the numbers of words and dimensions as integers", "correct the header"
        raise text_rows.line_error(path, what, lines[0], cure)
    dim = Counter(map(text_rows.count_trailing_numbers, lines[:_SAMPLE])).most_common(1)[0][0]
    if dim == 0:
        raise text_rows.line_error(path, "a word and its numbers", lines[0])
    return dim


def recognize_binary(path: Path, head: bytes) -> bool:
    first, _, rest = head.partition(b"\n")
    return parse_header(first) is not None and b" " in rest and not recognize_text(path, head)


def read_binary(path: Path) -> WordVectors:
    with open_bytes(path, FormatError) as stream:
        n_words, dim = read_header(path, stream)
        rows = VectorTableBuilder(path, dim)
        rest = b""
        while len(rows) < n_words:
            chunk = stream.read(_BLOCK)
            if not chunk:
                raise rows.error(len(rows), f"{n_words:,} words", f"{len(rows):,}", "the file may be truncated")
            buffer = rest + chunk
            words, numbers, n_bytes = _parse_records(buffer, dim, n_words - len(rows))
            rows.add(words, numbers)
            rest = buffer[n_bytes:]
            if len(rest) > _BLOCK + dim * _FLOAT.itemsize:
                raise rows.error(len(rows), "a word", f"{_BLOCK:,} bytes without a space", "the file is damaged")
        if (rest + stream.read(64)).strip(b"\n"):
            raise rows.error(n_words, f"{n_words:,} words", "more")
        return rows.finish()


def write_binary(vectors: WordVectors, path: Path) -> None:
    cure = "replace it (convert --replace-space _) or use a text format"
    words = encode_words(vectors, path, forbidden=" ", cure=cure)
    with create_bytes(path) as stream:
        stream.write(b"%d %d\n" % (len(vectors), vectors.dim))
        for rows, block in iterate_blocks(vectors.matrix, _FLOAT, max(1, _BLOCK // (_FLOAT.itemsize * vectors.dim))):
            records = zip(words[rows], block, strict=True)
            stream.write(b"".join(b"%b %b\n" % (word, row.tobytes()) for word, row in records))


def _parse_records(buffer: bytes, dim: int, n_records: int) -> tuple[list[bytes], NDArray[np.float32], int]:
    """The complete records in a buffer, at most `n_records`, and their length in bytes."""
    size = _FLOAT.itemsize * dim
    words: list[bytes] = []
    numbers: list[bytes] = []
    position = 0
    while len(words) < n_records:
        space = buffer.find(b" ", position)
        end = space + 1 + size
        if space < 0 or end > len(buffer):
            break
        words.append(buffer[position:space].lstrip(b"\n"))  # word2vec.c ends a record with a line break, gensim not
        numbers.append(buffer[space + 1 : end])
        position = end
    return words, np.frombuffer(b"".join(numbers), _FLOAT).reshape(-1, dim), position


FASTTEXT = Format(
    lambda path, head: inner_suffix(path) == ".vec" and recognize_text(path, head), read_text, write_text, (".vec",)
)
TEXT = Format(recognize_text, read_text, write_text, (".w2v",))
BINARY = Format(recognize_binary, read_binary, write_binary, (".bin",))
GLOVE = Format(recognize_glove, read_glove, text_rows.write_rows, (".glove",))
