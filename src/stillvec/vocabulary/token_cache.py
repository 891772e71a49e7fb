"""What is known of runs of signs between blanks, so that a text is read as the runs it is made of; bounded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.vocabulary.token_interner import TokenInterner, needs_slow_path

Ints = NDArray[np.int64]
_MOST = 400_000  # runs that are kept,
_LONGEST = 20_000_000  # characters of them


class TokenCache:
    """Runs, whether each is plain, and what is known of it: a row of numbers of each kind."""

    def __init__(self, kinds: int) -> None:
        self.numbers = TokenInterner()
        self.rows = tuple(RaggedRows() for _ in range(kinds))
        self.row: Ints = np.zeros(0, np.int64)  # where in them each run is
        self.plain: NDArray[np.bool_] = np.zeros(0, bool)
        self._met: Ints = np.zeros(0, np.int64)  # how often, of late
        self.lock = Lock()  # for those who let several threads read

    def __reduce__(self) -> tuple[type[TokenCache], tuple[int]]:
        """What travels or is kept begins anew."""
        return TokenCache, (len(self.rows),)

    def read(
        self, texts: Sequence[str], learn: Callable[[Sequence[str]], None]
    ) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        """The rows of the texts' runs, how many each text has, and which texts are not plain.

        `learn` is given the runs that are new, makes room for them (`grow`) and fills in what is known of them.
        """
        if len(self.numbers) > _MOST or self.numbers.characters > _LONGEST:
            self._forget()
        numbers, held = self.numbers.of(texts)
        if new := self.numbers.taken():
            learn(new)
        if len(numbers) < len(self._met) // 8:
            np.add.at(self._met, numbers, 1)
        else:
            self._met += np.bincount(numbers, minlength=len(self._met))
        return self.row[numbers], held, needs_slow_path(texts, numbers, held, self.plain)

    def grow(self, number: int) -> None:
        """Room for so many runs more."""
        self.row = np.concatenate([self.row, np.zeros(number, np.int64)])
        self.plain = np.concatenate([self.plain, np.ones(number, bool)])
        self._met = np.concatenate([self._met, np.zeros(number, np.int64)])

    def _forget(self) -> None:
        """Half of the runs stay, and of the room for their letters: those met most often, if more than once."""
        often = np.argsort(-self._met, kind="stable")[: _MOST // 2]
        runs = [*self.numbers]
        letters = np.cumsum([len(runs[each]) for each in often.tolist()])
        stay = np.sort(often[(self._met[often] > 1) & (letters <= _LONGEST // 2)])
        self.numbers = TokenInterner(runs[each] for each in stay.tolist())
        for rows in self.rows:
            kept = rows.take(self.row[stay])
            rows.shorten(0)
            rows.extend(*kept)
        self.row, self.plain, self._met = np.arange(len(stay)), self.plain[stay], self._met[stay] // 2


class RaggedRows:
    """Rows of numbers, of different lengths, end to end."""

    def __init__(self) -> None:
        self._flat = np.zeros(1 << 16, np.int32)
        self._ends = np.zeros(1 << 12, np.int64)  # one past the last; row 0 begins at 0
        self._number = 0

    def __len__(self) -> int:
        return self._number

    def extend(self, flat: NDArray[Any], lengths: Ints) -> None:
        begin = int(self._ends[self._number - 1]) if self._number else 0
        ends = begin + np.cumsum(lengths)
        self._flat = _with_room(self._flat, begin + len(flat))
        self._ends = _with_room(self._ends, self._number + len(lengths))
        self._flat[begin : begin + len(flat)] = flat
        self._ends[self._number : self._number + len(lengths)] = ends
        self._number += len(lengths)

    def shorten(self, number: int) -> None:
        self._number = number

    def take(self, numbers: Ints) -> tuple[NDArray[np.int32], Ints]:
        """The rows of these numbers, end to end, and their lengths."""
        ends = self._ends[numbers]
        lengths = ends - np.where(numbers > 0, self._ends[numbers - 1], 0)
        return self._flat[ranges(ends - lengths, lengths)], lengths


def _with_room(array: NDArray[Any], size: int) -> NDArray[Any]:
    if size <= len(array):
        return array
    return np.concatenate([array, np.zeros(max(size, 2 * len(array)) - len(array), array.dtype)])


def sums(values: NDArray[Any], held: Ints) -> Ints:
    """Of so many values after each other."""
    total = np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])
    ends = np.cumsum(held)
    return np.asarray(total[ends] - total[ends - held])


def ranges(starts: Ints, lengths: Ints) -> Ints:
    """start, start + 1, … for each pair, one after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.asarray(np.arange(total) + np.repeat(starts - (ends - lengths), lengths))
