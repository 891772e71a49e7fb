"""Cuts texts into characters for a teacher that reads letter by letter, and tells it where words begin and end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stillvec.teachers.subword_tokenizer import Pieces, SubwordTokenizer
from stillvec.vocabulary import Vocabulary, WordMatcher

_BLANKS = np.array([point for point in range(0x3001) if chr(point).isspace()], np.uint32)  # none comes after


class CharacterTokenizer(SubwordTokenizer):
    """A piece is a character, and a word one state: that which the teacher has for all of the word's characters.

    A piece's id is the row of its character, plus the number of rows where it goes on the word of the character before
    it. So the teacher knows the words, and its states stand for whole ones. Among the characters of a word the last
    carries the word's place in the text, the others none: each word is one piece to whoever aligns, a term of several
    words is the mean of its words, and a word at the edge of a window comes from one window. Blanks stand nowhere;
    other signs are words of one character.
    """

    parts_at_blanks = False  # blanks are characters too

    def __init__(self, characters: Sequence[str], unknown: int, start: int) -> None:
        self.rows = len(characters)
        self.prefix = self.suffix = (start,)  # each direction of reading begins with one
        self.segments = {}
        self.lead = ""
        self._unknown = unknown
        known = sorted((ord(character), row) for row, character in enumerate(characters) if len(character) == 1)
        self._points = np.array([point for point, _ in known], np.uint32)
        self._rows = np.array([row for _, row in known], np.int32)
        self._finder = WordMatcher(Vocabulary(()))

    def cut(self, texts: Sequence[str]) -> Pieces:
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
        first = np.cumsum(lengths) - lengths  # (T,) where each text begins
        found = self._finder.find(texts)
        begin, end = first[found.text] + found.starts, first[found.text] + found.ends
        inside = np.zeros(len(points) + 1, np.int32)  # 1 from a word's second character to its last
        inside[begin + 1] += 1
        inside[end] -= 1
        inside = np.cumsum(inside[:-1], dtype=np.int32)

        place = np.arange(len(points)) - np.repeat(first, lengths)
        starts, ends = place.astype(np.int32), place.astype(np.int32) + 1
        nowhere = np.isin(points, _BLANKS)
        nowhere[:-1] |= inside[1:] > 0  # the word goes on
        ends[nowhere] = starts[nowhere]
        starts[end - 1], ends[end - 1] = found.starts, found.ends
        return Pieces(self._look_up(points) + self.rows * inside, starts, ends, lengths)

    def vocabulary(self) -> list[str]:
        """None: it has letters, no words."""
        return []

    def _look_up(self, points: NDArray[np.uint32]) -> NDArray[np.int32]:
        place = np.minimum(np.searchsorted(self._points, points), len(self._points) - 1)
        return np.where(self._points[place] == points, self._rows[place], np.int32(self._unknown))
