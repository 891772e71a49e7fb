"""Which part of the reading belongs to which process: a corpus is a stream of chunks, and each is read once."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
WORDS_PER_CHUNK = 4096  # of words that are read alone


@dataclass(frozen=True)
class Partition:
    """Part `index` of `count`. Chunks are dealt out one by one or, `in_order`, in contiguous stretches of the corpus.

    Chunks stay whole, so that every part reads the batches that a single process would read. Contiguous parts,
    concatenated, are in the order of the corpus, as training needs it; texts beside the corpus then go to the last one.
    """

    index: int = 0
    count: int = 1
    in_order: bool = False

    @property
    def other_share(self) -> float:
        """About which share of other texts is in this part."""
        return (1.0 if self.index == self.count - 1 else 0.0) if self.in_order else 1 / self.count

    def owns_chunk(self, chunk: int, position: float) -> bool:
        """Whether a chunk of the corpus is in this part; `position` is the fraction of the corpus before it."""
        owner = min(int(position * self.count), self.count - 1) if self.in_order else chunk % self.count
        return owner == self.index

    def select_chunks(self, chunks: Iterable[T]) -> Iterator[T]:
        """The chunks of other texts that are in this part."""
        return (chunk for number, chunk in enumerate(chunks) if self._owns_other(number))

    def select_words(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Of the chosen words, which are read alone, whole chunks: those in this part."""
        rows = np.flatnonzero(chosen)
        owned = np.zeros(len(chosen), bool)
        owned[rows] = self._owns_other(np.arange(len(rows)) // WORDS_PER_CHUNK)
        return owned

    def _owns_other(self, chunk: Any) -> Any:
        """Whether a chunk, or each of an array of chunks, is in this part."""
        return (self.count - 1 if self.in_order else chunk % self.count) == self.index
