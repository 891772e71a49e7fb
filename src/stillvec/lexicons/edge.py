"""A relation between two words."""

from typing import NamedTuple


class Edge(NamedTuple):
    left: str
    right: str
    weight: float = 1.0
    relation: str = ""  # as the lexicon calls it, if it does
    part: str = ""  # part of speech (noun, verb, adj, adv), if the lexicon has it
