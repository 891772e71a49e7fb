"""Splits texts into characters for a character model, and marks where words begin."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stillvec.teachers.subword_tokenizer import SubwordTokenizer, SubwordTokens
from stillvec.vocabulary import Vocabulary, WordMatcher

_SPACES = np.array([point for point in range(0x3001) if chr(point).isspace()], np.uint32)  # all there are


class CharacterTokenizer(SubwordTokenizer):
    """One token per character; a word has a single state, which the model gives to all of its characters.

    The id of a token is the row of its character, plus the number of rows if it continues the word of the character
    before it, so that the model knows the words. Only the last character of a word has the word's offsets, the others
    have empty ones: alignment sees one token per word, a term of several words is the mean of its words, and a word at
    the edge of a window comes from one window. Spaces have empty offsets; other signs are words of one character.
    """

    splits_on_whitespace = False  # spaces are characters too

    def __init__(self, characters: Sequence[str], unknown: int, start: int) -> None:
        self.rows = len(characters)
        self.prefix = self.suffix = (start,)  # each direction starts with one
        self.segments = {}
        self.leading_space = ""
        self._unknown = unknown
        known = sorted((ord(character), row) for row, character in enumerate(characters) if len(character) == 1)
        self._points = np.array([point for point, _ in known], np.uint32)
        self._rows = np.array([row for _, row in known], np.int32)
        self._matcher = WordMatcher(Vocabulary(()))

    def encode(self, texts: Sequence[str]) -> SubwordTokens:
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
        first = np.cumsum(lengths) - lengths  # (N,) start of each text
        words = self._matcher.match(texts)
        begin, end = first[words.text_index] + words.starts, first[words.text_index] + words.ends
        inside = np.zeros(len(points) + 1, np.int32)  # 1 from a word's second character to its last
        inside[begin + 1] += 1
        inside[end] -= 1
        inside = np.cumsum(inside[:-1], dtype=np.int32)

        position = np.arange(len(points)) - np.repeat(first, lengths)
        starts, ends = position.astype(np.int32), position.astype(np.int32) + 1
        empty = np.isin(points, _SPACES)
        empty[:-1] |= inside[1:] > 0  # the word continues
        ends[empty] = starts[empty]
        starts[end - 1], ends[end - 1] = words.starts, words.ends
        return SubwordTokens(self._look_up(points) + self.rows * inside, starts, ends, lengths)

    def vocabulary(self) -> list[str]:
        """Empty: it has characters, no words."""
        return []

    def _look_up(self, points: NDArray[np.uint32]) -> NDArray[np.int32]:
        place = np.minimum(np.searchsorted(self._points, points), len(self._points) - 1)
        return np.where(self._points[place] == points, self._rows[place], np.int32(self._unknown))
