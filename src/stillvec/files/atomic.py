"""Atomic writes: a file or folder appears complete under its name, or not at all, and is on the disk by then.

Temporary names are created with the mode of any new file or folder, so the operating system applies the umask. The
umask itself is never read: `os.umask` can only be read by setting it, which other threads would notice.
"""

import ctypes
import glob
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from stillvec.errors import UsageError
from stillvec.files.folder_layout import INSIDE, FolderLayout, has_usable_parent
from stillvec.files.temporary_names import is_temporary, remove_abandoned, temporary_name

_NEW_NAMES = ".names.json"  # in a complete new folder: the files that it had before they were moved
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # of Linux


@contextmanager
def atomic_file(path: str | os.PathLike[str], *, sync: bool = True) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` on success, delete it on failure.

    A pipe or a device (/dev/stdout) is yielded as it is: renaming onto it would replace it. Without `sync`, a power cut
    may leave an empty file, which suits a cache.
    """
    target = Path(path)
    if target.is_dir():
        raise UsageError.expected("a file name", f"the folder {target}", where="output", path=target, code="is-folder")
    if target.exists() and not target.is_file():
        yield target
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    part = temporary_name(target)
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield part
        if sync:
            sync_path(part)
        part.replace(target)
        if sync:
            sync_path(target.parent)
    except OSError as error:
        _name_place(error, target)
        raise
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | os.PathLike[str], layout: FolderLayout) -> Iterator[Path]:
    """Like `atomic_file`, for a folder: of an existing one only the files of `layout` are replaced.

    A folder that holds only these is exchanged as a whole. Otherwise (other files in it, a mount point, the current
    folder, a parent that cannot be written) the new files are renamed into it one by one, the one that makes it
    complete last; `recover_folder` finishes that if the process is killed.
    """
    target = Path(os.path.realpath(path))
    recover_folder(target, layout)
    part = create_part_folder(_place_part(target, layout))
    try:
        yield part
        _sync_tree(part)
        _install(part, target, layout)
    except OSError as error:
        _name_place(error, target)
        raise
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextmanager
def early_folder(path: str | os.PathLike[str], layout: FolderLayout) -> Iterator[Path]:
    """A temporary folder on the disk of a later `atomic_folder`, for files of it that are written before."""
    target = Path(os.path.realpath(path))
    part = create_part_folder(_place_part(target, layout))
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _place_part(target: Path, layout: FolderLayout) -> Path:
    """Beside which name the parts of a folder are written."""
    return target / INSIDE[1:] if target.is_dir() and not _can_exchange(target, layout) else target


def create_part_folder(target: Path) -> Path:
    """Create a temporary folder beside `target`, to be renamed to it."""
    part = temporary_name(target)
    part.mkdir(parents=True)
    return part


def recover_folder(target: Path, layout: FolderLayout) -> None:
    """Finish or undo what a killed run left in the middle of replacing a folder, and remove what others left."""
    if target.is_dir():
        for ready in sorted(path for path in target.glob(".*.ready") if is_temporary(path.name)):
            _move_files(ready, target, layout)
        remove_abandoned(target)
    else:  # version 0.1 renamed the old folder away first
        pattern = f".{glob.escape(target.name)}.????????.old"
        for old in sorted(target.parent.glob(pattern), key=lambda path: path.stat().st_mtime)[-1:]:
            if layout.is_ours(old):
                old.rename(target)
    remove_abandoned(target.parent)


def sync_path(path: Path) -> None:
    """Wait until a file or folder is on the disk; a folder where the system allows it."""
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _name_place(error: OSError, target: Path) -> None:
    if error.errno is not None:  # "No space left on device" does not say where
        error.filename = error.filename or str(target)


def _can_exchange(target: Path, layout: FolderLayout) -> bool:
    return (
        has_usable_parent(target)
        and any(target.iterdir())  # an empty folder keeps its rights, and who is in it stays there
        and not layout.find_others(target)
        and not os.path.samefile(target, os.getcwd())
    )


def _install(part: Path, target: Path, layout: FolderLayout) -> None:
    if not target.exists():
        part.rename(target)
        sync_path(target.parent)
        return
    if part.parent != target:
        if _can_exchange(target, layout) and _exchange(part, target):
            sync_path(target.parent)
            return
        inner = temporary_name(target / INSIDE[1:])
        try:
            part = Path(shutil.move(part, inner))
        except BaseException:
            shutil.rmtree(inner, ignore_errors=True)
            raise
    names = [path.relative_to(part).as_posix() for path in part.rglob("*") if not path.is_dir()]
    (part / _NEW_NAMES).write_text(json.dumps(names), "utf-8")
    sync_path(part / _NEW_NAMES)
    ready = part.rename(part.with_suffix(".ready"))
    try:
        _move_files(ready, target, layout)
    except BaseException:  # interrupted: complete it all the same
        with suppress(OSError):
            _move_files(ready, target, layout)
        raise


def _move_files(ready: Path, target: Path, layout: FolderLayout) -> None:
    """Move a complete new folder's files into `target`; may be repeated from any point."""
    marker = layout.names[0]
    try:
        new = json.loads((ready / _NEW_NAMES).read_bytes())
    except (OSError, ValueError):
        new = None  # everything was moved
    if isinstance(new, list) and (ready / marker).exists():
        (target / marker).unlink(missing_ok=True)  # the folder is incomplete until the new one is there
        for name in {*layout.names} - {*new}:
            (target / name).unlink(missing_ok=True)
        for file in sorted(path for path in ready.rglob("*") if path.is_file()):
            name = file.relative_to(ready).as_posix()
            if name not in (marker, _NEW_NAMES):
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                file.replace(target / name)
        sync_path(target)
        (ready / marker).replace(target / marker)
        sync_path(target)
    shutil.rmtree(ready, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step, where the system and the file system can."""
    if sys.platform != "linux":
        return False
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    return bool(rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0)


def _sync_tree(folder: Path) -> None:
    for path in (*folder.rglob("*"), folder):
        sync_path(path)
