"""Runs of signs between blanks ("house,", "the"): text repeats them, so that what is known of one is known of many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

_ALONE = ("'s", "'S", "’s", "’S")


class TokenInterner(dict[str, int]):
    """A number for each run, as they come."""

    def __init__(self, runs: Iterable[str] = ()) -> None:
        super().__init__((run, number) for number, run in enumerate(runs))
        self.characters = sum(map(len, self))  # of all runs: a corpus may have few and long ones
        self._new: list[str] = []

    def __missing__(self, run: str) -> int:
        number = self[run] = len(self)
        self.characters += len(run)
        self._new.append(run)
        return number

    def of(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The numbers of the texts' runs, one text after the other, and how many each has."""
        held = np.fromiter((text.count(" ") for text in texts), np.int64, len(texts)) + 1
        runs = chain.from_iterable(text.split(" ") for text in texts)  # of one text at a time, which a cache holds
        numbers = np.fromiter(map(self.__getitem__, runs), np.int64, int(held.sum()))
        return numbers, held

    def taken(self) -> list[str]:
        """The runs that are new since the last call."""
        new, self._new = self._new, []
        return new


def needs_slow_path(
    texts: Sequence[str], numbers: NDArray[np.int64], held: NDArray[np.int64], plain: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Texts with a run that is not plain, or that begin with "'s": that is a word only there, or behind another."""
    odd = np.fromiter((text.startswith(_ALONE) for text in texts), bool, len(texts))
    odd[np.repeat(np.arange(len(texts)), held)[~plain[numbers]]] = True
    return odd
