"""Words and rows read from a file, and the checks that every foreign format needs."""

import warnings
from collections.abc import Iterable, Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from stillvec.errors import FormatError, StillvecWarning, VocabularyError
from stillvec.formats.format import write_error
from stillvec.numerics import iterate_blocks
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

Array = NDArray[Any]
MAX_CHECKED = 1 << 22  # numbers checked for NaN; checking all of a large table would read the whole memory map
_FIRST_CHECK = 1 << 17  # words after which duplicates are looked for, and whenever there are twice as many
_NOT_FINITE = "NaN or infinity in the vector of {!r}"


class VectorTableBuilder:
    """A table that grows in place, so that reading needs little more memory than the matrix.

    `first_line` is the line of the first row in a text file; errors about a binary file give the number of the word.
    """

    def __init__(self, path: Path, dim: int, first_line: int | None = None) -> None:
        self.path = path
        self._first_line = first_line
        self._words: list[bytes] = []
        self._next_check = _FIRST_CHECK
        self._matrix = np.empty((0, dim), np.float32)

    def __len__(self) -> int:
        return len(self._words)

    def add(self, words: Sequence[bytes], numbers: NDArray[np.float32]) -> None:
        first, last = len(self), len(self) + len(words)
        if not np.isfinite(numbers).all():
            row = int(np.flatnonzero(~np.isfinite(numbers).all(axis=1))[0])
            word = words[row].decode(errors="replace")
            raise self.error(first + row, "finite numbers", _NOT_FINITE.format(word))
        if b"" in words:
            raise self.error(first + words.index(b""), "a word", "an empty one")
        if any(b"\n" in word for word in words):  # only in files where a line break does not end a word
            row = next(row for row, word in enumerate(words) if b"\n" in word)
            raise self.error(first + row, "a word", f"{words[row][:60]!r} with a line break", "the file is damaged")
        if last > len(self._matrix):  # realloc moves pages, not bytes; an eighth more wastes little
            self._matrix.resize((last + last // 8, self._matrix.shape[1]), refcheck=False)
        self._matrix[first:last] = numbers
        self._words.extend(words)
        if last >= self._next_check:  # a compressed file may repeat a word for ever
            self._next_check = 2 * last
            if len(set(self._words)) < last // 2:
                self._find_duplicates(*self._decode_words())
                raise self.error(last - 1, "different words", "mostly words with invalid bytes, the same again")

    def finish(self, counts: Sequence[int] | None = None) -> WordVectors:
        """The vectors, after checking that the words are valid UTF-8 and unique."""
        self._matrix.resize((len(self), self._matrix.shape[1]), refcheck=False)
        words, broken = self._decode_words()
        duplicates = self._find_duplicates(words, broken)
        if not duplicates:
            return WordVectors(Vocabulary(words, counts), self._matrix)
        unique = np.ones(len(words), bool)
        unique[duplicates] = False
        vocabulary = Vocabulary([*compress(words, unique)], None if counts is None else compress(counts, unique))
        return WordVectors(vocabulary, self._matrix[unique])

    def error(self, row: int, what: str, got: str, cure: str = "") -> FormatError:
        if self._first_line is None:
            return FormatError.expected(what, got, where=self._place(row), path=self.path, cure=cure)
        return FormatError.expected(what, got, path=self.path, line=self._first_line + row, cure=cure)

    def _place(self, row: int) -> str:
        return f"word {row + 1:,}" if self._first_line is None else f"line {self._first_line + row}"

    def _decode_words(self) -> tuple[list[str], set[int]]:
        """The words as text, and the rows where invalid bytes were replaced."""
        if not self._words:
            return [], set()
        try:
            return b"\n".join(self._words).decode().split("\n"), set()
        except UnicodeDecodeError:
            words = [word.decode(errors="replace") for word in self._words]
        broken = {row for row, (text, raw) in enumerate(zip(words, self._words, strict=True)) if text.encode() != raw}
        first = min(broken)
        example = f"{words[first]!r} in {self._place(first)}"
        _warn(f"{self.path}: {len(broken):,} words are not UTF-8 ({example}); invalid bytes are read as U+FFFD.")
        return words, broken

    def _find_duplicates(self, words: list[str], broken: set[int]) -> list[int]:
        """The rows to drop, whose words equal an earlier one only because invalid bytes were replaced."""
        if len(set(words)) == len(words):
            return []
        seen: dict[str, int] = {}
        duplicates = []
        for row, word in enumerate(words):
            first = seen.setdefault(word, row)
            if first == row:
                continue
            if row not in broken and first not in broken:
                raise self.error(row, "one vector per word", f"{word!r} again (first in {self._place(first)})")
            duplicates.append(row)
        _warn(f"{self.path}: dropped {len(duplicates):,} words with invalid bytes that equal earlier words.")
        return duplicates


def find_storable(path: Path, words: Sequence[str]) -> NDArray[np.bool_]:
    """Which words a line-based format can store; warns about the others."""
    storable = np.array([bool(word) and not {*"\n\t"} & {*word} for word in words], bool)
    if not storable.all():
        n_dropped = len(storable) - storable.sum()
        _warn(f"{path}: dropped {n_dropped:,} words that are empty or contain a line break or a tab.")
    return storable


def assemble(
    path: Path,
    words: Sequence[str],
    matrix: Array,
    counts: Iterable[int] | None = None,
    *,
    lowercase: bool | None = None,
) -> WordVectors:
    """Vectors from a complete word list and matrix, after checking that they fit and that the words are unique."""
    if matrix.ndim != 2 or matrix.dtype.kind != "f" or not matrix.shape[1]:
        raise FormatError.expected("a table of floats", f"{matrix.dtype} of shape {matrix.shape}", path=path)
    if len(words) != len(matrix):
        got = f"{len(words):,} words and {len(matrix):,} vectors"
        raise FormatError.expected("one vector per word", got, path=path)
    bad = next((row for row, word in enumerate(words) if not word or "\n" in word), None)
    if bad is not None:
        got = "one with a line break" if words[bad] else "an empty one"
        raise FormatError.expected("a word", got, where=f"word {bad + 1:,}", path=path)
    try:
        vocabulary = Vocabulary(words, counts, lowercase=lowercase)
    except (VocabularyError, OverflowError) as error:  # a duplicate, a wrong number of counts, or one beyond 64 bits
        raise FormatError(f"{path}: {error}", path=path) from None
    check_finite(path, vocabulary, matrix)
    return WordVectors(vocabulary, matrix)


def check_finite(path: Path, vocabulary: Vocabulary, matrix: Array) -> None:
    """Look for NaN: everywhere in a small matrix, in 64 samples of consecutive rows in a large one."""
    n_samples = 1 if matrix.size <= MAX_CHECKED else 64
    n_rows = max(1, min(len(matrix), MAX_CHECKED // max(1, matrix.shape[1])) // n_samples)
    for first in np.linspace(0, max(0, len(matrix) - n_rows), n_samples, dtype=np.int64).tolist():
        finite = np.isfinite(matrix[first : first + n_rows]).all(axis=1)
        if not finite.all():
            word = vocabulary.words[first + int(np.argmin(finite))]
            raise FormatError.expected("finite numbers", _NOT_FINITE.format(word), path=path)


def encode_words(
    vectors: WordVectors, path: Path, dtype: DTypeLike = np.float32, *, forbidden: str = "", cure: str = "remove it"
) -> list[bytes]:
    """The words in UTF-8, after checking that they and the numbers (as `dtype`) can be written.

    No format can store empty words, line breaks and tabs; `forbidden` is one more character.
    """
    if vectors.dim == 0:
        raise write_error(path, "the vectors have 0 dimensions")
    with np.errstate(over="ignore"):
        for rows, block in iterate_blocks(vectors.matrix, dtype):
            finite = np.isfinite(block).all(axis=1)
            if not finite.all():
                word = vectors.words[rows.start + int(np.argmin(finite))]
                raise write_error(path, f"there is {_NOT_FINITE.format(word)}")
    text = "\n".join(vectors.words)
    if text.count("\n") >= max(1, len(vectors)) or "\t" in text or "" in vectors.vocabulary.index:
        bad = next(word for word in vectors.words if not word or "\n" in word or "\t" in word)
        raise write_error(path, f"the word {bad!r} is empty or contains a line break or a tab", "remove it")
    if forbidden and forbidden in text:
        bad = next(word for word in vectors.words if forbidden in word)
        raise write_error(path, f"the word {bad!r} contains {forbidden!r}, which ends a word in this format", cure)
    try:
        return text.encode().split(b"\n") if len(vectors) else []
    except UnicodeEncodeError as error:
        bad = vectors.words[text.count("\n", 0, error.start)]
        raise write_error(path, f"the word {bad!r} cannot be encoded as UTF-8", "remove it") from None


def _warn(message: str) -> None:
    warnings.warn(message, StillvecWarning, stacklevel=6)
