"""Statistics on their way to the disk while the vectors are computed from them: both take seconds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from numpy.typing import NDArray

from stillvec.files import FolderLayout, ParallelDigest, early_folder, sync_path
from stillvec.formats.tensors import write_tensors


class EarlyStatistics:
    """Begins to write arrays, for the folder of a result, in a thread; they must not change. A context manager."""

    def __init__(self, folder: Path, layout: FolderLayout, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = arrays
        with ExitStack() as stack:
            self._file = stack.enter_context(early_folder(folder, layout)) / "statistics"
            self._written = stack.enter_context(ThreadPoolExecutor(1, "statistics")).submit(self._write)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def has(self, arrays: Mapping[str, NDArray[Any]]) -> bool:
        """Whether these are the arrays that it writes."""
        return arrays.keys() == self._arrays.keys() and all(arrays[name] is self._arrays[name] for name in arrays)

    def move(self, path: Path) -> str:
        """Wait for the end and give the file this name; returns the digest. Raises what prevented the writing."""
        digest = self._written.result()
        os.replace(self._file, path)
        return digest

    def _write(self) -> str:
        with ParallelDigest() as digest:
            write_tensors(self._file, self._arrays, digest)
            sync_path(self._file)
            return digest.hexdigest()
