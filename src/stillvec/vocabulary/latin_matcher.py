"""The same words in plain texts, by one pattern of Python's `re` and one look into a table: many times as fast.

A text is plain if it holds only the letters, digits and signs below U+0180 and some common signs of print. There the
definition of a word (`finding.py`) needs no tables of Unicode, and both ways give the same rows; any other text, and
one that may hold a term of several words, is left to the other way.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from stillvec.vocabulary.folding import normalizer
from stillvec.vocabulary.token_cache import TokenCache, sums

_MANY = 16  # texts for which it is worth while to look their runs up
_LATIN = "".join(map(chr, range(0x180)))
_LETTERS = "".join(char for char in _LATIN if category(char)[0] == "L")
_DIGITS = "".join(char for char in _LATIN if category(char)[0] == "N")
_ODD = re.compile("[^\0-\u012f\u0131-\u017f\u2010-\u2015‘’‚“”„†‡…•′€−]")  # lower-cased, U+0130 is two characters


def _pattern(letters: str, digits: str) -> re.Pattern[str]:
    char, digit = f"[{letters}{digits}_]", f"[{digits}]"
    joiner = rf"(?:'(?![sS](?!{char}))|[.·]|(?<={digit}),(?={digit}))"
    return re.compile(
        rf"(?:[cdjlmnstCDJLMNST]|[qQ]u)'(?=[{letters}]{{2}})"
        rf"|(?:\A|(?<={char}))'[sS](?!{char})"
        rf"|{char}+(?:{joiner}{char}+)*"
    )


_ASCII_WORD = _pattern("A-Za-z", "0-9")
_LATIN_WORD = _pattern(_LETTERS, _DIGITS)
_RUN = re.compile("[A-Za-z0-9_]+")


class LatinWordMatcher:
    """Rows of the words of plain texts; `table` has the words as a text's folded copy writes them."""

    def __init__(self, table: Mapping[str, int], terms: Iterable[str], lowercase: bool) -> None:
        self._table = _Table(table)
        self._lowercase = lowercase
        possible = [term for term in map(normalizer(lowercase).normalize_str, terms) if not _ODD.search(term)]
        # where a term stands, each of its runs of letters stands as one; a term without any stands between signs
        self._suspects = {max(runs, key=len) for term in possible if (runs := _RUN.findall(term))}
        signs = "|".join(re.escape(term) for term in possible if not _RUN.search(term))
        self._signs = re.compile(rf"(?<![A-Za-z0-9_])(?:{signs})(?![A-Za-z0-9_])") if signs else None
        self._known = TokenCache(1)  # the words of runs
        self.parts_at_blanks = not any(" " in term for term in possible if not _RUN.search(term))

    def words(self, run: str) -> list[str] | None:
        """The words of a run between blanks, folded, as it has them inside a text; None if it is not plain."""
        return self._words(f"\n{run}") if run.split() == [run] else None

    def found(self, runs: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
        """The same of many: row, first character and one past the last of each word; its run; which runs are plain."""
        simple = not self._suspects and self._signs is None
        plain = np.array(
            [
                run.split() == [run] and ((simple and run.isascii()) or self._readable(f"\n{run}") is not None)
                for run in runs
            ],
            bool,
        )
        which = np.flatnonzero(plain)
        some = [runs[each] for each in which.tolist()]
        row = self._table.__getitem__
        pattern, text = self._folded("".join(f"\n{run}" for run in some))
        flat = [number for word in pattern.finditer(text) for number in (row(word[0]), word.start(), word.end())]
        words = np.array(flat, np.int32).reshape(-1, 3)
        lengths = np.fromiter(map(len, some), np.int64, len(some)) + 1
        begins = (np.cumsum(lengths) - lengths).astype(np.int32)
        owners = np.searchsorted(begins, words[:, 1], side="right") - 1
        words[:, 1:] -= begins[owners][:, None] + 1
        return words, which[owners].astype(np.int32), plain

    def rows(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64], list[int]]:
        """The rows of all words, how many of them each text has, and the texts that are not plain (none of theirs)."""
        if len(texts) < _MANY or not self.parts_at_blanks:
            return self._one_by_one(texts)
        with self._known.lock:
            runs, held, odd = self._known.read(texts, self._learn)
            (words,) = self._known.rows
            found, lengths = words.take(runs[~np.repeat(odd, held)])
        return found, sums(lengths, np.where(odd, 0, held)), np.flatnonzero(odd).tolist()

    def _one_by_one(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64], list[int]]:
        found, lengths, left = array("i"), array("q"), []
        row = self._table.__getitem__
        for number, text in enumerate(texts):
            words = self._words(text)
            if words is None:
                left.append(number)
                words = []
            found.extend(map(row, words))
            lengths.append(len(words))
        return np.array(found, np.int32), np.array(lengths, np.int64), left

    def _learn(self, new: Sequence[str]) -> None:
        words, owners, plain = self.found(new)
        (known,) = self._known.rows
        first = len(known)
        known.extend(words[:, 0], np.bincount(owners, minlength=len(new)))
        self._known.grow(len(new))
        self._known.row[first:] = first + np.arange(len(new))
        self._known.plain[first:] = plain | [not run for run in new]  # two blanks have no word between them

    def _words(self, text: str) -> list[str] | None:
        read = self._readable(text)
        return None if read is None else read[0].findall(read[1])

    def _readable(self, text: str) -> tuple[re.Pattern[str], str] | None:
        """The pattern to read a text with, and the text folded; None if it is not plain."""
        if not text.isascii() and _ODD.search(text):
            return None
        pattern, text = self._folded(text)
        if self._suspects and not self._suspects.isdisjoint(_RUN.findall(text)):
            return None
        if self._signs and self._signs.search(text):
            return None
        return pattern, text

    def _folded(self, text: str) -> tuple[re.Pattern[str], str]:
        """Letter by letter."""
        pattern, text = (_ASCII_WORD, text) if text.isascii() else (_LATIN_WORD, text.replace("’", "'"))
        return pattern, text.lower() if self._lowercase else text


class _Table(dict[str, int]):
    def __missing__(self, word: str) -> int:
        return -1
