"""Atomic writes and checksums: a file or folder appears whole, under its name, or not at all."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stillvec.errors import UsageError


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path beside `path`; on success it takes the name, on failure it is gone.

    A pipe or a device (/dev/stdout) is given as it is: renaming onto it would take its place.
    """
    target = Path(path)
    if target.is_dir():
        raise UsageError(f"The output {target} is a folder, and a file is to be written; give another name.")
    if target.exists() and not target.is_file():
        yield target
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.chmod(0o666 & ~_umask())
        part.replace(target)
    except OSError as error:
        error.filename = error.filename or str(target)  # a write that found no room does not say where
        raise
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | os.PathLike[str], marker: str) -> Iterator[Path]:
    """Like `atomic_file`, for a folder; an existing one is replaced only if it holds `marker` or is empty."""
    target = Path(path)
    check_replaceable(target, marker)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part"))
    try:
        yield part
        open_to_all(part)
        if target.exists():
            old = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=".old"))
            target.rename(old / "folder")
            try:
                part.rename(target)
            except OSError:
                (old / "folder").rename(target)
                raise
            finally:
                shutil.rmtree(old, ignore_errors=True)
        else:
            part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def open_to_all(folder: Path) -> None:
    """As a folder is that was made by name: a temporary one is its owner's only."""
    folder.chmod(0o777 & ~_umask())


def check_replaceable(path: str | os.PathLike[str], marker: str) -> None:
    """Refuse early to overwrite what is not ours: a file, or a folder of other things."""
    target = Path(path)
    if not target.exists():
        return
    if not target.is_dir():
        raise UsageError(f"The output {target} is a file, and a folder is to be written; give another name.")
    if any(target.iterdir()) and not (target / marker).exists():
        raise UsageError(f"The folder {target} holds other things (no {marker}) and is left alone; give another name.")


def digest(chunks: Iterator[bytes]) -> str:
    """A short, stable name for a stream of bytes."""
    state = hashlib.blake2b(digest_size=16)
    for chunk in chunks:
        state.update(chunk)
    return state.hexdigest()


def file_digest(path: str | os.PathLike[str]) -> str:
    with open(path, "rb") as stream:
        return digest(iter(lambda: stream.read(1 << 20), b""))


def cache_folder() -> Path:
    """What only costs time to make again: $STILLVEC_CACHE, or the user's cache folder."""
    place = os.environ.get("STILLVEC_CACHE")
    return Path(place) if place else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "stillvec"


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
