"""Tables with one row per word, in memory or, where memory is short, in a file; estimates of what methods need."""

from __future__ import annotations

import logging
import shutil
import sys
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, runtime_checkable

from stillvec.errors import StillvecError
from stillvec.files.private_files import create_private_folder
from stillvec.files.user_cache import cache_folder
from stillvec.memory import free_memory
from stillvec.progress import format_bytes

if TYPE_CHECKING:
    import torch

    from stillvec.teachers import Teacher
    from stillvec.vocabulary import Vocabulary

_MEMORY_SHARE = 0.25  # of the free memory that one table may take
_PAIR_WORDS = 4_000
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FinishScale:
    """All that decides how much memory finishing a method takes."""

    vocabulary: Vocabulary
    dim: int  # of the teacher
    n_tables: int = 0  # layers of all accumulators
    n_words: int = 0  # that are read
    n_sentences: int = 0

    @property
    def table(self) -> int:
        """Bytes of a table of words x dimensions."""
        return 4 * len(self.vocabulary) * self.dim


class PeakEstimate(NamedTuple):
    """Memory at one moment of finishing a method, beside its accumulators.

    Measured on random states (40,000 words, MiniLM's 384 dimensions and 7 layers).
    """

    per_table: float = 0  # tables of words x dimensions, for each layer of each accumulator
    tables: float = 0  # such tables besides
    word_bytes: int = 0  # per word that was read
    pair_bytes: int = 0  # per pair of the 4,000 most frequent words
    sentence_rows: float = 0  # rows of dimensions, for each sentence that was read

    def total(self, scale: FinishScale) -> int:
        """Bytes."""
        tables = (self.per_table * scale.n_tables + self.tables) * scale.table
        sentences = self.sentence_rows * 4 * scale.dim * scale.n_sentences
        pairs = self.pair_bytes * min(len(scale.vocabulary), _PAIR_WORDS) ** 2
        return int(tables + sentences) + self.word_bytes * scale.n_words + pairs


@runtime_checkable
class HasFinishMemory(Protocol):
    """A learner that states what finishing takes, moment by moment."""

    FINISH_MEMORY: ClassVar[tuple[PeakEstimate, ...]]


@runtime_checkable
class HasFinishBytes(Protocol):
    """A learner whose memory depends on its settings, or on blocks that it computes."""

    def finish_bytes(self, scale: FinishScale) -> int:
        """Bytes at the peak of finishing, beside its accumulators."""


_DEFAULT_PEAK = (PeakEstimate(2, 3),)


def finish_peak(learner: object, scale: FinishScale) -> int:
    """Bytes at the peak of finishing a method, beside its accumulators."""
    if isinstance(learner, HasFinishBytes):
        return learner.finish_bytes(scale)
    peaks = learner.FINISH_MEMORY if isinstance(learner, HasFinishMemory) else _DEFAULT_PEAK
    return max(peak.total(scale) for peak in peaks)


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
