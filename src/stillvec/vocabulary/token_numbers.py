"""Numbers of whitespace tokens by their bytes, for many texts at once: several times as fast as a dict of strings.

    "the old house"  ->  74 68 65 20 6f 6c 64 20 68 6f 75 73 65     bytes of all texts, joined by spaces
                         "the" -> (0x656874, 3 << 56)               a key of two integers: 15 bytes and the length
                         key -> slot -> number                      open addressing, linear probing

No string is made of a token that is known, and all steps are array operations. The key is the token itself, so equal
keys are equal tokens. Longer tokens have no key, and a few short ones find no slot: both are left to the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Keys = NDArray[np.uint64]
_SPACE = 32
_LONGEST = 15  # bytes of a key
_PROBES = 8  # slots that a key may be in
_GROWTH = 2  # bits
_MASKS = [(1 << 8 * length) - 1 for length in range(9)]
_LOW = np.array([_MASKS[min(length, 8)] for length in range(_LONGEST + 1)], np.uint64)  # by length
_HIGH = np.array([_MASKS[max(length - 8, 0)] for length in range(_LONGEST + 1)], np.uint64)
_LENGTH = np.array([length << 56 for length in range(_LONGEST + 1)], np.uint64)
_MIX, _OTHER_MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)  # odd, of no pattern


class Tokens(NamedTuple):
    """The tokens of some texts as places in their bytes, and their keys."""

    data: bytes
    starts: Ints  # (N,)
    ends: Ints  # (N,)
    low: Keys  # (N,)
    high: Keys  # (N,)
    n_tokens: Ints  # (T,) of each text

    @property
    def is_short(self) -> NDArray[np.bool_]:
        """Which of them have a key."""
        return np.asarray(self.ends - self.starts <= _LONGEST)

    def strings(self, which: Ints) -> list[str]:
        """Some of them as strings."""
        spans = zip(self.starts[which].tolist(), self.ends[which].tolist(), strict=True)
        return [self.data[start:end].decode("utf-8", "surrogatepass") for start, end in spans]


def split_texts(texts: Sequence[str]) -> Tokens:
    """The tokens between single spaces, as those of `text.split(" ")`."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    data = b" ".join([*encoded, b"\0" * (_LONGEST + 1)])  # room to read the last key
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _SPACE)
    starts = np.empty_like(ends)
    starts[0], starts[1:] = 0, ends[:-1] + 1
    length = np.minimum(ends - starts, _LONGEST)
    words: Any = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))  # eight bytes from each byte on
    low = words[starts] & _LOW[length]
    high = words[starts + 8] & _HIGH[length] | _LENGTH[length]
    text_ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)) + 1) - 1
    return Tokens(data, starts, ends, low, high, np.diff(np.searchsorted(ends, text_ends) + 1, prepend=0))


class TokenNumbers:
    """Numbers by key."""

    def __init__(self) -> None:
        self._bits = 12
        self._slots = np.full(1 << self._bits, -1, np.int32)  # the number in each
        self._low: Keys = np.zeros(1, np.uint64)  # by number; the last is that of none, -1
        self._high: Keys = np.full(1, 255 << 56, np.uint64)
        self._n_keys = 0

    def find(self, low: Keys, high: Keys) -> Ints:
        """The number of each key, -1 where it is not known."""
        slot = self._first_slot(low, high)
        found = self._slots[slot]
        other = np.flatnonzero((self._low[found] != low) | (self._high[found] != high))
        for _ in range(_PROBES - 1):
            taken = found[other] >= 0
            found[other[~taken]] = -1
            other = other[taken]
            if not len(other):
                break
            slot[other] = slot[other] + 1 & len(self._slots) - 1
            now = found[other] = self._slots[slot[other]]
            other = other[(self._low[now] != low[other]) | (self._high[now] != high[other])]
        found[other] = -1
        return found.astype(np.int64)

    def add(self, low: Keys, high: Keys, numbers: Ints) -> None:
        """Add keys that are not in the table; one that is given several times has the same number each time."""
        numbers, first = np.unique(numbers, return_index=True)
        if not len(numbers):
            return
        self._low, self._high = (
            _store(keys, numbers, new[first]) for keys, new in ((self._low, low), (self._high, high))
        )
        self._n_keys += len(numbers)
        if 2 * self._n_keys > len(self._slots):
            numbers = np.concatenate([self._slots[self._slots >= 0], numbers])
            while 2 * self._n_keys > 1 << self._bits:
                self._bits += _GROWTH
            self._slots = np.full(1 << self._bits, -1, np.int32)
        self._place(np.sort(numbers))

    def _place(self, numbers: Ints) -> None:
        """Put keys into the first free slots; low numbers first, which are those of frequent tokens."""
        slot = self._first_slot(self._low[numbers], self._high[numbers])
        for _ in range(_PROBES):
            free = np.flatnonzero(self._slots[slot] < 0)[::-1]
            self._slots[slot[free]] = numbers[free]  # of several the last one stays, which is the lowest
            rest = self._slots[slot] != numbers
            numbers, slot = numbers[rest], slot[rest] + 1 & len(self._slots) - 1
        self._n_keys -= len(numbers)

    def _first_slot(self, low: Keys, high: Keys) -> Ints:
        mixed = (low * _MIX ^ high) * _OTHER_MIX
        return (mixed >> np.uint64(64 - self._bits)).astype(np.int64)


def _store(keys: Keys, numbers: Ints, new: Keys) -> Keys:
    """The keys by number with new ones; the last stays the last."""
    size = int(numbers[-1]) + 2
    if size > len(keys):
        more = np.zeros(max(size, 2 * len(keys)), np.uint64)
        more[: len(keys) - 1], more[-1] = keys[:-1], keys[-1]
        keys = more
    keys[numbers] = new
    return keys
