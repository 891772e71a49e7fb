"""What a format is: how to recognise it, read it and write it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Format:
    """Three functions and the file endings that mean this format and no other."""

    recognize: Callable[[Path, bytes], bool]  # from the path and the first bytes, uncompressed
    read: Callable[[Path], WordVectors]
    write: Callable[[WordVectors, Path], None]
    endings: tuple[str, ...] = ()  # "" is a name without an ending
