"""From words to vectors, and what stands in for the words that a set of vectors does not know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.evaluation.evaluation_report import OovPolicy
from stillvec.vectors import WordVectors
from stillvec.vocabulary import WordMatcher

_BLOCK = 1 << 16  # rows in memory at once


@dataclass(frozen=True)
class Lookup:
    """A set of vectors and a policy for unknown words: skip the item, or take the mean or the zero vector, or that of
    the word's n-grams.

    A word whose vector is zero, or not finite, has no direction and is as good as unknown.
    """

    vectors: WordVectors
    oov: OovPolicy = "skip"

    def rows(self, words: Sequence[str]) -> NDArray[np.int64]:
        """The row of each word (n,); below 0 for an unknown one: -1, or its own number if it is made of n-grams."""
        row = self.vectors.vocabulary.row
        found = ((self._unseen(word) if (at := row(word)) is None else at) for word in words)
        rows = np.fromiter(found, np.int64, len(words))
        known = np.unique(rows[rows >= 0])
        dead = known[~np.isfinite(_inverse_lengths(self._read(known)))]
        return np.where(np.isin(rows, dead), -1, rows)

    def take(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of rows (n, dim); the policy's vector for those below 0."""
        if not len(self.vectors):
            taken = np.zeros((len(rows), self.vectors.dim), np.float32)
        else:
            taken = self._read(np.maximum(rows, 0))
        taken[rows < 0] = self.filler
        if (made := np.flatnonzero(rows < -1)).size:
            words = [*self._made]
            taken[made] = self.vectors.from_subwords([words[-2 - row] for row in rows[made].tolist()])
        return taken

    def text_rows(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The row of each word of texts, as `rows` gives it, and which text it stands in."""
        finder = WordMatcher(self.vectors.vocabulary)
        if self.oov != "subword":
            plain, text = finder.match_rows(texts)
            return plain.astype(np.int64), text.astype(np.int64)
        found = finder.match(texts)
        rows = found.ids.astype(np.int64)
        for at in np.flatnonzero(rows < 0).tolist():
            rows[at] = self._unseen(texts[found.text_index[at]][found.starts[at] : found.ends[at]])
        return rows, found.text_index.astype(np.int64)

    def _unseen(self, word: str) -> int:
        return -2 - self._made.setdefault(word, len(self._made)) if self.oov == "subword" and word else -1

    @cached_property
    def _made(self) -> dict[str, int]:
        """The unknown words that were asked for."""
        return {}

    @cached_property
    def filler(self) -> NDArray[np.float32]:
        """The vector of an unknown word (dim,)."""
        if self.oov != "mean":
            return np.zeros(self.vectors.dim, np.float32)
        total = np.zeros(self.vectors.dim)
        for start in range(0, len(self.vectors), _BLOCK):
            total += np.asarray(self.vectors.matrix[start : start + _BLOCK], np.float64).sum(axis=0)
        return (total / len(self.vectors)).astype(np.float32)

    def _read(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        return np.array(self.vectors.matrix[rows], np.float32)


def unit(rows: NDArray[Any]) -> NDArray[np.float32]:
    """Rows at length one; zero where there is no direction."""
    inverse = _inverse_lengths(rows)
    live = np.isfinite(inverse)
    return np.where(live[:, None], rows, 0) * np.where(live, inverse, 0)[:, None].astype(np.float32)


def cosines(x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """The cosine of each row of `x` with the same row of `y` (n,); 0 where one has no direction.

    Rounded to what the sum can hold, so that the cosine of a word with itself is the same for all words.
    """
    both = [rows.astype(np.float64) for rows in (x, y)]
    lengths = np.linalg.norm(both[0], axis=1) * np.linalg.norm(both[1], axis=1)
    live = (lengths > 0) & (lengths < np.inf)
    products = np.einsum("nd,nd->n", *both)
    return np.asarray(np.divide(products, lengths, out=np.zeros(len(x)), where=live).round(12))


def _inverse_lengths(rows: NDArray[Any]) -> NDArray[np.float32]:
    """One over the length of each row (n,); not finite for rows that have no direction."""
    lengths = np.linalg.norm(np.asarray(rows, np.float32), axis=1)
    live = (lengths > 0) & (lengths < np.inf)
    return np.asarray(np.divide(1, lengths, out=np.full(len(rows), np.inf, np.float32), where=live))
