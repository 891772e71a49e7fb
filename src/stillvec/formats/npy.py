"""A NumPy array and a list of words: `vectors.npy` and `vectors.words.txt`, one word per line."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError
from stillvec.files import atomic_file, create_local, inner_name, open_local
from stillvec.files.numpy_file import map_array
from stillvec.formats.format import Format, begins_with, damage_error, decode_text
from stillvec.formats.vector_table import assemble, encode_words
from stillvec.numerics import iterate_blocks
from stillvec.vectors import WordVectors

_BLOCK = 1 << 22  # numbers per write


def read(path: Path) -> WordVectors:
    file = words_file(path)
    with open_local(path, FormatError) as local:
        matrix = map_table(local, path)
    if not file.is_file():
        raise FormatError.not_found(file, f"the words of {path.name}, one per line")
    text = decode_text(file.read_bytes(), file).removesuffix("\n")
    return assemble(path, text.split("\n") if file.stat().st_size else [], matrix)


def write(vectors: WordVectors, path: Path) -> None:
    dtype = float_dtype(vectors.matrix)
    words = encode_words(vectors, path, dtype)
    with _set_words_aside(path) as set_aside, atomic_file(words_file(path)) as file, create_local(path) as local:
        file.write_bytes(b"".join([b"%b\n" % word for word in words]))
        with open(local, "wb") as stream:
            header = {"descr": dtype.str, "shape": vectors.matrix.shape, "fortran_order": False}
            np.lib.format.write_array_header_1_0(stream, header)
            for _, block in iterate_blocks(vectors.matrix, dtype, max(1, _BLOCK // vectors.dim)):
                stream.write(np.ascontiguousarray(block).data)
        set_aside()


@contextmanager
def _set_words_aside(path: Path) -> Iterator[Callable[[], None]]:
    """While the table is replaced it has no words rather than those of another; they come back if it is not."""
    file = words_file(path)
    old, table = file.with_name(f"{file.name}.old"), _inode(path)

    def set_aside() -> None:
        if table is not None and file.is_file():
            file.replace(old)

    try:
        yield set_aside
    except BaseException:
        if old.is_file() and not file.exists() and _inode(path) == table:
            old.replace(file)
        raise
    old.unlink(missing_ok=True)


def _inode(path: Path) -> int | None:
    return path.stat().st_ino if path.is_file() else None


def float_dtype(matrix: NDArray[Any]) -> np.dtype[Any]:
    """The little-endian float type to store a matrix in: its own, or float32."""
    stored = matrix.dtype if matrix.dtype in (np.float16, np.float64) else np.dtype(np.float32)
    return stored.newbyteorder("<")


def words_file(path: Path) -> Path:
    """The file of words that belongs to a `.npy` file."""
    return path.with_name(f"{inner_name(path).removesuffix('.npy')}.words.txt")


def map_table(file: Path, path: Path) -> NDArray[Any]:
    """Memory-map a `.npy` file; error messages name it `path`."""
    try:
        matrix = map_array(file)
    except ValueError as error:
        raise damage_error(path, "a NumPy array", error) from None
    if not isinstance(matrix, np.ndarray):
        raise FormatError.expected("one array (.npy)", "an archive (.npz)", path=path)
    return matrix


FORMAT = Format(begins_with(b"\x93NUMPY"), read, write, (".npy",))
