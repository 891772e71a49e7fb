"""The functions that define a format, and the errors and small readers that formats share."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stillvec.errors import FormatError
from stillvec.files import FolderLayout
from stillvec.vectors import WordVectors

Recognizer = Callable[[Path, bytes], bool]  # from the path and the first bytes, uncompressed


@dataclass(frozen=True)
class Format:
    """How to recognize, read and write a format, and the file suffixes that stand for it."""

    recognize: Recognizer
    read: Callable[[Path], WordVectors]
    write: Callable[[WordVectors, Path], None]
    suffixes: tuple[str, ...] = ()  # "" is a name without a suffix
    layout: FolderLayout | None = None  # of a format that is a folder


def begins_with(magic: bytes) -> Recognizer:
    return lambda path, head: head.startswith(magic)


def contains_files(*names: str) -> Recognizer:
    return lambda path, head: all((path / name).is_file() for name in names)


def damage_error(path: Path, kind: str, problem: object, *, line: int | None = None) -> FormatError:
    """`PATH: expected KIND, got a damaged or truncated file (PROBLEM).`"""
    reason = str(problem).partition("\n")[0].partition(". ")[0].rstrip(".") or type(problem).__name__
    return FormatError.expected(kind, f"a damaged or truncated file ({reason})", path=path, line=line, code="damaged")


def empty_error(path: Path) -> FormatError:
    return FormatError.expected("vectors", "an empty file", path=path, code="empty")


def write_error(path: Path, reason: str, cure: str = "") -> FormatError:
    """`PATH was not written: REASON; CURE.`"""
    return FormatError.conflict(f"{path} was not written: {reason}", cure=cure, path=path)


def require_files(folder: Path, names: Sequence[str], kind: str) -> None:
    for name in names:
        if not (folder / name).is_file():
            raise FormatError.not_found(folder / name, f"in every {kind}")


def read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise damage_error(file, "JSON", error) from None


def decode_text(raw: bytes, file: Path) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise damage_error(file, "UTF-8", error) from None
