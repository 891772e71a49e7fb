"""What a lexicon says of words: their relations, and their most common part of speech."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from stillvec.lexicons import Edge
from stillvec.vocabulary.folding import fold

PARTS = ("noun", "verb", "adj", "adv")
_BACK = {"hypernym": "hyponym"}  # how the relation is called from its other end
_MOST = 100  # words of one relation
ORDER = ("synonym", "antonym", "hypernym", "hyponym", "similar")  # others come behind


class LexiconRelations:
    """Held for some words only, in any case, so that WordNet takes little room."""

    def __init__(self, edges: Iterable[Edge], words: Iterable[str]) -> None:
        known = {fold(word, True) for word in words}
        self._held: dict[str, dict[str, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
        parts: dict[str, Counter[str]] = defaultdict(Counter)
        for edge in edges:
            left, right, relation = fold(edge.left, True), fold(edge.right, True), edge.relation or "related"
            for word, other, called in ((left, right, relation), (right, left, _BACK.get(relation, relation))):
                if word not in known or word == other:
                    continue
                if edge.part:
                    parts[word][edge.part] += 1
                if len(self._held[word][called]) < _MOST:
                    self._held[word][called][other] = None
        self._parts = {word: counts.most_common(1)[0][0] for word, counts in parts.items()}

    @property
    def tell_parts(self) -> bool:
        return bool(self._parts)

    def of(self, word: str) -> dict[str, list[str]]:
        """Words by relation, each list in the order of the lexicon."""
        held = self._held.get(fold(word, True), {})
        order = [*(each for each in ORDER if each in held), *(each for each in held if each not in ORDER)]
        return {relation: [*held[relation]] for relation in order}

    def part(self, word: str) -> str:
        """noun, verb, adj or adv by most of its edges; nothing where the lexicon does not say."""
        return self._parts.get(fold(word, True), "")
