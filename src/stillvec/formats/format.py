"""The functions that define a format."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Format:
    """How to recognize, read and write a format, and the file suffixes that stand for it."""

    recognize: Callable[[Path, bytes], bool]  # from the path and the first bytes, uncompressed
    read: Callable[[Path], WordVectors]
    write: Callable[[WordVectors, Path], None]
    suffixes: tuple[str, ...] = ()  # "" is a name without a suffix
