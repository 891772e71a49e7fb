"""The word2vec binary format: a line "words dim", then each word, a space and its float32 (`word2vec.c -binary 1`)."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError
from stillvec.files import create_bytes, open_bytes
from stillvec.formats import word2vec
from stillvec.formats.format import Format
from stillvec.formats.text_rows import parse_header, read_header
from stillvec.formats.vector_table import VectorTableBuilder, encode_words
from stillvec.numerics import iterate_blocks
from stillvec.vectors import WordVectors

_BLOCK = 1 << 21  # bytes per read
_FLOAT = np.dtype("<f4")


def recognize(path: Path, head: bytes) -> bool:
    first, _, rest = head.partition(b"\n")
    return parse_header(first) is not None and b" " in rest and not word2vec.recognize(path, head)


def read(path: Path) -> WordVectors:
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


def write(vectors: WordVectors, path: Path) -> None:
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


FORMAT = Format(recognize, read, write, (".bin",))
