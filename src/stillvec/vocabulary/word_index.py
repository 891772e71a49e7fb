"""The words of a vector space with their rows and counts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError, VocabularyError
from stillvec.input_checks import check_arguments, check_strings, describe
from stillvec.vocabulary.folding import fold
from stillvec.vocabulary.segmenters import SPACES, join_segmenters, select_terms, split_names


class Vocabulary:
    """Words, each with its row number and its count in the corpus (0 if unknown).

    >>> Vocabulary(["the", "river"], [90, 3])
    Vocabulary(2 words, 93 seen)

    Parameters
    ----------
    words: the words in the order of their rows, each once.
    counts: their counts in the corpus (default: 0 for each).
    lowercase: "Paris" is looked up as "paris"; the words are in lower case (default: if all words are).
    segmenter: what divides texts in scripts without spaces into words, "jieba" for example (default: spaces).
    terms: words that the segmenter leaves whole (default: none).
    """

    def __init__(
        self,
        words: Iterable[str],
        counts: Iterable[int] | None = None,
        *,
        lowercase: bool | None = None,
        segmenter: str = SPACES,
        terms: Iterable[str] = (),
    ) -> None:
        self.words: tuple[str, ...] = tuple(check_strings(words, "words", what="words"))
        try:
            values = np.zeros(len(self.words), np.int64) if counts is None else np.array([*counts], np.int64)
        except (TypeError, ValueError, OverflowError):
            raise UsageError.expected("whole numbers", describe(counts), where="counts") from None
        if len(values) != len(self.words):
            raise VocabularyError.expected(f"{len(self.words):,} counts, one per word", f"{len(values):,}")
        values.setflags(write=False)
        self.counts: NDArray[np.int64] = values
        self.lowercase = all(w == w.lower() for w in self.words) if lowercase is None else lowercase
        if not isinstance(segmenter, str):
            raise UsageError.expected("a name", describe(segmenter), where="segmenter")
        split_names(segmenter)  # refuses an unknown one
        self.segmenter, self.terms = segmenter, tuple(sorted({*check_strings(terms, "terms")}))
        if len(self.index) != len(self.words):
            word = next(word for row, word in enumerate(self.words) if self.index[word] != row)
            raise VocabularyError(f"Duplicate word {word!r}; each word has one row.", code="duplicate-word")

    @cached_property
    def index(self) -> Mapping[str, int]:
        return {word: row for row, word in enumerate(self.words)}

    @cached_property
    def digest(self) -> str:
        """A digest of the words and their order."""
        return hashlib.blake2b("\n".join(self.words).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self.row(word) is not None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        same = self.words == other.words and self._rules == other._rules
        return same and bool(np.array_equal(self.counts, other.counts))

    @property
    def _rules(self) -> tuple[object, ...]:
        return self.lowercase, self.segmenter, self.terms

    __hash__ = None  # type: ignore[assignment]  # it compares by content, and the content is large

    def __repr__(self) -> str:
        return f"Vocabulary({len(self):,} words, {int(self.counts.sum()):,} seen)"

    def row(self, word: str) -> int | None:
        """The row of a word as it is written, else of its folded form; None if there is neither."""
        if not isinstance(word, str):
            raise UsageError.expected("a word", describe(word))
        row = self.index.get(word)
        return self.index.get(fold(word, self.lowercase)) if row is None else row

    def frequencies(self) -> NDArray[np.float64]:
        """Relative frequency of each word; a word without a count is taken to occur half a time."""
        counts = np.maximum(self.counts.astype(np.float64), 0.5)
        return np.asarray(counts / counts.sum())

    def union(self, other: Vocabulary) -> Vocabulary:
        """The words of both with their counts added, by descending frequency.

        Parameters
        ----------
        other: another vocabulary.
        """
        check_arguments(Vocabulary.union, locals())
        counts = dict(zip(self.words, self.counts.tolist(), strict=True))
        for word, count in zip(other.words, other.counts.tolist(), strict=True):
            counts[word] = counts.get(word, 0) + count
        segmenter, terms = join_segmenters(self.segmenter, other.segmenter), {*self.terms, *other.terms}
        return _sort_by_frequency(counts, self.lowercase and other.lowercase, segmenter, terms)

    def like(self, words: Iterable[str], counts: Iterable[int] | None = None) -> Vocabulary:
        """Other words, found in texts by the same rules: lower case, segmenter and terms.

        Parameters
        ----------
        words: the words in the order of their rows, each once.
        counts: their counts in the corpus (default: 0 for each).
        """
        segmenter, terms = self.segmenter, self.terms
        return Vocabulary(words, counts, lowercase=self.lowercase, segmenter=segmenter, terms=terms)

    def rows_in(self, other: Vocabulary) -> NDArray[np.int64]:
        """For each word its row in `other`, -1 if it is not there."""
        check_arguments(Vocabulary.rows_in, locals())
        return np.fromiter((other.index.get(word, -1) for word in self.words), np.int64, len(self))

    @classmethod
    def build(
        cls,
        counts: Mapping[str, int],
        *,
        min_count: int = 5,
        max_words: int | None = None,
        include_words: Iterable[str] = (),
        lowercase: bool = True,
        segmenter: str = SPACES,
    ) -> Vocabulary:
        """A vocabulary of the most frequent words.

        Parameters
        ----------
        counts: the occurrences of each word.
        min_count: minimum number of occurrences of a word (default: 5).
        max_words: the size of the vocabulary, most frequent words first (default: no limit).
        include_words: words to include whatever their count (default: none).
        lowercase: fold `include_words` to lower case, as the words of `counts` are (default: True).
        segmenter: what divided texts in scripts without spaces (default: spaces).
        """
        check_arguments(cls.build, locals())
        included = dict.fromkeys(folded for word in include_words if (folded := fold(word, lowercase)))
        frequent = {word: count for word, count in counts.items() if count >= min_count and word not in included}
        n_frequent = None if max_words is None else max(0, max_words - len(included))
        chosen = dict(_sort_items(frequent)[:n_frequent]) | {word: counts.get(word, 0) for word in included}
        if not chosen:
            highest = f"the most frequent of {len(counts):,} words occurs {max(counts.values(), default=0):,} times"
            message = f"No word occurs at least {min_count:,} times: {highest}; lower --min-count or give more text."
            raise VocabularyError(message, code="no-words")
        return _sort_by_frequency(chosen, lowercase, segmenter, select_terms(segmenter, included))


def _sort_items(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _sort_by_frequency(counts: Mapping[str, int], lowercase: bool, segmenter: str, terms: Iterable[str]) -> Vocabulary:
    items = _sort_items(counts)
    words, numbers = [word for word, _ in items], [count for _, count in items]
    return Vocabulary(words, numbers, lowercase=lowercase, segmenter=segmenter, terms=terms)
