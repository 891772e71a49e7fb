"""A row a word: in memory, or, where memory is short, in a file that the system keeps in memory as far as it can."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

from stillvec.encoding import format_bytes
from stillvec.errors import StillvecError
from stillvec.files import cache_folder

_SHARE = 0.25  # of the free memory that one table may take


def word_table(words: int, dim: int, device: torch.device, fill: float = 0.0) -> Tensor:
    """(V, D) in fp32. A file in use has no name any more, so that nothing is left behind, however a run ends."""
    size = 4 * words * dim
    if device.type != "cpu" or size <= _SHARE * free_memory():
        return torch.full((words, dim), fill, device=device)
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    room = shutil.disk_usage(folder).free
    if size > room:
        raise StillvecError(
            f"A table of {words:,} words takes {format_bytes(size)}, more than memory has to spare, and {folder} has "
            f"{format_bytes(room)} free; give fewer --max-words, or another folder in $STILLVEC_CACHE."
        )
    with tempfile.NamedTemporaryFile(dir=folder, prefix="table-") as place:
        table = torch.from_file(place.name, shared=True, size=words * dim, dtype=torch.float32).view(words, dim)
    return table.fill_(fill) if fill else table


def free_memory() -> int:
    """Bytes that can be had without pushing others out, as Linux tells; elsewhere, half of what there is."""
    with suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
