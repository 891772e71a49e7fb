"""Files and folders that only their owner can read: what is derived from a corpus tells what is in it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from stillvec.files.atomic import atomic_file


def create_private_folder(folder: Path) -> Path:
    """Create a folder and its missing parents for their owner only; a folder that exists keeps its mode."""
    if not folder.is_dir():
        create_private_folder(folder.parent)
        folder.mkdir(0o700, exist_ok=True)
    return folder


def is_private(folder: Path) -> bool:
    """Whether nobody else can write to a folder; always true on Windows, where caches are in the user's profile."""
    if not hasattr(os, "getuid"):
        return True
    with suppress(OSError):
        state = folder.stat()
        return state.st_uid == os.getuid() and not state.st_mode & 0o022
    return False


@contextmanager
def private_file(path: Path, *, sync: bool = True) -> Iterator[Path]:
    """`atomic_file` for a file that only its owner can read."""
    create_private_folder(path.parent)
    with atomic_file(path, sync=sync) as part:
        part.chmod(0o600)
        yield part
