"""Relations of words in a lexicon, and their most common part of speech."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from stillvec.lexicons import Edge
from stillvec.vocabulary.folding import fold

PARTS = ("noun", "verb", "adj", "adv")
_INVERSE = {"hypernym": "hyponym"}  # the name of a relation seen from its other end
_MAX_RELATED = 100  # words per relation
ORDER = ("synonym", "antonym", "hypernym", "hyponym", "similar")  # others follow


class LexiconRelations:
    """Only of the given words, ignoring case, so that WordNet needs little memory."""

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
        names = sorted(related, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
        return {name: [*related[name]] for name in names}

    def part(self, word: str) -> str:
        """noun, verb, adj or adv, from most of its edges; empty if the lexicon does not say."""
        return self._parts.get(fold(word, True), "")
