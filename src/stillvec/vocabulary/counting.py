"""Counts the words of a stream of texts without a Python loop over known words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from stillvec.vocabulary.finding import parted, whole_end, word_tokenizer
from stillvec.vocabulary.folding import fold


class WordCounter:
    """Learns words as it goes: what it knows is counted in Rust and numpy, only new words in Python.

    With more than `max_types` different words the rarest are forgotten, so that memory stays bounded.
    """

    def __init__(self, *, lowercase: bool = True, keep: Iterable[str] = (), max_types: int = 10_000_000) -> None:
        self.lowercase = lowercase
        self.keep = [fold(word, lowercase) for word in keep]
        self.max_types = max_types
        self._known: list[str] = []
        self._counts: NDArray[np.int64] = np.zeros(0, np.int64)
        self._new: Counter[str] = Counter(dict.fromkeys(parted(self.keep), 0))
        self._learn()

    def add(self, texts: Sequence[str]) -> int:
        """Count the words of `texts`; returns how many there were."""
        step = 256 if len(self._known) < 1000 else len(texts)
        return sum(self._add(texts[start : start + step]) for start in range(0, len(texts), max(1, step)))

    def counts(self) -> dict[str, int]:
        self._learn()
        return {word: int(n) for word, n in zip(self._known, self._counts, strict=True) if n > 0}

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
