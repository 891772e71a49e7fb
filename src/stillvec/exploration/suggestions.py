"""Words that begin like what was typed, the most frequent first, and words that are spelt nearly so."""

from __future__ import annotations

import difflib
from bisect import bisect_left
from heapq import nsmallest

from stillvec.vocabulary import Vocabulary
from stillvec.vocabulary.folding import fold

_LOOKED_AT = 200_000  # words, the most frequent


class Speller:
    """The words of a vocabulary in the order of the alphabet; case decides nothing, also where the words have it."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        keys = [word.lower() if word.isascii() else fold(word, True) for word in vocabulary.words]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        self._words = vocabulary.words
        self._keys = [keys[row] for row in order]
        self._rows = order

    def beginning(self, typed: str, k: int = 8) -> list[str]:
        """The k most frequent words that begin so; a word that is just so comes first."""
        key = fold(typed, True)
        if not key:
            return []
        first = bisect_left(self._keys, key)
        last = bisect_left(self._keys, key + "\U0010ffff", lo=first)
        whole = bisect_left(self._keys, key + "\0", lo=first)
        exact = sorted(self._rows[first:whole])
        rows = [*exact, *nsmallest(k, self._rows[whole:last])][:k]
        return [self._words[row] for row in rows]

    def alike(self, typed: str, k: int = 3) -> list[str]:
        """The k words of the nearest spelling with the same first letter; of equally near ones the most frequent."""
        key = fold(typed, True)
        near = {
            known: row
            for known, row in zip(self._keys, self._rows, strict=True)
            if row < _LOOKED_AT and known[:1] == key[:1] and abs(len(known) - len(key)) < 3
        }
        close = difflib.get_close_matches(key, near, n=30, cutoff=0.7)
        close.sort(key=lambda known: (_edits(key, known), near[known]))
        return [self._words[near[known]] for known in close[:k]]


def _edits(a: str, b: str) -> int:
    """Letters to put in, take out, change or swap with the next (Damerau 1964, no part edited twice)."""
    rows: list[list[int]] = [[*range(len(b) + 1)]]
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (x != y))
            if i > 1 and j > 1 and (x, a[i - 2]) == (b[j - 2], y):
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]
