"""Digests of bytes and files."""

import hashlib
import os
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MAX_PENDING = 4  # blocks in memory that were given and not read yet


def digest(chunks: Iterator[bytes]) -> str:
    """A stable 128-bit digest (BLAKE2b) of a stream of bytes, in hexadecimal."""
    state = hashlib.blake2b(digest_size=16)
    for chunk in chunks:
        state.update(chunk)
    return state.hexdigest()


def digest_arrays(arrays: Mapping[str, NDArray[Any]]) -> str:
    """The digest of arrays with their names, types and shapes, in any order."""
    state = hashlib.blake2b(digest_size=16)
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        state.update(f"{name} {array.dtype.str} {array.shape};".encode())
        state.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return state.hexdigest()


def file_digest(path: str | os.PathLike[str]) -> str:
    """The digest of a file's bytes."""
    with open(path, "rb") as stream:
        return digest(iter(lambda: stream.read(1 << 20), b""))


class ParallelDigest:
    """A digest computed in a thread while the same bytes are written. A context manager."""

    def __init__(self) -> None:
        self._state = hashlib.blake2b(digest_size=16)
        self._pending: deque[Future[None]] = deque()
        self._thread = ThreadPoolExecutor(1)  # without the interpreter's lock, as writing is

    def __enter__(self) -> "ParallelDigest":
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()

    def update(self, data: Any) -> None:
        """Add bytes, which must not change before the end."""
        if len(self._pending) >= _MAX_PENDING:
            self._pending.popleft().result()
        self._pending.append(self._thread.submit(self._state.update, data))

    def hexdigest(self) -> str:
        """The digest of everything, as `digest` gives it."""
        while self._pending:
            self._pending.popleft().result()
        return self._state.hexdigest()
