"""One run per output: a second one is refused instead of overwriting the first."""

import os
import platform
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from stillvec.errors import UsageError
from stillvec.files.atomic import recover_folder
from stillvec.files.folder_layout import FolderLayout, check_replaceable, is_special, place_beside
from stillvec.files.temporary_names import remove_abandoned

try:
    import fcntl
except ModuleNotFoundError:  # not POSIX: outputs are not locked
    fcntl = None  # type: ignore[assignment]


@contextmanager
def reserve_output(path: str | os.PathLike[str], layout: FolderLayout | None, *, force: bool = False) -> Iterator[None]:
    """Refuse an output that exists or cannot be written, and keep it for this run."""
    check_replaceable(path, layout, force=force)
    with lock_outputs([path], layout):
        yield


@contextmanager
def lock_outputs(paths: Iterable[str | os.PathLike[str]], layout: FolderLayout | None) -> Iterator[None]:
    """Hold a lock for each output, `.NAME.lock` beside it, which the system releases if this process is killed.

    What an earlier run left half replaced is completed first, and what it left half written is removed.
    """
    with ExitStack() as stack:
        for target, path in {os.path.realpath(path): path for path in paths}.items():
            stack.enter_context(_lock(Path(target), path))
            if layout is not None:
                recover_folder(Path(target), layout)
            elif not is_special(path):
                remove_abandoned(Path(target).parent)
        yield


@contextmanager
def _lock(target: Path, path: str | os.PathLike[str]) -> Iterator[None]:
    if fcntl is None or is_special(path):
        yield
        return
    file = place_beside(target, "lock")
    file = file.with_name(f".{file.name.removeprefix('.')}")
    created = [folder for folder in file.parents if not folder.exists()]
    file.parent.mkdir(parents=True, exist_ok=True)
    handle = _open_locked(file, path)
    try:
        yield
    finally:
        with suppress(OSError):
            file.unlink()
        os.close(handle)
        for folder in created:  # if nothing was written there
            with suppress(OSError):
                folder.rmdir()


def _open_locked(file: Path, path: str | os.PathLike[str]) -> int:
    while True:
        handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(handle, 200).decode(errors="replace").strip() or "another process"
            os.close(handle)
            raise UsageError.conflict(
                f"Another run is writing {os.fspath(path)} ({owner})",
                cure="wait until it ends, or choose another name",
                path=path,
            ) from None
        except OSError:  # a file system without locks
            return handle
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), file.stat()):  # else its owner has just removed it
                with suppress(OSError):
                    os.truncate(handle, 0)
                    os.write(handle, f"process {os.getpid()} on {platform.node()}\n".encode())
                return handle
        os.close(handle)
