"""word2vec's binary: a line "words dim", then each word, a space and its float32 (`word2vec.c -binary 1`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError
from stillvec.files import create_bytes, open_bytes
from stillvec.formats import word2vec
from stillvec.formats.format import Format
from stillvec.formats.text_rows import header, read_header
from stillvec.formats.vector_table import VectorTableBuilder, check_numbers, encode_words
from stillvec.vectors import WordVectors

_BLOCK = 1 << 21  # bytes read at once
_FLOAT = np.dtype("<f4")


def recognize(path: Path, head: bytes) -> bool:
    first, _, rest = head.partition(b"\n")
    return header(first) is not None and b" " in rest and not word2vec.recognize(path, head)


def read(path: Path) -> WordVectors:
    with open_bytes(path, FormatError) as stream:
        announced, dim = read_header(path, stream)
        rows = VectorTableBuilder(path, dim, lambda row: f"{path}, word {row + 1:,}")
        left = b""
        while len(rows) < announced:
            chunk = stream.read(_BLOCK)
            if not chunk:
                raise FormatError(
                    f"{rows.where(len(rows))}: the file ends here and announces {announced:,} words; it is cut short."
                )
            buffer = left + chunk
            words, numbers, used = _records(buffer, dim, announced - len(rows))
            rows.add(words, numbers)
            left = buffer[used:]
            if len(left) > _BLOCK + dim * _FLOAT.itemsize:
                raise FormatError(
                    f"{rows.where(len(rows))}: no word ends within {_BLOCK:,} bytes; the file is damaged."
                )
        if (left + stream.read(64)).strip(b"\n"):
            raise FormatError(f"{rows.where(announced)}: the file announces {announced:,} words and goes on.")
        return rows.finish()


def write(vectors: WordVectors, path: Path) -> None:
    check_numbers(vectors, path, np.float32)
    words = encode_words(vectors, path)
    spaced = next((word for word in words if b" " in word), None)
    if spaced is not None:
        raise FormatError(
            f"{path} was not written: the word {spaced.decode()!r} holds a space, which ends a word "
            "in this format; replace it (convert --replace-space _) or use a text format."
        )
    with create_bytes(path) as stream:
        stream.write(b"%d %d\n" % (len(vectors), vectors.dim))
        step = max(1, _BLOCK // (_FLOAT.itemsize * vectors.dim))
        for first in range(0, len(words), step):
            block = np.asarray(vectors.matrix[first : first + step], _FLOAT)
            some = words[first : first + step]
            stream.write(b"".join(b"%b %b\n" % (word, row.tobytes()) for word, row in zip(some, block, strict=True)))


def _records(buffer: bytes, dim: int, wanted: int) -> tuple[list[bytes], NDArray[np.float32], int]:
    """The whole records of a buffer, `wanted` at most, and the bytes they take."""
    size = _FLOAT.itemsize * dim
    words: list[bytes] = []
    numbers: list[bytes] = []
    position = 0
    while len(words) < wanted:
        space = buffer.find(b" ", position)
        end = space + 1 + size
        if space < 0 or end > len(buffer):
            break
        words.append(buffer[position:space].lstrip(b"\n"))  # word2vec.c ends a record with a line break, gensim not
        numbers.append(buffer[space + 1 : end])
        position = end
    return words, np.frombuffer(b"".join(numbers), _FLOAT).reshape(-1, dim), position


FORMAT = Format(recognize, read, write, (".bin",))
