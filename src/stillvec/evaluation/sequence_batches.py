"""Texts as sequences of row indices into a compact vector table, and batches of texts of similar length."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stillvec.evaluation.intervals import Floats, Rows
from stillvec.evaluation.lookup import Lookup

PADDING, UNKNOWN, _SPECIAL = 0, 1, 2
_SPREAD = 0.3  # root mean square of the network input, similar to GloVe vectors
_POOL = 32  # number of batches whose texts are sorted by length together


@dataclass(frozen=True)
class Sequences:
    """Concatenated texts; row 0 of the table is padding, row 1 stands for all unknown words."""

    table: NDArray[np.float32]  # (w + 2, dim)
    ids: Rows  # (N,) rows of the table
    ends: Rows  # (n,) end offset of each text in `ids`

    def __len__(self) -> int:
        return len(self.ends)

    @cached_property
    def lengths(self) -> Rows:
        return np.diff(self.ends, prepend=0)

    @cached_property
    def text(self) -> Rows:
        """Index of the text of each word (N,)."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @cached_property
    def known(self) -> Rows:
        """Number of known words per text (n,)."""
        return np.bincount(self.text[self.ids != UNKNOWN], minlength=len(self))

    @property
    def known_of_all(self) -> Floats:
        """Number of known words and of all words per text (n, 2)."""
        return np.stack([self.known, self.lengths], axis=1).astype(np.float64)

    def pad(self, chosen: Rows, border: int = 0) -> Rows:
        """Table rows of the chosen texts, padded to the longest one (B, border + L + border)."""
        lengths = self.lengths[chosen]
        width = max(1, int(lengths.max(initial=0)))
        block = np.zeros((len(chosen), width + 2 * border), np.int64)
        inside = np.arange(width) < lengths[:, None]
        first = (self.ends[chosen] - lengths)[:, None] + np.arange(width)
        block[:, border : border + width][inside] = self.ids[first[inside]]
        return block

    def sums(self) -> NDArray[np.float32]:
        """Sum of the known words of each text (n, dim)."""
        chosen = np.flatnonzero(self.ids != UNKNOWN)
        sums = np.zeros((len(self), self.table.shape[1]), np.float32)
        n_known = np.bincount(self.text[chosen], minlength=len(self))
        filled = np.flatnonzero(n_known)  # reduceat repeats a row for an empty segment
        starts = np.cumsum(n_known)[filled] - n_known[filled]
        for first in range(0, len(filled), 1024):
            block_texts = filled[first : first + 1024]
            begin, end = starts[first], starts[first] + n_known[block_texts].sum()
            block = self.table[self.ids[chosen[begin:end]]]
            sums[block_texts] = np.add.reduceat(block, starts[first : first + 1024] - begin, axis=0)
        return sums

    def means(self) -> NDArray[np.float32]:
        """Mean of the known words of each text (n, dim); the vector of unknown words if there is none."""
        means = self.sums() / np.maximum(self.known, 1)[:, None]
        return np.where(self.known[:, None] > 0, means, self.table[UNKNOWN]).astype(np.float32)

    def scale_table(self) -> NDArray[np.float32]:
        """Scale the table to a fixed root mean square, so that one learning rate suits vectors of any norm."""
        size = float(np.sqrt(np.mean(np.square(self.table[_SPECIAL:], dtype=np.float64)))) if len(self.table) > 2 else 0
        return self.table * np.float32(_SPREAD / size) if size else self.table

    def batches(self, chosen: Rows, size: int, generator: np.random.Generator | None = None) -> Iterator[Rows]:
        """Batches of texts of similar length: in random order with a generator, else sorted by length."""
        if generator is None:
            order = chosen[np.argsort(self.lengths[chosen], kind="stable")]
            yield from np.split(order, range(size, len(order), size))
            return
        shuffled = generator.permutation(chosen)
        pools = np.split(shuffled, range(_POOL * size, len(shuffled), _POOL * size))
        batches = [batch for pool in pools for batch in self.batches(pool, size)]
        for number in generator.permutation(len(batches)):
            yield batches[number]


def texts_as_sequences(lookup: Lookup, texts: Sequence[str]) -> Sequences:
    """Sequences of the words that `WordMatcher` finds; punctuation counts only if the vocabulary contains it."""
    rows, text = lookup.text_rows(texts)
    return _sequences(lookup, rows, np.bincount(text, minlength=len(texts)))


def tokens_as_sequences(lookup: Lookup, sentences: Sequence[Sequence[str]]) -> Sequences:
    """Sequences of tokenized sentences; every token is one word, known or not."""
    rows = lookup.rows([token for sentence in sentences for token in sentence])
    return _sequences(lookup, rows, np.array([len(sentence) for sentence in sentences], np.int64))


def _sequences(lookup: Lookup, rows: Rows, lengths: Rows) -> Sequences:
    used = np.unique(rows[rows != -1])
    table = lookup.take(used)
    usable = np.isfinite(table).all(axis=1) & table.any(axis=1)  # zero and non-finite vectors count as unknown
    used, table = used[usable], table[usable]
    place = np.searchsorted(used, rows)
    known = np.isin(rows, used)
    ids = np.where(known, place + _SPECIAL, UNKNOWN)
    special = np.stack([np.zeros_like(lookup.filler), lookup.filler])
    return Sequences(np.concatenate([special, table]).astype(np.float32), ids.astype(np.int64), np.cumsum(lengths))
