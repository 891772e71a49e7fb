"""Tables with one row per word: in memory or, where memory is short, in a file that the system caches."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

from stillvec.encoding import format_bytes
from stillvec.errors import StillvecError
from stillvec.files import cache_folder

_MEMORY_SHARE = 0.25  # of the free memory that one table may take
_log = logging.getLogger(__name__)


def word_table(n_words: int, dim: int, device: torch.device, fill: float = 0.0) -> Tensor:
    """A table (V, D) in fp32. Its file, if it has one, is unlinked at once, so that none is left behind."""
    size = 4 * n_words * dim
    if device.type != "cpu" or size <= _MEMORY_SHARE * free_memory() or sys.platform == "win32":
        return torch.full((n_words, dim), fill, device=device)
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if size > free:
        raise StillvecError(
            f"A table of {n_words:,} words takes {format_bytes(size)}, more than the free memory allows, and {folder} "
            f"has {format_bytes(free)} free; give fewer --max-words, or another folder in $STILLVEC_CACHE.",
            code="no-memory",
        )
    _log.warning("a table of %s is in a file in %s, which is slower: memory is short", format_bytes(size), folder)
    with tempfile.NamedTemporaryFile(dir=folder, prefix="table-") as file:
        table = torch.from_file(file.name, shared=True, size=n_words * dim, dtype=torch.float32).view(n_words, dim)
    return table.fill_(fill) if fill else table


def free_memory() -> int:
    """Bytes available without swapping, as Linux reports; elsewhere half of the memory, or 4 GB if that is unknown."""
    with suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1]) * 1024
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return 4 << 30
