"""Numbers for all words of a stream of texts, in the order in which they first appear."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.vocabulary.folding import fold
from stillvec.vocabulary.latin_matcher import LatinWordMatcher
from stillvec.vocabulary.segmenters import SPACES, WordBreaker
from stillvec.vocabulary.token_cache import TokenInterner
from stillvec.vocabulary.word_index import Vocabulary
from stillvec.vocabulary.word_matcher import extend_over_marks, word_tokenizer


class WordNumbering:
    """The words of texts as numbers; each new word gets the next one. Multi-word terms are not matched."""

    def __init__(self, *, lowercase: bool = True, segmenter: str = SPACES, terms: Iterable[str] = ()) -> None:
        self.lowercase = lowercase
        self._breaker = WordBreaker(segmenter, terms)
        self._numbers = TokenInterner()
        self._latin = LatinWordMatcher(self._numbers, (), lowercase)

    @classmethod
    def like(cls, vocabulary: Vocabulary) -> WordNumbering:
        """A numbering that finds words as a vocabulary does."""
        return cls(lowercase=vocabulary.lowercase, segmenter=vocabulary.segmenter, terms=vocabulary.terms)

    def __len__(self) -> int:
        return len(self._numbers)

    def pop_new(self) -> list[str]:
        """The words added since the last call, in the order of their numbers."""
        return self._numbers.pop_new()

    def number(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The numbers of the words of all texts, concatenated, and how many each text has."""
        words, lengths, slow = self._latin.match_rows(texts)
        if slow:
            lists = [self._number_slow(texts[at]) for at in slow]
            slow_lengths = np.array([*map(len, lists)], np.int64)
            flat = np.array([number for numbers in lists for number in numbers], np.int32)
            words = np.insert(words, np.repeat(np.cumsum(lengths)[slow], slow_lengths), flat)
            lengths[slow] = slow_lengths
        return words, lengths

    def _number_slow(self, text: str) -> list[int]:
        text, _ = self._breaker.insert(text)
        offsets = self._splitter.encode(text, add_special_tokens=False).offsets
        return [
            self._numbers[fold(text[start : extend_over_marks(text, end)], self.lowercase)] for start, end in offsets
        ]

    @cached_property
    def _splitter(self) -> Any:
        return word_tokenizer((), self.lowercase)
