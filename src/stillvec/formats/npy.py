"""numpy's own file and a file of words beside it: `vectors.npy` and `vectors.words.txt`, one word a line."""

from __future__ import annotations

import warnings
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError
from stillvec.files import atomic_file, create_local, inner_name, open_local
from stillvec.formats.format import Format
from stillvec.formats.vector_table import assemble, check_numbers, encode_words
from stillvec.vectors import WordVectors

_BLOCK = 1 << 22  # numbers written at once
_BROKEN = (ValueError, EOFError, TypeError, SyntaxError, TokenError, MemoryError, OverflowError, OSError)  # a header


def recognize(path: Path, head: bytes) -> bool:
    return head.startswith(b"\x93NUMPY")


def read(path: Path) -> WordVectors:
    beside = words_file(path)
    with open_local(path, FormatError) as place:
        matrix = map_table(place, path)
    if not beside.is_file():
        raise FormatError(f"{path} has no words: {beside.name} should lie beside it, one word a line.")
    text = beside.read_bytes()
    if text and not text.endswith(b"\n"):
        text += b"\n"
    try:
        words = text.decode().split("\n")[:-1]
    except UnicodeDecodeError as error:
        raise FormatError(f"{beside} is not UTF-8 ({error}).") from error
    return assemble(path, words, matrix)


def write(vectors: WordVectors, path: Path) -> None:
    kept = vectors.matrix.dtype if vectors.matrix.dtype in (np.float16, np.float64) else np.dtype(np.float32)
    check_numbers(vectors, path, kept.type)
    words = encode_words(vectors, path)
    with atomic_file(words_file(path)) as beside, create_local(path) as place:
        beside.write_bytes(b"".join([b"%b\n" % word for word in words]))
        with open(place, "wb") as stream:
            shape = {"shape": vectors.matrix.shape, "fortran_order": False}
            np.lib.format.write_array_header_1_0(stream, {"descr": kept.newbyteorder("<").str, **shape})
            step = max(1, _BLOCK // vectors.dim)
            for first in range(0, len(words), step):
                stream.write(np.ascontiguousarray(vectors.matrix[first : first + step], kept.newbyteorder("<")).data)


def words_file(path: Path) -> Path:
    """Where the words of a table are."""
    return path.with_name(f"{inner_name(path).removesuffix('.npy')}.words.txt")


def map_table(file: Path, called: Path) -> NDArray[Any]:
    """An array of numpy, memory-mapped; errors call it `called`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a header is Python 2's, or only nearly Python
            matrix = np.load(file, mmap_mode="r", allow_pickle=False)
    except _BROKEN as error:
        problem = str(error).partition("\n")[0]
        raise FormatError(f"{called} is empty, cut short or no table of numpy ({problem}).") from error
    if not isinstance(matrix, np.ndarray):
        raise FormatError(f"{called} is an archive of numpy (.npz), and one table (.npy) is wanted.")
    return matrix


FORMAT = Format(recognize, read, write, (".npy",))
