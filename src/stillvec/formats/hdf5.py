"""HDF5: the datasets `words`, `counts` and `vectors` (words, dim), through h5py."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from stillvec.errors import FormatError
from stillvec.files import create_local, open_local
from stillvec.formats.format import Format
from stillvec.formats.vector_table import assemble, check_numbers, encode_words
from stillvec.registry import require
from stillvec.vectors import WordVectors

_BLOCK = 1 << 22  # numbers written at once
_HEAP = b"GCOL\x01\0\0\0"  # how a collection of texts begins, version 1; its header has 16 bytes, that of a text too


def recognize(path: Path, head: bytes) -> bool:
    return head.startswith(b"\x89HDF\r\n\x1a\n")


def read(path: Path) -> WordVectors:
    h5py = require("h5py", "hdf5", "Reading HDF5")
    with open_local(path, FormatError) as place:
        _check_heaps(path, place)
        try:
            with h5py.File(place, "r") as file:
                found = _tables(path, h5py, file)
        except FormatError:
            raise
        # a damaged file fails in as many ways as it has bytes, and h5py hands on whatever the C library met
        except Exception as error:
            raise FormatError(
                f"{path} is empty, cut short or no HDF5 file ({str(error).partition(chr(10))[0]})."
            ) from error
    words, counts, matrix, lowercase = found
    return assemble(path, words, matrix, counts, lowercase=lowercase)


def write(vectors: WordVectors, path: Path) -> None:
    h5py = require("h5py", "hdf5", "Writing HDF5")
    kept = vectors.matrix.dtype if vectors.matrix.dtype in (np.float16, np.float64) else np.dtype(np.float32)
    check_numbers(vectors, path, kept.type)
    words = encode_words(vectors, path)
    bad = next((word for word in words if b"\0" in word), None)
    if bad is not None:
        raise FormatError(f"{path} was not written: the word {bad.decode()!r} holds a NUL, which ends a text in HDF5.")
    with create_local(path) as place, _plainly(), h5py.File(place, "w") as file:
        file.attrs["lowercase"] = vectors.vocabulary.lowercase
        file.create_dataset("words", data=words, shape=(len(words),), dtype=h5py.string_dtype("utf-8"))
        file.create_dataset("counts", data=vectors.vocabulary.counts)
        table = file.create_dataset("vectors", vectors.matrix.shape, kept.newbyteorder("<"))
        step = max(1, _BLOCK // vectors.dim)
        for first in range(0, len(words), step):
            table[first : first + step] = vectors.matrix[first : first + step]


@contextmanager
def _plainly() -> Iterator[None]:
    """A full disk as the system calls it; h5py tells it in lines about its buffers."""
    try:
        yield
    except OSError as error:
        told = re.search(r"errno = (\d+)", str(error))
        raise OSError(int(told[1]), os.strerror(int(told[1]))) if told else error from None


def _check_heaps(path: Path, place: Path) -> None:
    """Refuse texts without an end: the C library would look for it for ever."""
    with open(place, "rb") as stream:
        if place.stat().st_size < 16:
            return
        raw = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    long = raw[14 if raw[8] < 2 else 10]  # bytes of a length, by the version of the file's head
    begin = raw.find(_HEAP)
    while begin >= 0:
        at, end = begin + 16, begin + int.from_bytes(raw[begin + 8 : begin + 8 + long], "little")
        while at + 16 <= min(end, len(raw)):
            free, size = raw[at : at + 2] == b"\0\0", int.from_bytes(raw[at + 8 : at + 8 + long], "little")
            if free and not size:
                raise FormatError(f"{path} is damaged: a list of texts in it has no end; fetch or write it again.")
            at += size if free else 16 + (size + 7 & ~7)
        begin = raw.find(_HEAP, begin + 1)


def _tables(path: Path, h5py: Any, file: Any) -> tuple[list[str], Any, Any, bool | None]:
    missing = [name for name in ("words", "vectors") if not isinstance(file.get(name), h5py.Dataset)]
    if missing:
        there = ", ".join(map(repr, file)) or "nothing"
        raise FormatError(
            f"{path} has no dataset {missing[0]!r}; 'words' and 'vectors' are wanted, and there is {there}."
        )
    if h5py.check_string_dtype(file["words"].dtype) is None or file["words"].ndim != 1:
        raise FormatError(f"{path}: 'words' should be a list of texts, and is {file['words'].dtype}.")
    words = [*file["words"].asstr()[:]]
    counts = file["counts"][:].tolist() if isinstance(file.get("counts"), h5py.Dataset) else None
    lowercase = file.attrs.get("lowercase")
    return words, counts, file["vectors"][:], None if lowercase is None else bool(lowercase)


FORMAT = Format(recognize, read, write, (".h5", ".hdf5"))
