"""The functions that define a format, and the errors and small readers that formats share."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stillvec.errors import FormatError
from stillvec.files import FolderLayout, file_digest
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


def read_versioned(folder: Path, kind: str, key: str, newest: int, *, cure: str) -> dict[str, Any]:
    """The manifest of a folder that is a `kind`; its version is the value of `key`, `newest` at most."""
    file, code = folder / "manifest.json", f"no-{kind.split()[-1]}"
    if not folder.exists():
        raise FormatError.not_found(folder, f"a {kind}", cure=cure)
    if folder.is_file() or not file.is_file():
        raise FormatError.expected(f"the folder of a {kind}", "something else", path=folder, cure=cure, code=code)
    manifest = read_json(file)
    version = manifest.get(key) if isinstance(manifest, dict) else None
    if type(version) is not int or version < 1:
        got = "vectors of words" if isinstance(manifest, dict) and "format" in manifest else "other content"
        raise FormatError.expected(f"a {kind}", got, path=folder, cure=cure, code=code)
    if version > newest:
        cure = "it was written by a newer stillvec: pip install --upgrade stillvec"
        raise FormatError.expected(f"version 1 to {newest}", version, path=file, cure=cure, code="newer-version")
    return dict(manifest)


def verify_checksums(folder: Path, kind: str, manifest: Mapping[str, Any], known: Collection[str]) -> tuple[str, ...]:
    """Compare files with the checksums in the manifest of their folder; returns the names of these files."""
    checksums = manifest.get("checksums")
    if not isinstance(checksums, dict) or not checksums.keys() <= {*known}:
        raise damage_error(folder / "manifest.json", kind, "no checksums of its files")
    require_files(folder, tuple(checksums), kind)
    for name in checksums:
        verify_file(folder, name, checksums)
    return tuple(checksums)


def verify_file(folder: Path, name: str, checksums: Mapping[str, str]) -> None:
    if (got := file_digest(folder / name)) != checksums.get(name):
        raise FormatError.expected(f"checksum {checksums.get(name)}", got, path=folder / name, code="checksum")


def decode_text(raw: bytes, file: Path) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise damage_error(file, "UTF-8", error) from None
