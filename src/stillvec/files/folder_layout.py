"""What a folder format writes: only these files are ever replaced, and only in a folder that is recognizably ours."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stillvec.errors import UsageError
from stillvec.files.digests import digest
from stillvec.files.temporary_names import MAX_NAME, cut_name, is_temporary

INSIDE = ".stillvec"  # prefix of the names of a run inside a folder beside which nothing can be written
_MAX_LISTED = 5


@dataclass(frozen=True)
class FolderLayout:
    """The files of a folder format, first the one that makes it complete, and how to recognize our own folder."""

    names: tuple[str, ...]  # relative paths
    is_ours: Callable[[Path], bool]
    alone: bool = True  # a folder with other files beside ours counts as foreign
    describe: Callable[[Path], str] = lambda folder: f"a folder written {_format_date(folder)}"  # what is there

    def find_others(self, folder: Path) -> list[str]:
        """The entries of a folder that this format does not write."""
        return [*self._walk(folder, "")]

    def _walk(self, folder: Path, prefix: str) -> Iterator[str]:
        for entry in sorted(folder.iterdir()):
            name = prefix + entry.name
            if any(own.startswith(f"{name}/") for own in self.names) and entry.is_dir():
                yield from self._walk(entry, f"{name}/")
            elif (name not in self.names or entry.is_dir()) and not _is_of_run(entry.name):
                yield name

    def is_free(self, folder: Path) -> bool:
        """Whether a folder is empty, or was left in the middle of being replaced."""
        names = [entry.name for entry in folder.iterdir()]
        return all(map(_is_of_run, names)) or any(is_temporary(name) and name.endswith(".ready") for name in names)

    def recognizes(self, folder: Path) -> bool:
        """Whether stillvec wrote a folder."""
        return self.is_ours(folder) and not (self.alone and self.find_others(folder))


def check_replaceable(path: str | os.PathLike[str], layout: FolderLayout | None, *, force: bool = False) -> None:
    """Refuse an output that exists (except with `force`), or that cannot be written.

    Without a layout the output is a file; an empty one may be replaced.
    """
    target = check_place(path)
    if not target.exists():
        return
    if layout is None:
        if target.is_dir():
            raise UsageError.expected("a file name", f"the folder {path}", where="output", path=path, code="is-folder")
        if not force and not is_special(path) and target.stat().st_size:
            raise exists_error(path, f"a file of {target.stat().st_size:,} bytes, written {_format_date(target)}")
        return
    if not target.is_dir():
        raise UsageError.expected("a folder name", f"the file {path}", where="output", path=path, code="is-file")
    blocked = [name for name in layout.names if (target / name).is_dir()]
    if not blocked and (force or layout.is_free(target)):
        return
    if not blocked and layout.recognizes(target):
        raise exists_error(path, layout.describe(target))
    entries = sorted(entry.name for entry in target.iterdir() if not _is_of_run(entry.name))
    more = f" and {len(entries) - _MAX_LISTED:,} more" if len(entries) > _MAX_LISTED else ""
    cure = "choose another name"
    if not blocked:
        cure += f", or replace only {', '.join(layout.names)} in it with --force (force=True)"
    raise UsageError.conflict(
        f"The folder {os.fspath(path)} contains other files, not written by stillvec "
        f"({', '.join(entries[:_MAX_LISTED])}{more}), and is not overwritten",
        cure=cure,
        path=path,
    )


def exists_error(path: str | os.PathLike[str], what: str, reason: str = "") -> UsageError:
    """`PATH exists: WHAT; choose another name ...`"""
    return UsageError(
        f"{os.fspath(path)} exists: {what}{f' {reason}' if reason else ''}; choose another name, or replace it with "
        "--force (force=True).",
        code="exists",
        path=path,
    )


def check_not_input(
    out: str | os.PathLike[str] | None, inputs: Iterable[str | os.PathLike[str]], layout: FolderLayout | None = None
) -> None:
    """Refuse an output that is also an input, or that would replace an input inside it."""
    if out is None or is_special(out):
        return
    target = Path(os.path.realpath(out))
    written = {target, *(target / name for name in (layout.names if layout else ()))}
    for path in inputs:
        if Path(os.path.realpath(path)) in written:
            same = os.path.realpath(path) == str(target)
            message = (
                f"The output {os.fspath(out)} is also an input" if same else f"{out} would replace {path}, an input"
            )
            raise UsageError(f"{message}; choose another name.", code="own-input", path=out)


def check_place(path: str | os.PathLike[str]) -> Path:
    """Refuse a path where nothing can be written; returns where it leads, links followed."""
    try:
        if is_special(path):
            return Path(path)
        target = Path(os.path.realpath(path))
        too_long = next((len(os.fsencode(name)) for name in target.parts if len(os.fsencode(name)) > MAX_NAME), None)
        if too_long is not None:
            what = f"names of at most {MAX_NAME} bytes"
            raise UsageError.expected(what, too_long, where="output", path=path, code="too-long")
        existing = next(place for place in (target, *target.parents) if os.path.lexists(place))
        existing.stat()  # raises an error for a loop of links
    except (OSError, ValueError) as error:  # too long, a loop of links, a NUL
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"Cannot write {os.fspath(path)!r}: {reason}.", path=path) from None
    if existing == target and not target.is_dir():
        existing = target.parent  # the file is replaced
    if not existing.is_dir():
        message = f"Cannot create {os.fspath(path)}: {existing} is a file; choose another name."
        raise UsageError(message, path=path, code="is-file")
    if not os.access(existing, os.W_OK | os.X_OK):
        message = f"Cannot write {os.fspath(path)}: {existing} is read-only; choose another name."
        raise UsageError(message, path=path, code="read-only")
    return target


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a pipe or a device, as /dev/stdout is, which is written as it is."""
    return os.path.exists(path) and not os.path.isdir(path) and not os.path.isfile(path)


def place_beside(path: str | os.PathLike[str], suffix: str) -> Path:
    """`NAME.suffix` beside an output, or inside it where nothing can be written or renamed beside it."""
    target = Path(os.path.realpath(path))
    if target.is_dir() and not has_usable_parent(target):
        return target / f"{INSIDE}.{suffix}"
    name, most = target.name, MAX_NAME - len(suffix) - 10  # room for a temporary name of it
    if len(os.fsencode(name)) > most:
        name = f"{cut_name(name, most - 9)}.{digest(iter([os.fsencode(name)]))[:8]}"
    return target.with_name(f"{name}.{suffix}")


def has_usable_parent(target: Path) -> bool:
    """Whether a folder can be exchanged for one beside it: it is no mount point, and its parent can be written."""
    return not os.path.ismount(target) and os.access(target.parent, os.W_OK | os.X_OK)


def read_object(file: Path) -> dict[str, Any]:
    """A JSON object of a small file; empty if it is none."""
    try:
        value = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _format_date(path: Path) -> str:
    return datetime.datetime.fromtimestamp(path.stat().st_mtime).strftime("%Y-%m-%d %H:%M")


def _is_of_run(name: str) -> bool:
    return is_temporary(name) or name.startswith(f"{INSIDE}.")
