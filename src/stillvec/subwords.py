"""Vectors of arbitrary strings from hashed character n-grams (floret: Boyd & Warmerdam 2022).

`v(s) = mean of T[h(g) mod B] over the n-grams g of <s>, of minn to maxn characters, and <s> itself, and the hashes h`.
The hashes of an n-gram are the first `hash_count` of the four 32-bit numbers of MurmurHash3_x64_128 of its UTF-8; the
whole `<s>` is included, and a second time if it is short enough to be an n-gram, as in floret and spaCy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError

FLORET_SEED = 2166136261  # fixed in floret
_WORDS = 1 << 14  # per block
_ROWS = 1 << 16  # rows of the table per block
_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)

U64 = NDArray[np.uint64]


@dataclass(frozen=True)
class Ngrams:
    """The n-grams of a string and their rows in a table of `buckets` rows."""

    buckets: int
    minn: int = 4
    maxn: int = 5
    hash_count: int = 2
    hash_seed: int = FLORET_SEED
    bow: str = "<"
    eow: str = ">"

    def __post_init__(self) -> None:
        valid = 1 <= self.minn <= self.maxn and 1 <= self.hash_count <= 4 and 1 <= self.buckets < 1 << 31
        if not valid or not 0 <= self.hash_seed < 1 << 32:
            raise UsageError.expected("1 <= minn <= maxn, 1 to 4 hashes, a 32-bit seed and at least one bucket", self)

    def of(self, word: str) -> list[str]:
        """The string between its boundary marks, then its n-grams, short ones first."""
        if not word:
            return []
        key = f"{self.bow}{word}{self.eow}"
        sizes = range(self.minn, min(self.maxn, len(key)) + 1)
        return [key, *(key[at : at + size] for size in sizes for at in range(len(key) - size + 1))]

    def rows(self, words: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Rows of the n-grams of all words, concatenated, and their number per word (n,)."""
        rows, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
        for first in range(0, len(words), _WORDS):
            ngrams = [self.of(word) for word in words[first : first + _WORDS]]
            place: dict[str, int] = {}
            at = [place.setdefault(gram, len(place)) for grams in ngrams for gram in grams]
            buckets = self._hash([*place])  # (unique, hash_count)
            rows.append(buckets[np.array(at, np.int64)].reshape(-1))
            lengths.append(np.array([len(grams) * self.hash_count for grams in ngrams], np.int64))
        return np.concatenate(rows), np.concatenate(lengths)

    def _hash(self, grams: list[str]) -> NDArray[np.int32]:
        halves = murmur3([gram.encode("utf-8", "surrogatepass") for gram in grams], self.hash_seed)  # (n, 2)
        hashes = halves.astype("<u8").view("<u4")[:, : self.hash_count]
        return (hashes % np.uint32(self.buckets)).astype(np.int32)


@dataclass(frozen=True)
class SubwordTable:
    """Vectors of hashed n-grams; the vector of a string is the mean of its rows."""

    ngrams: Ngrams
    matrix: NDArray[Any]  # (B, dim)

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or len(self.matrix) != self.ngrams.buckets:
            raise UsageError.expected(f"a matrix of {self.ngrams.buckets:,} rows", f"shape {self.matrix.shape}")

    @property
    def dim(self) -> int:
        return int(self.matrix.shape[1])

    def vectors(self, words: Sequence[str]) -> NDArray[np.float32]:
        """One row per string (n, dim); zero for the empty string."""
        rows, lengths = self.ngrams.rows(words)
        result = np.zeros((len(words), self.dim), np.float32)
        ends = np.cumsum(lengths)
        cuts = np.flatnonzero(np.diff(ends // _ROWS)) + 1
        for block in np.split(np.arange(len(ends)), cuts):
            present = block[lengths[block] > 0]  # reduceat repeats a row for an empty segment
            if len(present):
                first = int(ends[present[0]] - lengths[present[0]])
                gathered = np.asarray(self.matrix[rows[first : int(ends[present[-1]])]], np.float32)
                sums = np.add.reduceat(gathered, ends[present] - lengths[present] - first, axis=0)
                result[present] = sums / lengths[present, None].astype(np.float32)
        return result


def murmur3(texts: Sequence[bytes], seed: int) -> U64:
    """MurmurHash3_x64_128 (Appleby 2011) of many texts (n, 2), vectorized over texts of equal length."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    result = np.zeros((len(texts), 2), np.uint64)
    for length in np.unique(lengths).tolist():
        chosen = np.flatnonzero(lengths == length)
        padded = np.zeros((len(chosen), 16 * (length // 16 + 1)), np.uint8)  # zero padding does not change the hash
        joined = b"".join([texts[at] for at in chosen.tolist()])
        padded[:, :length] = np.frombuffer(joined, np.uint8).reshape(len(chosen), length)
        with np.errstate(over="ignore"):
            result[chosen] = _murmur3(padded.view("<u8").astype(np.uint64), length, seed)
    return result


def _murmur3(blocks: U64, length: int, seed: int) -> U64:
    h1 = np.full(len(blocks), seed, np.uint64)
    h2 = h1.copy()
    last = blocks.shape[1] - 2
    for at in range(0, last, 2):
        h1 = _rotate_left(h1 ^ _mix(blocks[:, at], _C1, 31, _C2), 27) + h2
        h1 = h1 * np.uint64(5) + np.uint64(0x52DCE729)
        h2 = _rotate_left(h2 ^ _mix(blocks[:, at + 1], _C2, 33, _C1), 31) + h1
        h2 = h2 * np.uint64(5) + np.uint64(0x38495AB5)
    h1 = h1 ^ _mix(blocks[:, last], _C1, 31, _C2) ^ np.uint64(length)
    h2 = h2 ^ _mix(blocks[:, last + 1], _C2, 33, _C1) ^ np.uint64(length)
    h1 = h1 + h2
    h2 = h2 + h1
    h1, h2 = _finalize(h1), _finalize(h2)
    h1 = h1 + h2
    return np.stack([h1, h2 + h1], axis=1)


def _rotate_left(x: U64, by: int) -> U64:
    return (x << np.uint64(by)) | (x >> np.uint64(64 - by))


def _mix(x: U64, first: np.uint64, by: int, second: np.uint64) -> U64:
    return _rotate_left(x * first, by) * second


def _finalize(x: U64) -> U64:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        x = (x ^ (x >> np.uint64(33))) * np.uint64(factor)
    return x ^ (x >> np.uint64(33))
