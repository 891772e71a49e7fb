"""HDF5: the datasets `words`, `counts` and `vectors` (words, dim), through h5py."""

import math
import mmap
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stillvec.errors import FormatError
from stillvec.files import create_local, open_local
from stillvec.formats.format import Format, damage_error
from stillvec.formats.npy import float_dtype
from stillvec.formats.vector_table import assemble, encode_words
from stillvec.numerics import iterate_blocks
from stillvec.registry import require
from stillvec.vectors import WordVectors

_BLOCK = 1 << 22  # numbers per write
_MAX_RATIO = 32  # bytes of a dataset per byte stored of it; more is no table of vectors
_MAX_SMALL = 1 << 20  # bytes that a dataset may have in any case
_HEAP = b"GCOL\x01\0\0\0"  # magic of a global heap (version 1); its header and those of its objects have 16 bytes


def recognize(path: Path, head: bytes) -> bool:
    return head.startswith(b"\x89HDF\r\n\x1a\n")


def read(path: Path) -> WordVectors:
    h5py = require("h5py", "hdf5", "Reading HDF5")
    with open_local(path, FormatError) as local:
        _check_heaps(path, local)
        try:
            with h5py.File(local, "r") as file:
                words, counts, matrix, lowercase = _read_datasets(path, h5py, file)
        except (FormatError, MemoryError):
            raise
        except Exception as error:  # h5py passes on any error of the C library
            raise damage_error(path, "HDF5", error) from None
    return assemble(path, words, matrix, counts, lowercase=lowercase)


def write(vectors: WordVectors, path: Path) -> None:
    h5py = require("h5py", "hdf5", "Writing HDF5")
    dtype = float_dtype(vectors.matrix)
    words = encode_words(vectors, path, dtype, forbidden="\0")
    with create_local(path) as local, _restore_errno(), h5py.File(local, "w") as file:
        file.attrs["lowercase"] = vectors.vocabulary.lowercase
        file.create_dataset("words", data=words, shape=(len(words),), dtype=h5py.string_dtype("utf-8"))
        file.create_dataset("counts", data=vectors.vocabulary.counts)
        table = file.create_dataset("vectors", vectors.matrix.shape, dtype)
        for rows, block in iterate_blocks(vectors.matrix, dtype, max(1, _BLOCK // vectors.dim)):
            table[rows] = block


@contextmanager
def _restore_errno() -> Iterator[None]:
    """Raise the error of the operating system (a full disk), which h5py hides in its message."""
    try:
        yield
    except OSError as error:
        errno = re.search(r"errno = (\d+)", str(error))
        raise OSError(int(errno[1]), os.strerror(int(errno[1]))) if errno else error from None


def _check_heaps(path: Path, local: Path) -> None:
    """Refuse a free heap object of size 0, on which the C library loops for ever."""
    with open(local, "rb") as stream:
        if local.stat().st_size < 16:
            return
        raw = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    width = raw[14 if raw[8] < 2 else 10]  # bytes per length, by the version of the superblock
    begin = raw.find(_HEAP)
    while begin >= 0:
        at, end = begin + 16, begin + int.from_bytes(raw[begin + 8 : begin + 8 + width], "little")
        while at + 16 <= min(end, len(raw)):
            free, size = raw[at : at + 2] == b"\0\0", int.from_bytes(raw[at + 8 : at + 8 + width], "little")
            if free and not size:
                raise damage_error(path, "HDF5", "a heap of strings has no end")
            at += size if free else 16 + (size + 7 & ~7)
        begin = raw.find(_HEAP, begin + 1)


def _read_datasets(path: Path, h5py: Any, file: Any) -> tuple[list[str], Any, Any, bool | None]:
    words, counts, table = (_open_dataset(path, h5py, file, name) for name in ("words", "counts", "vectors"))
    if words is None or table is None:
        names = ", ".join(map(repr, file)) or "none"
        raise FormatError.expected("the datasets 'words' and 'vectors'", names, path=path)
    if h5py.check_string_dtype(words.dtype) is None or words.ndim != 1:
        raise FormatError.expected("a list of strings", words.dtype, where="'words'", path=path)
    lowercase = file.attrs.get("lowercase")
    numbers = None if counts is None else counts[:].tolist()
    return [*words.asstr()[:]], numbers, table[:], None if lowercase is None else bool(lowercase)


def _open_dataset(path: Path, h5py: Any, file: Any, name: str) -> Any:
    """A dataset whose data are in this file, and not far larger than what is stored of them; None if there is none."""
    link = file.get(name, getlink=True)
    if link is None:
        return None
    dataset = file[name] if isinstance(link, h5py.HardLink) else None
    if dataset is not None and not isinstance(dataset, h5py.Dataset):
        return None
    if dataset is None or dataset.external or dataset.is_virtual:
        cure = "copy the data into it (h5repack, h5copy)"
        raise FormatError.expected(
            "data of this file", "a link to others", where=repr(name), path=path, cure=cure, code="outside"
        )
    size, stored = math.prod(dataset.shape or ()) * dataset.dtype.itemsize, dataset.id.get_storage_size()
    most = max(_MAX_SMALL, _MAX_RATIO * stored)
    if size > most:
        what = f"at most {most:,} bytes ({_MAX_RATIO} times the {stored:,} that are stored)"
        raise FormatError.expected(what, f"{size:,}", where=repr(name), path=path, code="too-large")
    return dataset


FORMAT = Format(recognize, read, write, (".h5", ".hdf5"))
