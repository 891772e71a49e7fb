"""Digests of bytes and files."""

import hashlib
import os
from collections.abc import Iterator


def digest(chunks: Iterator[bytes]) -> str:
    """A stable 128-bit digest (BLAKE2b) of a stream of bytes, in hexadecimal."""
    state = hashlib.blake2b(digest_size=16)
    for chunk in chunks:
        state.update(chunk)
    return state.hexdigest()


def file_digest(path: str | os.PathLike[str]) -> str:
    """The digest of a file's bytes."""
    with open(path, "rb") as stream:
        return digest(iter(lambda: stream.read(1 << 20), b""))
