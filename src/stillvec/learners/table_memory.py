"""Tables with one row per word, in memory or, where memory is short, in a file; estimates of what methods need."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, runtime_checkable

from stillvec.errors import StillvecError
from stillvec.files.private_files import create_private_folder
from stillvec.files.user_cache import cache_folder
from stillvec.progress import format_bytes

if TYPE_CHECKING:
    import torch

    from stillvec.teachers import Teacher
    from stillvec.vocabulary import Vocabulary

_MEMORY_SHARE = 0.25  # of the free memory that one table may take
_CONTROL_GROUP = Path("/sys/fs/cgroup")
_log = logging.getLogger(__name__)


class PeakEstimate(NamedTuple):
    """Memory at one moment of finishing a method, beside its accumulators.

    Measured on random states (40,000 words, MiniLM's 384 dimensions and 7 layers).
    """

    per_table: float = 0  # tables of words x dimensions, for each layer of each accumulator
    tables: float = 0  # such tables besides
    word_bytes: int = 0  # per word that was read
    pair_bytes: int = 0  # per pair of the 4,000 most frequent words

    def total(self, table: int, n_tables: int, n_words: int, n_pairs: int) -> int:
        """Bytes, where a table takes `table` bytes."""
        besides = self.word_bytes * n_words + self.pair_bytes * n_pairs
        return int((self.per_table * n_tables + self.tables) * table) + besides


@runtime_checkable
class HasFinishMemory(Protocol):
    """A learner that states what finishing takes, moment by moment."""

    FINISH_MEMORY: ClassVar[tuple[PeakEstimate, ...]]


@runtime_checkable
class GrowsWithText(Protocol):
    """A spec whose accumulator also grows with the text."""

    def text_bytes(self, teacher: Teacher, vocabulary: Vocabulary, n_words: int, n_sentences: int) -> int:
        """Bytes for so many words and sentences."""


def word_table(n_words: int, dim: int, device: torch.device, fill: float = 0.0) -> torch.Tensor:
    """A table (V, D) in fp32. Its file, if it has one, is unlinked at once, so that none is left behind."""
    import torch  # finishing a result needs none

    size = 4 * n_words * dim
    if device.type != "cpu" or size <= _MEMORY_SHARE * free_memory() or sys.platform == "win32":
        return torch.full((n_words, dim), fill, device=device)
    folder = create_private_folder(cache_folder())
    free = shutil.disk_usage(folder).free
    if size > free:
        raise StillvecError(
            f"A table of {n_words:,} words takes {format_bytes(size)}, more than the free memory allows, and {folder} "
            f"has {format_bytes(free)} free; give fewer --max-words, or another folder in $STILLVEC_CACHE."
        )
    _log.warning("a table of %s is in a file in %s, which is slower: memory is short", format_bytes(size), folder)
    with tempfile.NamedTemporaryFile(dir=folder, prefix="table-") as file:
        table = torch.from_file(file.name, shared=True, size=n_words * dim, dtype=torch.float32).view(n_words, dim)
    return table.fill_(fill) if fill else table


def free_memory() -> int:
    """Bytes available without swapping, as Linux reports, within the limit of a container.

    Elsewhere half of the memory, or 4 GB if that is unknown.
    """
    with suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1]) * 1024
        return min(available, _container_memory(available))
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return 4 << 30


def _container_memory(unlimited: int) -> int:
    """Bytes below the memory limit of this control group (version 2); its file cache can be freed."""
    with suppress(OSError, ValueError, StopIteration):
        limit, used = (int((_CONTROL_GROUP / name).read_text()) for name in ("memory.max", "memory.current"))
        lines = (_CONTROL_GROUP / "memory.stat").read_text().splitlines()
        cached = int(next(line for line in lines if line.startswith("inactive_file ")).split()[1])
        return max(0, limit - used + cached)
    return unlimited
