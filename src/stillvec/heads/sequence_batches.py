"""Texts as sequences of row indices into a compact vector table, and batches of texts of similar length.

A representation is whatever gives a row to every word of a text: vectors one per word type (`Lookup`), a teacher one
per occurrence (`TeacherStates`). It also gives one to a whole text.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from stillvec.heads.oov_policy import OovPolicy
from stillvec.numerics import iterate_blocks
from stillvec.numerics.array_types import Floats, Rows
from stillvec.progress import drain

PADDING, UNKNOWN, SPECIAL = 0, 1, 2  # rows of a table; the first of a word is the last of these
SPREAD = 0.3  # root mean square of the network input, similar to GloVe vectors
_POOL = 32  # number of batches whose texts are sorted by length together


@dataclass(frozen=True)
class Sequences:
    """Concatenated texts; row 0 of the table is padding, row 1 stands for all unknown words."""

    table: NDArray[Any]  # (w + 2, dim); float16 where it is a mapped file
    ids: Rows  # (N,) rows of the table
    ends: Rows  # (n,) end offset of each text in `ids`
    occurrence_types: Rows | None = None  # (N,) the type of each word, numbered as rows, where rows are occurrences
    layers: tuple[NDArray[Any], ...] = ()  # (w + 2, dim) each: of a mix, whose `table` is empty until they are mixed
    source_rows: Rows | None = None  # (w + 2,) the row of each in the vectors, negative if it has none

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
    def types(self) -> Rows:
        """The type of each word (N,), numbered as `ids`."""
        return self.ids if self.occurrence_types is None else self.occurrence_types

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
            block = np.asarray(self.table[self.ids[chosen[begin:end]]], np.float32)
            sums[block_texts] = np.add.reduceat(block, starts[first : first + 1024] - begin, axis=0)
        return sums

    def means(self) -> NDArray[np.float32]:
        """Mean of the known words of each text (n, dim); the vector of unknown words if there is none."""
        means = self.sums() / np.maximum(self.known, 1)[:, None]
        return np.where(self.known[:, None] > 0, means, self.table[UNKNOWN]).astype(np.float32)

    def truncate(self, n_words: int) -> "Sequences":
        """The first words of each text."""
        inside = np.arange(len(self.ids)) - (self.ends - self.lengths)[self.text] < n_words
        types = None if self.occurrence_types is None else self.occurrence_types[inside]
        ends = np.cumsum(np.minimum(self.lengths, n_words))
        return replace(self, ids=self.ids[inside], ends=ends, occurrence_types=types)

    def take_layer(self, number: int) -> "Sequences":
        """One layer of a mix."""
        return replace(self, table=self.layers[number], layers=())

    def mix(self, weights: Floats) -> "Sequences":
        """The layers of a mix summed to one table; `layer_mix.py` learns the weights (L,)."""
        return replace(self, table=mix_rows(self.layers, weights), layers=())

    @property
    def scale_factor(self) -> float:
        """What gives the table a fixed root mean square."""
        rows = self.table[SPECIAL:]
        squares = sum(float(np.square(block).sum()) for _, block in iterate_blocks(rows))
        size = float(np.sqrt(squares / rows.size)) if rows.size else 0
        return SPREAD / size if size else 1.0

    def scale_table(self) -> NDArray[np.float32]:
        """Scale the table to a fixed root mean square, so that one learning rate suits vectors of any norm."""
        factor = self.scale_factor
        return self.table if factor == 1 else self.table * np.float32(factor)

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


def mix_rows(layers: Sequence[NDArray[Any]], weights: Floats) -> NDArray[np.float32]:
    """The weighted sum of the rows of layers (n, d)."""
    total = np.zeros(layers[0].shape, np.float32)
    for layer, weight in zip(layers, weights, strict=True):
        total += np.multiply(layer, np.float32(weight), dtype=np.float32)
    return total


def keep_table(trained: NDArray[np.float32], sequences: Sequences) -> dict[str, NDArray[np.float32]]:
    """The vectors that were trained along, in the scale of the table: `table`, and `unknown`, that of unknown words."""
    table = np.asarray(trained[: len(sequences.table)] / np.float32(sequences.scale_factor), np.float32)
    unknown = table[UNKNOWN].copy()
    table[:SPECIAL] = sequences.table[:SPECIAL]
    return {"table": table, "unknown": unknown}


class Representation(Protocol):
    """Gives a row to every word of a text, and one to the whole text.

    Each `_steps` is a generator of the fraction done; without it, the same in one call.
    """

    has_words: ClassVar[bool] = True  # whether words have rows, not only whole texts

    @property
    def oov(self) -> OovPolicy:
        """What becomes of words without a row."""
        ...

    def read_tokens(self, sentences: Sequence[Sequence[str]]) -> Sequences:
        """The rows of tokenized sentences; every token is one word, known or not."""
        return drain(self.read_tokens_steps(sentences))

    def read_tokens_steps(self, sentences: Sequence[Sequence[str]]) -> Generator[float, None, Sequences]: ...

    def read_texts(self, texts: Sequence[str]) -> Sequences:
        """The rows of the words of raw texts."""
        return drain(self.read_texts_steps(texts))

    def read_texts_steps(self, texts: Sequence[str]) -> Generator[float, None, Sequences]: ...

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One vector per text (n, dim): the mean of the known words, or the teacher's own; zero if there is none."""
        return drain(self.encode_texts_steps(texts))

    def encode_texts_steps(self, texts: Sequence[str]) -> Generator[float, None, NDArray[np.float32]]: ...

    def encode_layers_steps(self, texts: Sequence[str]) -> Generator[float, None, list[NDArray[np.float32]]]:
        """The vectors of texts at each layer of a mix; without a mix, those of `encode_texts` alone."""
        return [(yield from self.encode_texts_steps(texts))]

    def count_words(self, texts: Sequence[str]) -> Floats:
        """Number of known words and of all words per text (n, 2), without the rows."""
        ...
