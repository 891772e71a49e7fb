"""Which of many shares of the reading is whose: a corpus is a stream of chunks, and every chunk is read once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
ALONE_AT_ONCE = 4096  # words that are read alone, in a chunk


@dataclass(frozen=True)
class Partition:
    """The share `number` of `of`. Chunks are dealt out one by one, or, `in_order`, in stretches of the corpus.

    Chunks stay whole, so every share reads the batches that one process would read. Stretches, laid end to end, are in
    the order of the corpus: for contexts that are trained on. What is read beside the corpus comes after the last one.
    """

    number: int = 0
    of: int = 1
    in_order: bool = False

    def takes(self, chunk: int, gone: float) -> bool:
        """Whether a chunk of the corpus is in it; `gone` is the share of the corpus before that chunk."""
        return (min(int(gone * self.of), self.of - 1) if self.in_order else chunk % self.of) == self.number

    def dealt(self, chunks: Iterable[T]) -> Iterator[T]:
        """Those of the chunks of other texts that are in it."""
        return (chunk for number, chunk in enumerate(chunks) if self._deals(number))

    def rows(self, wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Those of the words read alone that are in it: whole chunks of them."""
        rows = np.flatnonzero(wanted)
        mine = np.fromiter((self._deals(place // ALONE_AT_ONCE) for place in range(len(rows))), bool, len(rows))
        found = np.zeros(len(wanted), bool)
        found[rows[mine]] = True
        return found

    def _deals(self, number: int) -> bool:
        return (self.of - 1 if self.in_order else number % self.of) == self.number
