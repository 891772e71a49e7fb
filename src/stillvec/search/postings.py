"""BM25 (Robertson & Zaragoza 2009) over an inverted index of all words, known to the vectors or not.

A word is stored as a 64-bit hash, so that looking it up in a memory-mapped index is a binary search.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError
from stillvec.numerics import bm25_norms, bm25_weights
from stillvec.search.column_files import ColumnFile

Ints = NDArray[np.int64]
Block = tuple[Ints, NDArray[Any], NDArray[Any]]  # term, passage and count of each entry, by term
K1, B = 2.0, 0.75  # chosen on development queries (benchmarks/search.py)
_MAX_COUNT = 255
_BLOCK_ENTRIES = 1 << 22


@dataclass(frozen=True)
class Postings:
    """The passages of each term; memory-mapped."""

    terms: NDArray[np.uint64]  # (T,) hashes in ascending order
    starts: Ints  # (T + 1,) first entry of each term
    passages: NDArray[np.int32]  # (P,)
    counts: NDArray[np.uint8]  # (P,) of the term in the passage, at most 255
    lengths: NDArray[np.int32]  # (N,) words per passage

    def score(self, words: Iterable[str]) -> NDArray[np.float32]:
        """The BM25 score of every passage (N,) for folded words."""
        scores = np.zeros(len(self.lengths), np.float32)
        hashes, times = np.unique(hash_words([*words]), return_counts=True)
        at = np.searchsorted(self.terms, hashes)
        for term, word_hash, weight in zip(at.tolist(), hashes, times.tolist(), strict=True):
            if term == len(self.terms) or self.terms[term] != word_hash:
                continue
            entries = slice(int(self.starts[term]), int(self.starts[term + 1]))
            passages, counts = self._check(entries), self.counts[entries].astype(np.float32)
            scores[passages] += weight * bm25_weights(counts, self._norms[passages], len(passages), len(scores), K1)
        return scores

    def _check(self, entries: slice) -> NDArray[np.int32]:
        passages = self.passages[entries]
        if len(passages) and not 0 <= int(passages.min()) <= int(passages.max()) < len(self.lengths):
            raise FormatError.expected(f"passages below {len(self.lengths):,}", "a larger number", where="postings")
        return passages

    @cached_property
    def _norms(self) -> NDArray[np.float32]:
        return np.asarray(bm25_norms(self.lengths, K1, B), np.float32)

    def iterate_blocks(self, terms: Ints, renumbered: Ints) -> Iterator[Block]:
        """The entries with terms and passages renumbered; passages whose number is negative are left out."""
        for first in range(0, len(self.passages), _BLOCK_ENTRIES):
            rows = slice(first, min(first + _BLOCK_ENTRIES, len(self.passages)))
            passages = renumbered[self._check(rows)]
            kept = np.flatnonzero(passages >= 0)
            owner = np.searchsorted(self.starts, kept + first, side="right") - 1
            yield terms[owner], passages[kept], self.counts[rows][kept]


class PostingsWriter:
    """Entries of passages in the order of the passages, in files of a folder, until they are sorted by term."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ends: list[int] = []  # of blocks that are sorted by term
        types = {"terms": np.int32, "passages": np.int32, "counts": np.uint8}
        self._columns = [ColumnFile(folder / f"posting-{name}", dtype) for name, dtype in types.items()]
        self.n_passages = 0

    def add(self, words: NDArray[np.int32], lengths: Ints) -> None:
        """Add passages: the numbers of their words, concatenated, and how many each has."""
        passage = np.repeat(np.arange(len(lengths)), lengths)
        keys, counts = np.unique(words.astype(np.int64) * max(1, len(lengths)) + passage, return_counts=True)
        terms, passages = np.divmod(keys, max(1, len(lengths)))
        entries = (terms, passages + self.n_passages, np.minimum(counts, _MAX_COUNT))
        for column, values in zip(self._columns, entries, strict=True):
            column.append(values)
        self._ends.append(self._columns[0].n_rows)
        self.n_passages += len(lengths)

    def sort(self, hashes: NDArray[np.uint64], old: Postings | None, renumbered: Ints, n_old: int) -> dict[str, Any]:
        """The arrays of the postings: entries of `old` with renumbered passages, then those added, after `n_old`.

        `hashes` has the hash of every word by its number.
        """
        old_terms = np.zeros(0, np.uint64) if old is None else old.terms
        terms = np.unique(np.concatenate([old_terms, hashes]))
        of_old, of_new = np.searchsorted(terms, old_terms), np.searchsorted(terms, hashes)

        def iterate() -> Iterator[Block]:
            if old is not None:
                yield from old.iterate_blocks(of_old, renumbered)
            yield from self._iterate_blocks(of_new, n_old)

        sizes = np.zeros(len(terms), np.int64)
        for block_terms, _, _ in iterate():
            sizes += np.bincount(block_terms, minlength=len(terms))
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        passages = _create_array(self._folder / "sorted-passages", int(starts[-1]), np.int32)
        counts = _create_array(self._folder / "sorted-counts", int(starts[-1]), np.uint8)
        _place(iterate(), starts[:-1].copy(), passages, counts)
        used = sizes > 0
        return {
            "terms": terms[used],
            "starts": np.concatenate([starts[:1], starts[1:][used]]),
            "passages": passages,
            "counts": counts,
        }

    def close(self) -> None:
        for column in self._columns:
            column.close()

    def _iterate_blocks(self, terms: Ints, n_old: int) -> Iterator[Block]:
        words, passages, counts = (column.map() for column in self._columns)
        for start, end in pairwise([0, *self._ends]):
            yield terms[words[start:end]], passages[start:end] + np.int32(n_old), counts[start:end]


def _place(blocks: Iterator[Block], free: Ints, passages: NDArray[Any], counts: NDArray[Any]) -> None:
    """Write entries to the places of their terms; `free` is the next place of each, and entries come term by term."""
    for terms, block_passages, block_counts in blocks:
        if not len(terms):
            continue
        first = np.flatnonzero(np.concatenate([[True], terms[1:] != terms[:-1]]))
        lengths = np.diff(np.append(first, len(terms)))
        places = free[terms] + np.arange(len(terms)) - np.repeat(first, lengths)
        passages[places], counts[places] = block_passages, block_counts
        free[terms[first]] += lengths


def _create_array(path: Path, size: int, dtype: Any) -> NDArray[Any]:
    """A memory-mapped array in a new file; in memory if it is empty."""
    return np.memmap(path, dtype, "w+", shape=(size,)) if size else np.zeros(0, dtype)


def hash_words(words: Sequence[str]) -> NDArray[np.uint64]:
    """64 bits of BLAKE2b per word."""
    digests = (hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest() for word in words)
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)
