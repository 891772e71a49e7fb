"""Pairs of a word and its context from dependency parses; a context is another word with the relation between them.

As in Levy & Goldberg (2014): a modifier is a context of its head and, by the inverse relation, the head one of the
modifier. A preposition is part of the relation (`telescope/nmod_with`), whether it is a `case` of its noun (Universal
Dependencies) or a `prep` between head and noun (`pobj`, in Stanford's and spaCy's schemes).
"""

from collections.abc import Iterator
from typing import NamedTuple

from stillvec.corpus.conllu import Parse
from stillvec.vocabulary.folding import fold

INVERSE = "-1"  # appended to a relation


class Arc(NamedTuple):
    head: int  # position in the sentence
    modifier: int
    relation: str


def iterate_arcs(parse: Parse) -> Iterator[Arc]:
    """The arcs between words, with prepositions collapsed into relations."""
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


def iterate_contexts(parse: Parse) -> Iterator[tuple[int, int, str]]:
    """(position of the word, position of its context word, relation) for both ends of every arc."""
    for head, modifier, relation in iterate_arcs(parse):
        yield head, modifier, relation
        yield modifier, head, relation + INVERSE
