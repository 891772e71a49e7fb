"""What a parse says of its words: pairs of a word and a context, which is another word with the relation between them.

As in Levy & Goldberg (2014): a modifier is a context of its head and, by the inverse relation, the head one of the
modifier; a preposition is no word of its own but part of the relation (`telescope/nmod_with`), be it a `case` of its
noun (Universal Dependencies) or a `prep` between head and noun (`pobj`, Stanford's and spaCy's).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from stillvec.corpus.parses import Parse
from stillvec.vocabulary.folding import fold

INVERSE = "-1"  # told after a relation


@dataclass(frozen=True)
class Arc:
    """A head, its modifier and what is between them; places in the sentence."""

    head: int
    modifier: int
    relation: str


def arcs(parse: Parse) -> Iterator[Arc]:
    """The arcs between words, prepositions collapsed into relations."""
    cases: dict[int, list[str]] = {}
    for place, (head, relation) in enumerate(zip(parse.heads, parse.relations, strict=True)):
        if relation.partition(":")[0] == "case" and head >= 0:
            cases.setdefault(head, []).append(fold(parse.forms[place], True))
    objects = {head for head, relation in zip(parse.heads, parse.relations, strict=True) if relation == "pobj"}
    for place, (head, relation) in enumerate(zip(parse.heads, parse.relations, strict=True)):
        if head < 0 or relation.partition(":")[0] == "case" or (relation == "prep" and place in objects):
            continue
        if relation == "pobj" and parse.heads[head] >= 0:
            yield Arc(parse.heads[head], place, f"prep_{fold(parse.forms[head], True)}")
        else:
            yield Arc(head, place, "_".join([relation, *cases.get(place, [])]))


@dataclass
class Relations:
    """Numbers for relations, in the order in which they are met."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, relation: str) -> int:
        return self.numbers.setdefault(relation, len(self.numbers))


def contexts(parse: Parse) -> Iterator[tuple[int, int, str]]:
    """(place of the word, place of the word in its context, relation) for either end of every arc."""
    for arc in arcs(parse):
        yield arc.head, arc.modifier, arc.relation
        yield arc.modifier, arc.head, arc.relation + INVERSE
