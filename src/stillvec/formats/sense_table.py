"""The senses of ambiguous words in a stillvec folder: vectors in the space of the words, with example sentences."""

import os
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError
from stillvec.formats.hub_folder import local_path
from stillvec.formats.stillvec_folder import MODEL, read, read_model
from stillvec.vectors import WordVectors

_NAMES = ("senses.words", "senses.matrix", "senses.shares", "senses.examples")


class Sense(NamedTuple):
    """One sense of a word, numbered from 1, the most frequent first."""

    word: str
    number: int
    share: float  # of the sampled contexts of the word
    examples: tuple[str, ...]  # the most typical first
    vector: NDArray[np.float32]  # (dim,)


class SenseTable:
    """The word vectors of a folder, and the senses of those words that have several.

    >>> senses = read_senses("senses")  # doctest: +SKIP
    >>> [(sense.share, sense.examples[0]) for sense in senses.find("bank")]  # doctest: +SKIP
    """

    def __init__(self, vectors: WordVectors, arrays: tuple[NDArray[np.generic], ...]) -> None:
        self.vectors = vectors
        self._words, self._matrix, self._shares, self._examples = arrays

    def __len__(self) -> int:
        """The number of senses."""
        return len(self._words)

    @property
    def words(self) -> list[str]:
        """The words that have several senses, in the order of the vocabulary."""
        return [self.vectors.words[row] for row in np.unique(self._words).tolist()]

    def find(self, word: str) -> list[Sense]:
        """The senses of a word; none if it has one vector only.

        Parameters
        ----------
        word: a word of the vocabulary.
        """
        row = self.vectors._row(word)
        places = np.flatnonzero(self._words == row).tolist()
        name = self.vectors.words[row]
        return [self._read(place, name, number) for number, place in enumerate(places, 1)]

    def _read(self, place: int, word: str, number: int) -> Sense:
        texts = (bytes(line).rstrip(b"\0").decode(errors="replace") for line in self._examples[place])
        vector = np.array(self._matrix[place], np.float32)
        return Sense(word, number, float(self._shares[place]), tuple(filter(None, texts)), vector)


def read_senses(path: str | os.PathLike[str]) -> SenseTable | None:
    """The senses in a folder that the method `senses` wrote; None if it has none in the space of its vectors (`--dim`).

    Parameters
    ----------
    path: the folder.
    """
    folder = local_path(path)
    arrays = read_model(folder) if folder.is_dir() else {}
    if not arrays.keys() & {*_NAMES}:
        return None
    vectors = read(folder)
    table = [arrays.get(name) for name in _NAMES]
    words, matrix, shares, examples = table
    if words is None or matrix is None or shares is None or examples is None:
        raise FormatError.expected(", ".join(_NAMES), ", ".join(arrays), path=folder / MODEL)
    if matrix.ndim == 2 and matrix.shape[1] != vectors.dim:
        return None
    n_senses = len(words)
    shapes = [array.shape[:2] if array.ndim == 2 else array.shape[:1] for array in (words, matrix, shares, examples)]
    if shapes != [(n_senses,), (n_senses, vectors.dim), (n_senses,), (n_senses,)] or examples.ndim != 3:
        got = ", ".join(str(array.shape) for array in (words, matrix, shares, examples))
        raise FormatError.expected(f"{n_senses} senses of dimension {vectors.dim}", got, path=folder / MODEL)
    if words.dtype.kind != "i" or matrix.dtype.kind != "f" or shares.dtype.kind != "f" or examples.dtype != np.uint8:
        got = ", ".join(str(array.dtype) for array in (words, matrix, shares, examples))
        raise FormatError.expected("whole numbers, floats, floats and bytes", got, path=folder / MODEL)
    if n_senses and not (int(words.min()) >= 0 and int(words.max()) < len(vectors) and np.isfinite(matrix).all()):
        raise FormatError.expected("rows of the vocabulary and finite numbers", "others", path=folder / MODEL)
    return SenseTable(vectors, (words, matrix, shares, examples))
