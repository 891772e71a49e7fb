"""Phrases of a corpus: two or three words that stand together far more often than by chance.

The score of words `a b` is their normalized pointwise mutual information (Bouma 2009), from -1 to 1, the same for small
and large corpora:

    npmi(a, b) = ln(p(a b) / (p(a) p(b))) / -ln p(a b)        p(a b) = (n(a b) - discount) / N,   p(a) = n(a) / N

where `discount` lowers the counts of rare pairs as in Mikolov et al. (2013). Three words are scored in a second
reading, as a phrase found in the first and one more word (Mikolov's second pass), or as two words with a function word
between them ("bank of england"), which does not count. A phrase neither begins nor ends with a function word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.vocabulary.adjacent_words import AdjacentWords
from stillvec.vocabulary.function_words import find_function_words

HyphenMode = Literal["split", "keep"]
Ints = NDArray[np.int64]
THRESHOLD = 0.5  # docs/howto/corpus.md: what others find
DISCOUNT = 5  # occurrences
_BITS = 21  # of a word in the key of three words
_MAX_KEYS = 20_000_000  # different pairs or triples in memory
_MERGED_AT = 1 << 21  # keys that were not counted yet


class PhraseFinder:
    """Finds phrases in two readings of the same texts: `add` all texts, `end_reading`, and again; then `find`.

    With `threshold=None` there are no phrases, only hyphenated words, and one reading is enough. Only counts are kept,
    so the order of the texts changes nothing, unless there are more than `max_keys` different pairs of words.
    """

    def __init__(
        self,
        threshold: float | None = THRESHOLD,
        *,
        min_count: int = 5,
        lowercase: bool = True,
        allows: Callable[[str], bool] = lambda word: True,
        max_keys: int = _MAX_KEYS,
    ) -> None:
        self.threshold, self.min_count, self.allows, self.max_keys = threshold, min_count, allows, max_keys
        self.n_readings = 2 if threshold is not None else 1
        self.n_words = 0  # read so far in this reading
        self._reading = 0
        self._adjacent = AdjacentWords(lowercase=lowercase)
        self._counts: Ints = np.zeros(0, np.int64)  # of each word
        self._hyphenated: Ints = np.zeros(0, np.int64)  # of each hyphenated word
        self._is_word: NDArray[np.bool_] = np.zeros(0, bool)  # has a letter
        self._keys = _KeyCounts(max_keys)
        self._found: dict[str, int] = {}  # phrases and their counts

    def add(self, texts: Sequence[str]) -> int:
        """Read texts; return how many words they have."""
        words, follows, hyphenated = self._adjacent.read(texts)
        if self._reading == 0:
            self._count(words, hyphenated)
            self._add_pairs(words, follows)
        elif self._reading == 1:
            self._add_triples(words, follows)
        return len(words)

    def end_reading(self) -> None:
        """All texts were read once more."""
        if self.threshold is not None:
            (self._choose_pairs, self._choose_triples)[self._reading](self.threshold)
        self._reading += 1
        self._keys = _KeyCounts(self.max_keys)

    def find_phrases(self) -> dict[str, int]:
        """The phrases and how often each was read, the most frequent first."""
        return _sort(self._found)

    def find_hyphenated(self) -> dict[str, int]:
        """The same for words with hyphens."""
        frequent = np.flatnonzero(self._hyphenated >= self.min_count).tolist()
        strings = [*self._adjacent.hyphenated]
        counts = {strings[number]: int(self._hyphenated[number]) for number in frequent}
        return _sort({word: count for word, count in counts.items() if self.allows(word)})

    def _count(self, words: NDArray[np.int32], hyphenated: NDArray[np.int32]) -> None:
        new = self._adjacent.words.pop_new()
        self._is_word = np.append(self._is_word, np.array([*map(_is_word, new)], bool))
        self._counts = _add_counts(self._counts, words, len(self._adjacent.words))
        self._adjacent.hyphenated.pop_new()
        self._hyphenated = _add_counts(self._hyphenated, hyphenated, len(self._adjacent.hyphenated))

    def _add_pairs(self, words: NDArray[np.int32], follows: NDArray[np.bool_]) -> None:
        if self.threshold is None:
            return
        may = (words >= 0) & self._is_word[words]
        second = np.flatnonzero(follows[1:] & may[1:] & may[:-1]) + 1
        self._keys.add(words[second - 1].astype(np.int64) << 32 | words[second])

    def _choose_pairs(self, threshold: float) -> None:
        """Give the words of phrases a place in the keys of three words, and score the pairs."""
        strings, total = [*self._adjacent.words], float(self._counts.sum())
        by_count = np.argsort(-self._counts, kind="stable")
        function_words = find_function_words([strings[number] for number in by_count[:1000].tolist()])
        may = self._is_word & (self._counts >= self.min_count)
        inside = [number for number in by_count.tolist() if may[number]][: 1 << _BITS]
        self._place: NDArray[np.int64] = np.full(len(strings) + 1, -1, np.int64)  # of a word number, the last is -1's
        self._place[inside] = np.arange(len(inside))
        self._strings = [strings[number] for number in inside]
        self._is_function = np.array([word.lower() in function_words for word in self._strings], bool)
        allowed = np.array([self.allows(word) for word in self._strings], bool)
        self._is_edge = allowed & ~self._is_function
        self._n, self._total = self._counts[inside].astype(np.float64), total
        keys, counts = self._keys.finish(self.min_count)
        first, second = self._place[keys >> 32], self._place[keys & 0xFFFFFFFF]
        stay = (first >= 0) & (second >= 0)
        first, second, counts = first[stay], second[stay], counts[stay]
        score = self._score(counts, self._n[first], self._n[second])
        good = (score >= threshold) & self._is_edge[first] & self._is_edge[second]
        pairs = first[good] << _BITS | second[good]
        order = np.argsort(pairs)
        self._pairs, self._n_pairs = pairs[order], counts[good][order].astype(np.float64)
        self._keep([first[good], second[good]], counts[good])

    def _add_triples(self, words: NDArray[np.int32], follows: NDArray[np.bool_]) -> None:
        place = self._place[words]
        third = np.flatnonzero(follows[2:] & follows[1:-1]) + 2
        one, two, three = place[third - 2], place[third - 1], place[third]
        known = (one >= 0) & (two >= 0) & (three >= 0)
        one, two, three = one[known], two[known], three[known]
        edges = self._is_edge[one] & self._is_edge[three]
        one, two, three = one[edges], two[edges], three[edges]
        linked = self._is_function[two] | (self._find(one, two) >= 0) | (self._find(two, three) >= 0)
        self._keys.add((one << _BITS | two)[linked] << _BITS | three[linked])

    def _choose_triples(self, threshold: float) -> None:
        keys, counts = self._keys.finish(self.min_count)
        mask = (1 << _BITS) - 1
        one, two, three = keys >> 2 * _BITS, keys >> _BITS & mask, keys & mask
        score = np.where(self._is_function[two], self._score(counts, self._n[one], self._n[three]), -1.0)
        for pair, other in ((self._find(one, two), three), (self._find(two, three), one)):
            n_pair = np.append(self._n_pairs, 1.0)[pair]
            score = np.where(pair >= 0, np.maximum(score, self._score(counts, n_pair, self._n[other])), score)
        good = score >= threshold
        self._keep([one[good], two[good], three[good]], counts[good])

    def _find(self, first: Ints, second: Ints) -> Ints:
        """Which of the found pairs these are, -1 if none."""
        if not len(self._pairs):
            return np.full(len(first), -1, np.int64)
        keys = first << _BITS | second
        at = np.minimum(np.searchsorted(self._pairs, keys), len(self._pairs) - 1)
        return np.where(self._pairs[at] == keys, at, -1)

    def _score(self, together: Ints, one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
        """Normalized pointwise mutual information of two parts, with the discount."""
        p = np.maximum(together - DISCOUNT, 0.1) / self._total
        return np.asarray(np.log(p * self._total**2 / (one * other)) / -np.log(p))

    def _keep(self, places: Sequence[Ints], counts: Ints) -> None:
        columns = [[self._strings[place] for place in column.tolist()] for column in places]
        for *words, count in zip(*columns, counts.tolist(), strict=True):
            phrase = " ".join(words)
            if self.allows(phrase):
                self._found[phrase] = count


class _KeyCounts:
    """Counts integers in bounded memory: of more than `limit` different ones the rarest are dropped."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._keys: Ints = np.zeros(0, np.int64)  # sorted
        self._counts: Ints = np.zeros(0, np.int64)
        self._pending: list[Ints] = []
        self._n_pending = 0

    def add(self, keys: Ints) -> None:
        self._pending.append(keys)
        self._n_pending += len(keys)
        if self._n_pending > max(_MERGED_AT, len(self._keys) // 2):
            self._merge()

    def finish(self, min_count: int) -> tuple[Ints, Ints]:
        """The integers that were counted at least so often, in ascending order, and their counts."""
        self._merge()
        frequent = self._counts >= min_count
        return self._keys[frequent], self._counts[frequent]

    def _merge(self) -> None:
        new, n_new = np.unique(np.concatenate([*self._pending, np.zeros(0, np.int64)]), return_counts=True)
        keys, counts = np.concatenate([self._keys, new]), np.concatenate([self._counts, n_new])
        order = np.argsort(keys, kind="stable")
        keys, counts = keys[order], counts[order]
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        self._keys, self._counts = keys[first], np.add.reduceat(counts, first) if len(first) else counts
        self._pending, self._n_pending = [], 0
        if len(self._keys) > self.limit:
            self._drop_rare()

    def _drop_rare(self) -> None:
        """Drop all of the lowest counts, until at most half of the limit stays."""
        highest = int(np.partition(self._counts, -(self.limit // 2) - 1)[-(self.limit // 2) - 1])
        stay = self._counts > highest
        self._keys, self._counts = self._keys[stay], self._counts[stay]


def _is_word(word: str) -> bool:
    """Whether it may be in a phrase: not a number, and not the "'s" of a possessive."""
    return word[:1].isalnum() and any(map(str.isalpha, word))


def _add_counts(counts: Ints, numbers: NDArray[np.int32], n_numbers: int) -> Ints:
    grown = np.zeros(n_numbers, np.int64)
    grown[: len(counts)] = counts
    return grown + np.bincount(numbers[numbers >= 0], minlength=n_numbers)


def _sort(counts: dict[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
