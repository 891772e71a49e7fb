"""What a lexicon says of two words."""

from __future__ import annotations

from typing import NamedTuple


class Edge(NamedTuple):
    left: str
    right: str
    weight: float = 1.0
    relation: str = ""  # as the lexicon calls it; nothing where it does not say
    part: str = ""  # of speech: noun, verb, adj, adv; nothing where the lexicon does not say
