"""Look up the vectors of words, with a policy for out-of-vocabulary (OOV) words."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stillvec.heads.oov_policy import OovPolicy
from stillvec.heads.sequence_batches import SPECIAL, UNKNOWN, Representation, Sequences
from stillvec.numerics import iterate_blocks, unit_rows
from stillvec.numerics.array_types import Floats, Mask, Rows
from stillvec.vectors import WordVectors
from stillvec.vocabulary import WordMatcher

_BLOCK = 1 << 16  # rows in memory at once


@dataclass(frozen=True)
class Lookup(Representation):
    """A set of vectors and the policy for OOV words: skip the item, use the mean or zero vector, or compose n-grams.

    A word whose vector is zero or not finite has no direction and counts as OOV.
    """

    vectors: WordVectors
    oov: OovPolicy = "skip"
    unknown: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)  # the vector of an OOV word

    def renew(self) -> "Lookup":
        """The same without numbers of OOV words: for one thread and one task, so that they neither clash nor add up."""
        other = replace(self)
        vars(other)["_matcher"] = self._matcher
        return other

    def rows(self, words: Sequence[str]) -> Rows:
        """The row of each word (n,); negative if OOV: -1, or a number of its own if it is composed from n-grams."""
        row = self.vectors.vocabulary.row
        numbers = ((self._number_oov(word) if (at := row(word)) is None else at) for word in words)
        rows = np.fromiter(numbers, np.int64, len(words))
        known = np.unique(rows[rows >= 0])
        undirected = known[~unit_rows(self._read(known)).any(axis=1)]
        return np.where(np.isin(rows, undirected), -1, rows)

    def take(self, rows: Rows) -> NDArray[np.float32]:
        """The vectors of rows (n, dim); for a negative row the vector of the policy."""
        vectors = np.zeros((len(rows), self.vectors.dim), np.float32)
        vectors[rows >= 0] = self._read(rows[rows >= 0])
        vectors[rows < 0] = self.filler
        if (composed := np.flatnonzero(rows < -1)).size:
            words = [*self._oov_numbers]
            vectors[composed] = self.vectors.from_subwords([words[-2 - row] for row in rows[composed].tolist()])
        return vectors

    def select(self, covered: Mask) -> Rows:
        """The items to answer: those that are covered, or all if the policy has a vector for OOV words."""
        return np.flatnonzero(covered if self.oov == "skip" else covered | True)

    def text_rows(self, texts: Sequence[str]) -> tuple[Rows, Rows]:
        """The row of each word of texts, as in `rows`, and the number of its text."""
        if self.oov != "subword":
            plain, text = self._matcher.match_rows(texts)
            return plain.astype(np.int64), text.astype(np.int64)
        matches = self._matcher.match(texts)
        rows = matches.ids.astype(np.int64)
        for at in np.flatnonzero(rows < 0).tolist():
            rows[at] = self._number_oov(texts[matches.text_index[at]][matches.starts[at] : matches.ends[at]])
        return rows, matches.text_index.astype(np.int64)

    def read_texts_steps(self, texts: Sequence[str]) -> Generator[float, None, Sequences]:
        """Sequences of the words that `WordMatcher` finds; punctuation counts only if the vocabulary contains it."""
        yield from ()
        rows, text = self.text_rows(texts)
        return self._sequences(rows, np.bincount(text, minlength=len(texts)))

    def encode_texts_steps(self, texts: Sequence[str]) -> Generator[float, None, NDArray[np.float32]]:
        """The mean of the known words; the vector of the policy if there is none."""
        return (yield from self.read_texts_steps(texts)).means()

    def count_words(self, texts: Sequence[str]) -> Floats:
        return self.read_texts(texts).known_of_all

    def read_tokens_steps(self, sentences: Sequence[Sequence[str]]) -> Generator[float, None, Sequences]:
        """Sequences of tokenized sentences; every token is one word, known or not."""
        yield from ()
        rows = self.rows([token for sentence in sentences for token in sentence])
        return self._sequences(rows, np.array([len(sentence) for sentence in sentences], np.int64))

    def _sequences(self, rows: Rows, lengths: Rows) -> Sequences:
        used = np.unique(rows[rows != -1])
        table = self.take(used)
        usable = np.isfinite(table).all(axis=1) & table.any(axis=1)  # zero and non-finite vectors count as unknown
        used, table = used[usable], table[usable]
        place = np.searchsorted(used, rows)
        known = np.isin(rows, used)
        ids = np.where(known, place + SPECIAL, UNKNOWN)
        special = np.stack([np.zeros_like(self.filler), self.filler])
        whole = np.concatenate([special, table]).astype(np.float32)
        sources = np.concatenate([[-1, -1], used]).astype(np.int64)
        return Sequences(whole, ids.astype(np.int64), np.cumsum(lengths), source_rows=sources)

    def _number_oov(self, word: str) -> int:
        numbers = self._oov_numbers
        return -2 - numbers.setdefault(word, len(numbers)) if self.oov == "subword" and word else -1

    @cached_property
    def _matcher(self) -> WordMatcher:
        """Building it takes seconds for a large vocabulary."""
        return WordMatcher(self.vectors.vocabulary)

    @cached_property
    def _oov_numbers(self) -> dict[str, int]:
        """The OOV words looked up so far."""
        return {}

    @cached_property
    def filler(self) -> NDArray[np.float32]:
        """The vector of an OOV word (dim,)."""
        if self.unknown is not None:
            return self.unknown
        if self.oov != "mean":
            return np.zeros(self.vectors.dim, np.float32)
        total = np.zeros(self.vectors.dim)
        for _, block in iterate_blocks(self.vectors.matrix, np.float64, _BLOCK):
            total += block.sum(axis=0)
        return (total / len(self.vectors)).astype(np.float32)

    def _read(self, rows: Rows) -> NDArray[np.float32]:
        return np.array(self.vectors.matrix[rows], np.float32)
