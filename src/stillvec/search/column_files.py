"""Columns in files: arrays and texts that are appended to while an index is built, and mapped afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError
from stillvec.vocabulary.token_cache import concatenate_ranges

_BLOCK_BYTES = 1 << 24


class ColumnFile:
    """Rows of one type, appended to a file."""

    def __init__(self, path: Path, dtype: Any, width: int | None = None) -> None:
        self._path, self.dtype, self._width = path, np.dtype(dtype), width
        self._stream = open(path, "wb")  # noqa: SIM115
        self.n_rows = 0

    def append(self, rows: NDArray[Any]) -> None:
        block = np.ascontiguousarray(rows, self.dtype)
        self._stream.write(block.data.cast("B") if block.size else b"")
        self.n_rows += len(block)

    def map(self) -> NDArray[Any]:
        """The rows so far as an array."""
        self._stream.flush()
        shape = (self.n_rows,) if self._width is None else (self.n_rows, self._width)
        return np.memmap(self._path, self.dtype, "r", shape=shape) if all(shape) else np.zeros(shape, self.dtype)

    def close(self) -> None:
        self._stream.close()


class TextFile:
    """Texts, appended to a file of bytes and one of their ends."""

    def __init__(self, path: Path) -> None:
        self._bytes = ColumnFile(path.with_suffix(".bytes"), np.uint8)
        self._ends = ColumnFile(path.with_suffix(".ends"), np.int64)

    def extend(self, texts: Sequence[str]) -> None:
        encoded = [text.encode("utf-8", "replace") for text in texts]
        self.append(np.frombuffer(b"".join(encoded), np.uint8), np.array([*map(len, encoded)], np.int64))

    def append(self, data: NDArray[np.uint8], lengths: NDArray[np.int64]) -> None:
        self._ends.append(self._bytes.n_rows + np.cumsum(lengths, dtype=np.int64))
        self._bytes.append(data)

    def map(self) -> TextArray:
        return TextArray(self._bytes.map(), self._ends.map())

    def close(self) -> None:
        self._bytes.close()
        self._ends.close()


@dataclass(frozen=True)
class TextArray:
    """Texts in one array of bytes."""

    data: NDArray[np.uint8]  # UTF-8
    ends: NDArray[np.int64]  # (n,)

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, row: int) -> str:
        start = int(self.ends[row - 1]) if row else 0
        try:
            return bytes(self.data[start : int(self.ends[row])]).decode()
        except UnicodeDecodeError as error:
            raise FormatError.expected(
                "UTF-8", f"damaged text ({error.reason})", where="texts", code="damaged"
            ) from None

    def __iter__(self) -> Iterator[str]:
        return map(self.__getitem__, range(len(self)))

    def are_valid(self) -> bool:
        """Whether the ends ascend to the end of the bytes."""
        last = int(self.ends[-1]) if len(self.ends) else 0
        first = int(self.ends[0]) if len(self.ends) else 0
        return first >= 0 and last == len(self.data) and bool((self.ends[1:] >= self.ends[:-1]).all())

    def iterate_rows(self, rows: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
        """The bytes and lengths of these rows, in blocks."""
        starts = np.where(rows > 0, self.ends[rows - 1], 0) if len(rows) else rows
        lengths = self.ends[rows] - starts
        block = np.cumsum(lengths) // _BLOCK_BYTES
        for part in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(block)) + 1):
            yield self.data[concatenate_ranges(starts[part], lengths[part])], lengths[part]
