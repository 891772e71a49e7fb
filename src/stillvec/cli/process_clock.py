"""How long this command has been running, the start of Python included."""

import os
import time
from pathlib import Path

_started = time.perf_counter()


def start_clock(*, whole_process: bool) -> None:
    """Count from now on or, where the process was started for this command, from its start on."""
    global _started
    _started = time.perf_counter() - (_process_age() if whole_process else 0.0)


def read_clock() -> float:
    """Seconds since the start."""
    return time.perf_counter() - _started


def _process_age() -> float:
    """Seconds since this process started; 0 where the system does not say."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):
        return 0.0
