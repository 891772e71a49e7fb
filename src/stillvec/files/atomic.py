"""Atomic writes: a file or folder appears complete under its name, or not at all.

Temporary names are created with the mode of any new file or folder, so the operating system applies the umask. The
umask itself is never read: `os.umask` can only be read by setting it, which other threads would notice.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stillvec.errors import UsageError


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` on success, delete it on failure.

    A pipe or a device (/dev/stdout) is yielded as it is: renaming onto it would replace it.
    """
    target = Path(path)
    if target.is_dir():
        raise UsageError.expected("a file name", f"the folder {target}", where="output", path=target, code="is-folder")
    if target.exists() and not target.is_file():
        yield target
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    part = _temporary_name(target, "part")
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield part
        part.replace(target)
    except OSError as error:
        error.filename = error.filename or str(target)  # "No space left on device" does not say where
        raise
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | os.PathLike[str], marker: str) -> Iterator[Path]:
    """Like `atomic_file`, for a folder; an existing one is replaced only if it is empty or contains `marker`."""
    target = Path(path)
    check_replaceable(target, marker)
    part = create_part_folder(target)
    try:
        yield part
        if target.exists():
            _replace_folder(part, target)
        else:
            part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def create_part_folder(target: Path) -> Path:
    """Create a temporary folder beside `target`, to be renamed to it."""
    part = _temporary_name(target, "part")
    part.mkdir(parents=True)
    return part


def check_replaceable(path: str | os.PathLike[str], marker: str) -> None:
    """Refuse to overwrite a file, or a folder that stillvec did not write."""
    target = Path(path)
    if not target.exists():
        return
    if not target.is_dir():
        raise UsageError.expected("a folder name", f"the file {target}", where="output", path=target, code="is-file")
    if any(target.iterdir()) and not (target / marker).exists():
        raise UsageError.conflict(
            f"The folder {target} contains other files (no {marker}) and is not overwritten",
            cure="choose another name",
            path=target,
        )


def _replace_folder(part: Path, target: Path) -> None:
    old = _temporary_name(target, "old")
    target.rename(old)
    try:
        part.rename(target)
    except OSError:
        old.rename(target)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _temporary_name(target: Path, suffix: str) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.{suffix}")
