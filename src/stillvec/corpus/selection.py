"""Chooses which sentences the teacher must read, so that every word gets about N contexts, spread over the corpus.

A word's state settles after a few dozen contexts, while the frequent words of a corpus stand in all of its sentences.
So a sentence is read only if some word in it is behind its schedule: after a share p of a word's occurrences has gone
by, p * N of its contexts should have been taken. Rare words are served first, since their sentences serve the frequent
words for nothing; who has a choice takes the sentence that serves most words at the least length. Four numbers a word
are kept, whatever the corpus.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stillvec.vocabulary.token_cache import concatenate_ranges

LOOKAHEAD = 32_768  # sentences to choose among at once
_BANDS = (1, 2, 4, 16, 64, 256, np.inf)  # times N: words of like frequency are served together, rare ones first
_BRIEF = 6  # words: a shorter sentence says little about them


class ContextSelector:
    """Says of each sentence of a stream whether the teacher should read it."""

    def __init__(self, counts: NDArray[np.int64], contexts: int, *, seed: int = 0) -> None:
        self.counts = np.maximum(counts, 1)
        self.contexts = contexts
        self.taken = np.zeros(len(counts), np.int64)
        self._seen = np.zeros(len(counts), np.int64)
        self._random = np.random.default_rng(seed)
        self._phase = self._random.random(len(counts))  # so that words of one frequency do not ask all at once
        self._band = np.searchsorted([band * contexts for band in _BANDS], self.counts).astype(np.int8)

    def choose(self, rows: NDArray[np.int32], text: NDArray[np.int32], texts: int) -> NDArray[np.bool_]:
        """Which of `texts` sentences to read; `rows` are those of their words (-1 unknown), `text` whose they are."""
        lengths = np.bincount(text, minlength=texts)
        known = rows >= 0
        rows, text = rows[known], text[known]
        held = np.bincount(text, minlength=texts)
        begins = np.cumsum(held) - held
        self._seen += np.bincount(rows, minlength=len(self.counts))
        due = self._due()
        chosen = np.zeros(texts, bool)
        late, of = rows, text  # occurrences of words that are behind: of these there are ever fewer
        for band in range(len(_BANDS)):
            behind = due - self.taken
            stay = behind[late] > 0
            late, of = late[stay], of[stay]
            worth = np.bincount(of, minlength=texts) / np.maximum(lengths, _BRIEF)
            worth *= self._random.uniform(0.5, 1.0, texts)
            here = (self._band[late] == band) & ~chosen[of]
            new = np.zeros(texts, bool)
            new[of[here][_first(late[here], -worth[of[here]], behind)]] = True
            self.taken += np.bincount(rows[concatenate_ranges(begins[new], held[new])], minlength=len(self.counts))
            chosen |= new
        return chosen

    def _due(self) -> NDArray[np.int64]:
        """How many contexts each word should have at this point of the stream."""
        goal = np.minimum(self.counts, self.contexts)
        due = np.floor(goal * np.minimum(self._seen / self.counts, 1) + self._phase)
        return np.minimum(due, goal).astype(np.int64)


def _first(rows: NDArray[np.int32], order: NDArray[np.float64], wanted: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Of these occurrences, the first `wanted` of each word."""
    ranked = np.lexsort((order, rows))
    begins = np.flatnonzero(np.diff(rows[ranked], prepend=-1))
    rank = np.arange(len(rows)) - np.repeat(begins, np.diff(begins, append=len(rows)))
    first = np.zeros(len(rows), bool)
    first[ranked] = rank < wanted[rows[ranked]]
    return first
