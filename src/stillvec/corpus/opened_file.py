"""A file as readers receive it: the uncompressed bytes in chunks, and the first of them to recognize its type."""

import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stillvec.errors import CorpusError
from stillvec.files import inner_suffix, open_bytes

CHUNK_BYTES = 1 << 18
HEAD_BYTES = 1 << 16  # to recognize the type of a file by


@dataclass(frozen=True)
class OpenedFile:
    """The uncompressed bytes of a file."""

    path: Path
    name: str  # as the user wrote it
    head: bytes
    chunks: Iterator[bytes]  # from the beginning, head included


def open_file(path: Path, name: str, between: tuple[int, int] | None = None) -> OpenedFile:
    """Open a file, or the bytes from one position to another of an uncompressed one."""
    chunks = _read_chunks(path, name, between)
    first: list[bytes] = []
    for chunk in chunks:
        first.append(chunk)
        if sum(map(len, first)) >= HEAD_BYTES:
            break
    return OpenedFile(path, name, b"".join(first)[:HEAD_BYTES], itertools.chain(first, chunks))


def text_suffix(path: Path) -> str:
    """The suffix that names the type of a file: `.jsonl` for `a.jsonl.gz`, `.xml` for `a.xml-p1p41242.bz2`."""
    return inner_suffix(path).partition("-")[0]


def _read_chunks(path: Path, name: str, between: tuple[int, int] | None) -> Iterator[bytes]:
    first, end = between or (0, sys.maxsize)
    with open_bytes(path, CorpusError, name=name) as stream:
        if first:
            stream.seek(first)
        left = end - first
        while chunk := stream.read(min(CHUNK_BYTES, left)):
            left -= len(chunk)
            yield chunk
