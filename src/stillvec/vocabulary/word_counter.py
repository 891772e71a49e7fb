"""Counts the words of a stream of texts without a Python loop over known words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from stillvec.vocabulary.folding import fold
from stillvec.vocabulary.latin_matcher import LatinWordMatcher
from stillvec.vocabulary.token_interner import TokenInterner, needs_slow_path
from stillvec.vocabulary.word_matcher import multiword_terms, whole_end, word_tokenizer

_RUNS = 500_000  # known at once,
_CHARACTERS = 20_000_000  # of them


class WordCounter:
    """Learns words as it goes: of plain texts the runs between blanks are counted, of others what Rust finds.

    With more than `max_types` different words the rarest are forgotten, so that memory stays bounded.
    """

    def __init__(self, *, lowercase: bool = True, keep: Iterable[str] = (), max_types: int = 10_000_000) -> None:
        self.lowercase = lowercase
        self.keep = [fold(word, lowercase) for word in keep]
        self.max_types = max_types
        self._known: list[str] = []
        self._counts: NDArray[np.int64] = np.zeros(0, np.int64)
        self._new: Counter[str] = Counter(dict.fromkeys(multiword_terms(self.keep), 0))
        self._learn()
        self._runs = _TokenCounter(LatinWordMatcher({}, multiword_terms(self.keep), lowercase), {*self.keep}, max_types)

    def add(self, texts: Sequence[str]) -> int:
        """Count the words of `texts`; returns how many there were."""
        total, odd = self._runs.add(texts)
        step = 256 if len(self._known) < 1000 else len(odd)
        return total + sum(self._add(odd[start : start + step]) for start in range(0, len(odd), max(1, step)))

    def counts(self) -> dict[str, int]:
        self._learn()
        found = self._runs.counts()
        found.update(dict(zip(self._known, self._counts.tolist(), strict=True)))
        return {word: n for word, n in found.items() if n > 0}

    def _add(self, texts: Sequence[str]) -> int:
        total = 0
        for text, encoding in zip(texts, self._tokenizer.encode_batch(texts, add_special_tokens=False), strict=True):
            ids = np.array(encoding.ids, np.int64)
            total += len(ids)
            self._pending.append(ids)
            unknown = np.flatnonzero(ids == 0)
            if len(unknown):
                offsets = encoding.offsets
                spans = ((start, whole_end(text, end)) for start, end in (offsets[i] for i in unknown))
                self._new.update(fold(text[start:end], self.lowercase) for start, end in spans)
        ids = np.concatenate(self._pending) if self._pending else np.zeros(0, np.int64)
        self._pending.clear()
        self._counts += np.bincount(ids, minlength=len(self._known) + 1)[1:]
        if len(self._new) > max(2000, len(self._known) // 4):
            self._learn()
        return total

    def _learn(self) -> None:
        """Move the new words into the table that Rust counts with."""
        self._known.extend(self._new)
        self._counts = np.concatenate([self._counts, np.array([*self._new.values()], np.int64)])
        self._new = Counter()
        self._pending: list[NDArray[np.int64]] = []
        if len(self._known) > self.max_types:
            self._forget()
        self._tokenizer = word_tokenizer(self._known, self.lowercase)

    def _forget(self) -> None:
        kept = set(self.keep)
        order = np.argsort(-self._counts, kind="stable")[: self.max_types // 2]
        stay = np.zeros(len(self._known), bool)
        stay[order] = True
        stay |= np.fromiter((word in kept for word in self._known), bool, len(self._known))
        self._known = [word for word, here in zip(self._known, stay, strict=True) if here]
        self._counts = self._counts[stay]


class _TokenCounter:
    """Counts the words of plain texts: each run's words are found once."""

    def __init__(self, finder: LatinWordMatcher, keep: set[str], max_types: int) -> None:
        self._finder, self._keep, self._max_types = finder, keep, max_types
        self._found: Counter[str] = Counter()
        self._forget()

    def _forget(self) -> None:
        self._numbers = TokenInterner()
        self._words: list[list[str]] = []  # of each run
        self._held: NDArray[np.int64] = np.zeros(0, np.int64)  # how many they are
        self._plain: NDArray[np.bool_] = np.zeros(0, bool)
        self._counts: NDArray[np.int64] = np.zeros(0, np.int64)

    def add(self, texts: Sequence[str]) -> tuple[int, list[str]]:
        """How many words the plain texts have, and the texts that are not."""
        if not self._finder.parts_at_blanks:
            return 0, [*texts]
        numbers, held = self._numbers.of(texts)
        self._learn()
        odd = needs_slow_path(texts, numbers, held, self._plain)
        numbers = numbers[~np.repeat(odd, held)]
        self._counts += np.bincount(numbers, minlength=len(self._counts))
        total = int(self._held[numbers].sum())
        if len(self._numbers) > min(_RUNS, self._max_types) or self._numbers.characters > _CHARACTERS:
            self._flush()
        return total, [texts[each] for each in np.flatnonzero(odd).tolist()]

    def counts(self) -> Counter[str]:
        self._flush()
        return Counter(self._found)

    def _learn(self) -> None:
        new = self._numbers.taken()
        found = [self._finder.words(run) for run in new]
        self._words += [words or [] for words in found]
        self._held = np.append(self._held, np.array([len(words or []) for words in found], np.int64))
        self._plain = np.append(self._plain, np.array([words is not None for words in found], bool))
        self._counts = np.append(self._counts, np.zeros(len(new), np.int64))

    def _flush(self) -> None:
        """The words of the runs, as often as these were met; then the runs are forgotten."""
        found = self._found
        for words, number in zip(self._words, self._counts.tolist(), strict=True):
            for word in words:
                found[word] += number
        if len(found) > self._max_types:
            kept = {word: found[word] for word in self._keep if word in found}
            self._found = Counter(dict(found.most_common(self._max_types // 2)) | kept)
        self._forget()
