"""Hashes of the character n-grams of fastText, vectorized over words (Bojanowski et al., 2017)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def hash_ngrams(words: Sequence[bytes], shortest: int, longest: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """FNV-1a hashes (of signed bytes, as in fastText) of the n-grams of each `<word>`, and the index of the word."""
    text = np.frombuffer(b"".join([b"<%b>" % word for word in words]), np.int8)
    lengths = np.fromiter((len(word) + 2 for word in words), np.int64, len(words))
    owner = np.repeat(np.arange(len(words)), lengths)
    ends = np.cumsum(lengths)[owner]  # (bytes,) one past the last byte of the word
    starts = (text.view(np.uint8) & 0xC0) != 0x80  # whether a byte starts a character
    first = np.flatnonzero(starts)
    at, hashes = first.copy(), np.full(len(first), 2_166_136_261, np.uint32)
    ngrams: list[tuple[NDArray[np.uint32], NDArray[np.int64]]] = [(hashes[:0], first[:0])]
    for length in range(1, longest + 1):
        alive = at < ends[first]
        first, at, hashes = first[alive], at[alive], hashes[alive]
        if not len(first):
            break
        more = np.ones(len(first), bool)
        while more.any():  # the bytes of one character
            hashes[more] = (hashes[more] ^ text[at[more]].astype(np.uint32)) * np.uint32(16_777_619)
            at[more] += 1
            more &= at < ends[first]
            more[more] = ~starts[at[more]]
        if length >= shortest:
            sign = (length == 1) & ((at == ends[first]) | (first == ends[first] - lengths[owner[first]]))
            ngrams.append((hashes[~sign], owner[first[~sign]]))
    return tuple(map(np.concatenate, zip(*ngrams, strict=True)))  # type: ignore[return-value]
