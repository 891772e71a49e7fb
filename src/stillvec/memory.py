"""The memory of this process, and what is left for it: of the machine, its control groups, and the limits of ulimit."""

from __future__ import annotations

import mmap
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from stillvec.errors import StillvecError
from stillvec.progress import format_bytes

_CONTROL_GROUPS = Path("/sys/fs/cgroup")
_UNKNOWN = 4 << 30  # free, where the system does not say
_WATCH_SECONDS = 0.5
_SWITCH = "STILLVEC_MEMORY_CHECK"  # 0: try it anyway
RESERVE = 48 << 20  # bytes that stay free, to write a checkpoint and to end in order


class _ControlGroupFiles(NamedTuple):
    limit: str
    used: str
    cached: tuple[str, str]  # in memory.stat: pages of files that were not, and that were used lately


_VERSIONS = {
    1: _ControlGroupFiles(
        "memory.limit_in_bytes", "memory.usage_in_bytes", ("total_inactive_file", "total_active_file")
    ),
    2: _ControlGroupFiles("memory.max", "memory.current", ("inactive_file", "active_file")),
}


def free_memory() -> int:
    """Bytes that this process can take without swapping: of the machine, within its control groups and ulimits.

    Where the system does not say what is available, half of the memory, or 4 GB if that is unknown.
    """
    free = _free_in_machine()
    return max(0, min([free, *_free_in_control_groups(free), *_free_in_limits()]))


def _free_in_machine() -> int:
    with suppress(OSError, KeyError, ValueError):
        return _read_fields(Path("/proc/meminfo"))["MemAvailable:"] * 1024
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return _UNKNOWN


def _free_in_control_groups(in_machine: int) -> Iterator[int]:
    """Below the limit of each group of this process that has less than the machine; pages of files can be dropped."""
    for version, folder in _control_groups():
        files = _VERSIONS[version]
        with suppress(OSError, ValueError):
            limit, used = (int((folder / name).read_text()) for name in (files.limit, files.used))
            if limit - used >= in_machine:  # the statistics take milliseconds
                continue
            statistics = _read_fields(folder / "memory.stat")
            unused, lately = (statistics.get(name, 0) for name in files.cached)
            yield limit - used + unused + lately // 2


def _control_groups() -> Iterator[tuple[int, Path]]:
    """The version and the folder of each group with a limit on memory, from the innermost to the outermost."""
    lines = ["0::/"]  # a container sees its own group as the root
    with suppress(OSError):
        lines += Path("/proc/self/cgroup").read_text().splitlines()
    seen = set()
    for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if controllers and "memory" not in controllers.split(","):
            continue
        version, root = (1, _CONTROL_GROUPS / "memory") if controllers else (2, _CONTROL_GROUPS)
        inner = root / path.lstrip("/")
        for folder in (inner, *inner.parents):
            if folder.is_relative_to(root) and folder not in seen:
                seen.add(folder)
                yield version, folder


def _free_in_limits() -> Iterator[int]:
    """Below the limits of the address space and of the data (ulimit -v and -d)."""
    with suppress(ImportError, OSError, KeyError, ValueError):
        import resource

        status = _read_fields(Path("/proc/self/status"))
        for kind, field in ((resource.RLIMIT_AS, "VmSize:"), (resource.RLIMIT_DATA, "VmData:")):
            limit = resource.getrlimit(kind)[0]
            if limit != resource.RLIM_INFINITY:
                yield limit - status[field] * 1024


def resident_memory() -> int:
    """Bytes of this process in memory now; its peak, or 0, where the system does not report it."""
    with suppress(OSError, KeyError, ValueError):
        return _read_fields(Path("/proc/self/status"))["VmRSS:"] * 1024
    return peak_memory()


def peak_memory() -> int:
    """Bytes of this process in memory at its peak; 0 where the system does not report it (Windows)."""
    with suppress(OSError, KeyError, ValueError):
        return _read_fields(Path("/proc/self/status"))["VmHWM:"] * 1024
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def reset_peak() -> None:
    """Measure the peak from now on; only Linux can: elsewhere it is that of the whole process so far."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _read_fields(path: Path) -> dict[str, int]:
    """The numbers of a file of lines with a name and a number."""
    words = (line.split() for line in path.read_text().splitlines())
    return {line[0]: int(line[1]) for line in words if len(line) > 1 and line[1].isdigit()}


def release_pages(array: Any) -> None:
    """Drop what was read of a memory-mapped, read-only array: it is read from the file again when it is needed."""
    mapped = getattr(array, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        with suppress(OSError, ValueError):
            mapped.madvise(mmap.MADV_DONTNEED)


def require_memory(n_bytes: int, purpose: str, cure: str = "close other programs") -> None:
    """Refuse what needs more memory than is free, before the system ends the process for it."""
    if is_short(n_bytes):
        raise StillvecError(
            f"{purpose} needs about {format_bytes(n_bytes)} of memory, but only {format_bytes(free_memory())} "
            f"are free; {cure}, or set {_SWITCH}=0 to try it anyway.",
            code="out-of-memory",
        )


def is_short(n_bytes: int) -> bool:
    """Whether less memory than that is free; never, if the user turned the check off."""
    return os.environ.get(_SWITCH) != "0" and free_memory() < n_bytes


class MemoryWatch:
    """Whether less memory is free than must stay free; looks at most twice a second."""

    def __init__(self) -> None:
        self._next = 0.0

    def is_short(self, floor: int) -> bool:
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + _WATCH_SECONDS
        return is_short(floor)
