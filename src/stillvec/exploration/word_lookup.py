"""Words by their relations in a lexicon, by the letters typed so far, and by a similar spelling."""

import difflib
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable
from heapq import nsmallest

from stillvec.lexicons import Edge
from stillvec.vocabulary import Vocabulary
from stillvec.vocabulary.folding import fold

_INVERSE = {"hypernym": "hyponym"}  # the name of a relation seen from its other end
_MAX_RELATED = 100  # words per relation
_ORDER = ("synonym", "antonym", "hypernym", "hyponym", "similar")  # others follow
_MAX_COMPARED = 200_000  # most frequent words that a misspelt one is compared with


class LexiconRelations:
    """Relations and parts of speech, only of the given words, ignoring case: WordNet then needs little memory."""

    def __init__(self, edges: Iterable[Edge], words: Iterable[str]) -> None:
        known = {fold(word, True) for word in words}
        self._related: dict[str, dict[str, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
        parts: dict[str, Counter[str]] = defaultdict(Counter)
        for edge in edges:
            left, right, relation = fold(edge.left, True), fold(edge.right, True), edge.relation or "related"
            for word, other, name in ((left, right, relation), (right, left, _INVERSE.get(relation, relation))):
                if word not in known or word == other:
                    continue
                if edge.part:
                    parts[word][edge.part] += 1
                if len(self._related[word][name]) < _MAX_RELATED:
                    self._related[word][name][other] = None
        self._parts = {word: counts.most_common(1)[0][0] for word, counts in parts.items()}

    @property
    def has_parts(self) -> bool:
        return bool(self._parts)

    def find(self, word: str) -> dict[str, list[str]]:
        """Words by relation, each list in the order of the lexicon."""
        related = self._related.get(fold(word, True), {})
        names = sorted(related, key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))
        return {name: [*related[name]] for name in names}

    def part(self, word: str) -> str:
        """noun, verb, adj or adv, from most of its edges; empty if the lexicon does not say."""
        return self._parts.get(fold(word, True), "")


class Suggester:
    """The words of a vocabulary in alphabetical order, ignoring case."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        keys = [word.lower() if word.isascii() else fold(word, True) for word in vocabulary.words]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        self._words = vocabulary.words
        self._keys = [keys[row] for row in order]
        self._rows = order

    def complete(self, prefix: str, k: int = 8) -> list[str]:
        """The k most frequent words with this prefix; the prefix itself comes first if it is a word."""
        key = fold(prefix, True)
        if not key:
            return []
        first = bisect_left(self._keys, key)
        last = bisect_left(self._keys, key + "\U0010ffff", lo=first)
        longer = bisect_left(self._keys, key + "\0", lo=first)
        rows = [*sorted(self._rows[first:longer]), *nsmallest(k, self._rows[longer:last])][:k]
        return [self._words[row] for row in rows]

    def suggest(self, word: str, k: int = 3) -> list[str]:
        """The k words with the nearest spelling and the same first letter; equally near ones by frequency."""
        key = fold(word, True)
        candidates = {
            known: row
            for known, row in zip(self._keys, self._rows, strict=True)
            if row < _MAX_COMPARED and known[:1] == key[:1] and abs(len(known) - len(key)) < 3
        }
        close = difflib.get_close_matches(key, candidates, n=30, cutoff=0.7)
        close.sort(key=lambda known: (_edit_distance(key, known), candidates[known]))
        return [self._words[candidates[known]] for known in close[:k]]


def _edit_distance(a: str, b: str) -> int:
    """Insertions, deletions, substitutions and swaps of neighbours (Damerau 1964, no part edited twice)."""
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
