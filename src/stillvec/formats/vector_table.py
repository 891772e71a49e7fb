"""Words and rows as they come from a file, and the checks that every foreign format owes its reader."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError, StillvecWarning, VocabularyError
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

LOOKED_AT = 1 << 22  # numbers looked at for NaN; all of a large table would undo the memory map


class VectorTableBuilder:
    """A table that grows in place, so that reading needs little more memory than the matrix.

    `where` names the place of a row in the file: `vectors.txt:17`.
    """

    def __init__(self, path: Path, dim: int, where: Callable[[int], str]) -> None:
        self.path = path
        self.where = where
        self._words: list[bytes] = []
        self._matrix = np.empty((0, dim), np.float32)

    def __len__(self) -> int:
        return len(self._words)

    def add(self, words: Sequence[bytes], numbers: NDArray[np.float32]) -> None:
        first, last = len(self), len(self) + len(words)
        if not np.isfinite(numbers).all():
            row = first + int(np.flatnonzero(~np.isfinite(numbers).all(axis=1))[0])
            raise FormatError(
                f"{self.where(row)}: the vector of {_show(words[row - first])} holds a number that is not finite."
            )
        if b"" in words:
            raise FormatError(f"{self.where(first + words.index(b''))}: the word is empty.")
        if any(b"\n" in word for word in words):  # only where something else than a line break ends a word
            row = next(row for row, word in enumerate(words) if b"\n" in word)
            raise FormatError(f"{self.where(first + row)}: the word holds a line break; the file is damaged.")
        if last > len(self._matrix):  # realloc moves pages, not bytes; an eighth more wastes little
            self._matrix.resize((last + last // 8, self._matrix.shape[1]), refcheck=False)
        self._matrix[first:last] = numbers
        self._words.extend(words)

    def finish(self, counts: Sequence[int] | None = None) -> WordVectors:
        """The vectors, once every word is text and there once."""
        self._matrix.resize((len(self), self._matrix.shape[1]), refcheck=False)
        words, broken = self._decode_words()
        twice = self._twice(words, broken)
        if not twice:
            return WordVectors(Vocabulary(words, counts), self._matrix)
        stay = np.ones(len(words), bool)
        stay[twice] = False
        kept = Vocabulary([*compress(words, stay)], None if counts is None else compress(counts, stay))
        return WordVectors(kept, self._matrix[stay])

    def _decode_words(self) -> tuple[list[str], set[int]]:
        """The words as text, and the rows where bytes had to be replaced."""
        if not self._words:
            return [], set()
        try:
            return b"\n".join(self._words).decode().split("\n"), set()
        except UnicodeDecodeError:
            words = [word.decode(errors="replace") for word in self._words]
        broken = {
            row
            for row, (text, raw) in enumerate(zip(words, self._words, strict=True))
            if "\ufffd" in text and text.encode() != raw
        }
        first = min(broken)
        warnings.warn(
            f"{self.where(first)}: {words[first]!r} is not UTF-8, nor are {len(broken) - 1:,} other words "
            "of the file; their broken bytes are read as U+FFFD.",
            StillvecWarning,
            stacklevel=5,
        )
        return words, broken

    def _twice(self, words: list[str], broken: set[int]) -> list[int]:
        """The rows to leave out: words that only broken bytes made equal to an earlier one."""
        if len(set(words)) == len(words):
            return []
        seen: dict[str, int] = {}
        twice = []
        for row, word in enumerate(words):
            first = seen.setdefault(word, row)
            if first == row:
                continue
            if row not in broken and first not in broken:
                raise FormatError(f"{self.where(row)}: the word {word!r} came before, at {self.where(first)}.")
            twice.append(row)
        warnings.warn(
            f"{self.path}: {len(twice):,} words with broken bytes cannot be told from earlier ones and are left out.",
            StillvecWarning,
            stacklevel=4,
        )
        return twice


def storable(path: Path, words: Sequence[str]) -> NDArray[np.bool_]:
    """Which words a format of lines could keep; that others are left out is told."""
    good = np.array([bool(word) and not {*"\n\t"} & {*word} for word in words], bool)
    if not good.all():
        warnings.warn(
            f"{path}: words left out: {len(good) - good.sum():,}, which are empty or hold a line break or a tab; no "
            "format keeps such.",
            StillvecWarning,
            stacklevel=4,
        )
    return good


def assemble(
    path: Path,
    words: Sequence[str],
    matrix: NDArray[Any],
    counts: Iterable[int] | None = None,
    *,
    lowercase: bool | None = None,
) -> WordVectors:
    """Vectors of words and rows that came as two wholes, once they fit and every word is there once."""
    if matrix.ndim != 2 or matrix.dtype.kind != "f" or not matrix.shape[1]:
        raise FormatError(f"{path}: a table of floats is wanted, and {matrix.dtype} of shape {matrix.shape} is there.")
    if len(words) != len(matrix):
        raise FormatError(f"{path}: there are {len(words):,} words and {len(matrix):,} vectors.")
    bad = next((row for row, word in enumerate(words) if not word or "\n" in word), None)
    if bad is not None:
        what = "holds a line break" if words[bad] else "is empty"
        raise FormatError(f"{path}, word {bad + 1:,}: the word {what}.")
    try:
        vocabulary = Vocabulary(words, counts, lowercase=lowercase)
    except (VocabularyError, OverflowError) as error:  # twice, more or fewer counts than words, beyond 64 bits
        raise FormatError(f"{path}: {error}") from None
    check_finite(path, vocabulary, matrix)
    return WordVectors(vocabulary, matrix)


def check_finite(path: Path, vocabulary: Vocabulary, matrix: NDArray[Any]) -> None:
    """Look for NaN: everywhere in a small matrix, in 64 stretches of a large one."""
    stretches = 1 if matrix.size <= LOOKED_AT else 64
    rows = max(1, min(len(matrix), LOOKED_AT // max(1, matrix.shape[1])) // stretches)
    for first in np.linspace(0, max(0, len(matrix) - rows), stretches, dtype=np.int64).tolist():
        good = np.isfinite(matrix[first : first + rows]).all(axis=1)
        if not good.all():
            word = vocabulary.words[first + int(np.argmin(good))]
            raise FormatError(f"{path}: the vector of {word!r} holds a number that is not finite.")


def encode_words(vectors: WordVectors, path: Path) -> list[bytes]:
    """The words as bytes that a line can hold, or a FormatError that names the first that no line can."""
    joined = "\n".join(vectors.words)
    if joined.count("\n") >= max(1, len(vectors)) or "\t" in joined or "" in vectors.vocabulary.index:
        bad = next(word for word in vectors.words if not word or "\n" in word or "\t" in word)
        what = "holds a line break or a tab" if bad else "is empty"
        raise FormatError(f"{path} was not written: the word {bad!r} {what}, which no format keeps; leave it out.")
    try:
        return joined.encode().split(b"\n") if len(vectors) else []
    except UnicodeEncodeError as error:
        bad = vectors.words[joined.count("\n", 0, error.start)]
        raise FormatError(f"{path} was not written: the word {bad!r} cannot be UTF-8; leave it out.") from error


def check_numbers(vectors: WordVectors, path: Path, dtype: type[np.floating]) -> None:
    """Refuse to write vectors without columns, or with numbers that are not finite in `dtype`."""
    if vectors.dim == 0:
        raise FormatError(f"{path} was not written: the vectors have no numbers.")
    for first in range(0, len(vectors), 1 << 14):
        with np.errstate(over="ignore"):
            block = np.asarray(vectors.matrix[first : first + (1 << 14)], dtype)
        good = np.isfinite(block).all(axis=1)
        if not good.all():
            word = vectors.words[first + int(np.argmin(good))]
            raise FormatError(f"{path} was not written: the vector of {word!r} holds a number that is not finite.")


def _show(word: bytes) -> str:
    return repr(word.decode(errors="replace"))
