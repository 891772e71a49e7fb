"""Selects the sentences that the teacher reads, so that every word gets about N contexts, spread over the corpus.

A word vector converges after a few dozen contexts, while frequent words occur in almost every sentence. So a sentence
is read only if a word in it is behind schedule: after a fraction p of its occurrences, a word should have p * N
contexts. Rare words select first, because their sentences also contain frequent words; among several sentences the one
with most needed words per length is selected. Memory: four numbers per word, whatever the size of the corpus.
"""

import numpy as np
from numpy.typing import NDArray

from stillvec.vocabulary.token_cache import concatenate_ranges

LOOKAHEAD = 32_768  # sentences to select from at once
_BANDS = (1, 2, 4, 16, 64, 256, np.inf)  # times N: words of similar frequency select together, rare ones first
_SHORT = 6  # words; shorter sentences are poor contexts


class ContextSelector:
    """Selects sentences from a stream for the teacher to read."""

    def __init__(self, counts: NDArray[np.int64], contexts: int, *, seed: int = 0) -> None:
        self.counts = np.maximum(counts, 1)
        self.contexts = contexts
        self.taken = np.zeros(len(counts), np.int64)
        self._seen = np.zeros(len(counts), np.int64)
        self._random = np.random.default_rng(seed)
        self._phase = self._random.random(len(counts))  # so that words of equal frequency are not due all at once
        self._band = np.searchsorted([band * contexts for band in _BANDS], self.counts).astype(np.int8)

    def choose(self, rows: NDArray[np.int32], text: NDArray[np.int32], n_texts: int) -> NDArray[np.bool_]:
        """Which of `n_texts` sentences to read, given the row (-1 if OOV) and the sentence of each word."""
        lengths = np.bincount(text, minlength=n_texts)
        known = rows >= 0
        rows, text = rows[known], text[known]
        n_known = np.bincount(text, minlength=n_texts)
        begins = np.cumsum(n_known) - n_known
        self._seen += np.bincount(rows, minlength=len(self.counts))
        due = self._due()
        chosen = np.zeros(n_texts, bool)
        late, of = rows, text  # occurrences of words that are behind schedule
        for band in range(len(_BANDS)):
            behind = due - self.taken
            stay = behind[late] > 0
            late, of = late[stay], of[stay]
            worth = np.bincount(of, minlength=n_texts) / np.maximum(lengths, _SHORT)
            worth *= self._random.uniform(0.5, 1.0, n_texts)
            here = (self._band[late] == band) & ~chosen[of]
            new = np.zeros(n_texts, bool)
            new[of[here][_first(late[here], -worth[of[here]], behind)]] = True
            self.taken += np.bincount(rows[concatenate_ranges(begins[new], n_known[new])], minlength=len(self.counts))
            chosen |= new
        return chosen

    def _due(self) -> NDArray[np.int64]:
        """The number of contexts each word should have at this point of the stream."""
        goal = np.minimum(self.counts, self.contexts)
        due = np.floor(goal * np.minimum(self._seen / self.counts, 1) + self._phase)
        return np.minimum(due, goal).astype(np.int64)


def _first(rows: NDArray[np.int32], order: NDArray[np.float64], wanted: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mask of the first `wanted` occurrences of each word, in `order`."""
    ranked = np.lexsort((order, rows))
    begins = np.flatnonzero(np.diff(rows[ranked], prepend=-1))
    rank = np.arange(len(rows)) - np.repeat(begins, np.diff(begins, append=len(rows)))
    first = np.zeros(len(rows), bool)
    first[ranked] = rank < wanted[rows[ranked]]
    return first
