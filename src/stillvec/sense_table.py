"""The senses of ambiguous words: several vectors of a word in the space of all words, with example sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.input_checks import describe
from stillvec.vocabulary import Vocabulary

_PREFIX = "senses."
_NAMES = ("words", "matrix", "shares", "examples")


class Sense(NamedTuple):
    """One sense of a word, numbered from 1, the most frequent first."""

    word: str
    number: int
    share: float  # of the sampled contexts of the word
    examples: tuple[str, ...]  # the most typical first
    vector: NDArray[np.float32]  # (dim,)


class SenseTable:
    """The senses of those words that have several, of `WordVectors.senses`.

    >>> import stillvec
    >>> vectors = stillvec.load("vectors")  # doctest: +SKIP
    >>> [(sense.share, sense.examples[0]) for sense in vectors.senses.find("bank")]  # doctest: +SKIP

    Parameters
    ----------
    vocabulary: the words of the vectors.
    rows: the row of the word of each sense, those of a word together, the most frequent sense first (S,).
    matrix: the vectors of the senses (S, dim).
    shares: the share of the word's sampled contexts that each has (S,).
    examples: texts of each as UTF-8, filled with zeros (S, n, bytes).
    """

    def __init__(self, vocabulary: Vocabulary, rows: Any, matrix: Any, shares: Any, examples: Any) -> None:
        self._vocabulary = vocabulary
        self._rows, self.matrix, self._shares, self._examples = map(np.asarray, (rows, matrix, shares, examples))
        if problem := self._find_problem():
            raise UsageError.expected(*problem, where="senses")

    def _find_problem(self) -> tuple[str, str] | None:
        """What was expected and what came, if the arrays are not senses of these words."""
        arrays = (self._rows, self.matrix, self._shares, self._examples)
        shapes, kinds = [array.shape for array in arrays], "".join(array.dtype.kind for array in arrays)
        if [len(shape) for shape in shapes] != [1, 2, 1, 3] or len({shape[0] for shape in shapes}) > 1:
            return "arrays of one row per sense", ", ".join(map(str, shapes))
        if kinds[0] not in "iu" or kinds[1:3] != "ff" or self._examples.dtype != np.uint8:
            return "whole numbers, floats, floats and bytes", ", ".join(str(array.dtype) for array in arrays)
        if len(self) and not (int(self._rows.min()) >= 0 and int(self._rows.max()) < len(self._vocabulary)):
            return "rows of the vocabulary", f"{int(self._rows.min())} to {int(self._rows.max())}"
        return None if np.isfinite(self.matrix).all() else ("finite numbers", "NaN or infinity")

    def __len__(self) -> int:
        """The number of senses."""
        return len(self._rows)

    @property
    def words(self) -> list[str]:
        """The words that have several senses, in the order of the vocabulary."""
        return [self._vocabulary.words[row] for row in np.unique(self._rows).tolist()]

    def find(self, word: str) -> list[Sense]:
        """The senses of a word; none if it has one vector only, or is unknown.

        Parameters
        ----------
        word: a word.
        """
        row = self._vocabulary.row(word)
        places = [] if row is None else np.flatnonzero(self._rows == row).tolist()
        return [self._read(place, self._vocabulary.words[row or 0], number) for number, place in enumerate(places, 1)]

    def _read(self, place: int, word: str, number: int) -> Sense:
        texts = (bytes(line).rstrip(b"\0").decode(errors="replace") for line in self._examples[place])
        vector = np.array(self.matrix[place], np.float32)
        return Sense(word, number, float(self._shares[place]), tuple(filter(None, texts)), vector)

    def select(self, vocabulary: Vocabulary, rows: Sequence[int]) -> SenseTable | None:
        """The senses of words that are the given rows here, and follow one another in another vocabulary."""
        place = {row: new for new, row in enumerate(rows)}
        chosen = np.flatnonzero(np.isin(self._rows, rows))
        new = np.array([place[row] for row in self._rows[chosen].tolist()], np.int64)
        chosen, new = chosen[np.argsort(new, kind="stable")], np.sort(new, kind="stable")
        parts = (array[chosen] for array in (self.matrix, self._shares, self._examples))
        return SenseTable(vocabulary, new, *parts) if len(chosen) else None

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of a file; see docs/formats.md."""
        arrays = (self._rows, self.matrix, self._shares, self._examples)
        return {f"{_PREFIX}{name}": array for name, array in zip(_NAMES, arrays, strict=True)}

    @classmethod
    def from_arrays(cls, vocabulary: Vocabulary, arrays: Mapping[str, NDArray[Any]]) -> SenseTable:
        """The senses in the arrays of a file."""
        missing = [name for name in _NAMES if f"{_PREFIX}{name}" not in arrays]
        if missing:
            raise UsageError.expected(f"{_PREFIX}{missing[0]}", describe([*arrays]), where="senses")
        return cls(vocabulary, *(arrays[f"{_PREFIX}{name}"] for name in _NAMES))
