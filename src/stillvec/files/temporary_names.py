"""Temporary names say which process of which machine owns them, so that what killed runs left can be removed."""

import hashlib
import os
import platform
import re
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

MAX_NAME = 255  # bytes of a file name
CHECKPOINT_FILE = "checkpoint"  # in a partial folder: the path of the checkpoint that continues it
_WEEK, _DAY = 7 * 86400.0, 86400.0  # seconds after which a name of another machine, or of our number, is abandoned
_STARTED = time.time()
_NAME = re.compile(r"\..*\.([0-9a-f]{8})\.(\d+)\.[0-9a-f]{3,8}\.(part|ready|tmp)", re.DOTALL)


def temporary_name(target: Path, suffix: str = "part") -> Path:
    """A hidden name beside `target`: `.NAME.MACHINE.PROCESS.RANDOM.part`."""
    end = f".{name_machine()}.{os.getpid()}.{secrets.token_hex(4)}.{suffix}"
    return target.with_name(f".{cut_name(target.name, MAX_NAME - 1 - len(end))}{end}")


def cut_name(name: str, n_bytes: int) -> str:
    """The first bytes of a file name."""
    return os.fsdecode(os.fsencode(name)[:n_bytes])


def is_temporary(name: str) -> bool:
    """Whether a name is one of `temporary_name`."""
    return _NAME.fullmatch(name) is not None


@cache
def name_machine() -> str:
    """This machine and its process numbers: a folder may be shared by several machines and containers."""
    space = ""
    with suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")
    return hashlib.blake2b(f"{platform.node()}{space}".encode(), digest_size=4).hexdigest()


def find_abandoned(folder: Path) -> Iterator[Path]:
    """What killed runs left in a folder: names whose process is gone, or old ones of other machines."""
    with suppress(OSError):
        for entry in sorted(folder.iterdir()):
            match = _NAME.fullmatch(entry.name)
            if match is None or match[3] == "ready" or _is_owned(entry, match[1], int(match[2])):
                continue
            if not is_continued(entry):
                yield entry


def remove_abandoned(folder: Path) -> None:
    """Remove what killed runs left in a folder."""
    for path in find_abandoned(folder):
        remove_path(path)


def remove_path(path: Path) -> None:
    """Remove a file or a folder, if that is possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def is_continued(part: Path) -> bool:
    """Whether there is a checkpoint that continues this partial folder."""
    try:
        return Path(os.fsdecode((part / CHECKPOINT_FILE).read_bytes())).exists()
    except OSError:
        return False


@contextmanager
def scratch_folder(folder: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """A private folder in `folder` (default: $TMPDIR), removed at the end, or by a later run if this one is killed."""
    root = Path(folder or tempfile.gettempdir())
    remove_abandoned(root)
    scratch = temporary_name(root / "stillvec", "tmp")
    scratch.mkdir(mode=0o700)
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _is_owned(path: Path, machine: str, process: int) -> bool:
    try:
        changed: float = max(entry.stat().st_mtime for entry in (path, *(path.iterdir() if path.is_dir() else ())))
    except OSError:  # just removed, or of another user
        return True
    if machine != name_machine():
        return time.time() - changed < _WEEK
    if process == os.getpid():  # in a container, an earlier process may have had our number
        return changed > _STARTED - _DAY
    return _is_running(process)


def _is_running(process: int) -> bool:
    if sys.platform == "win32":  # where os.kill(process, 0) would end the process
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # of another user
        return True
    return True
