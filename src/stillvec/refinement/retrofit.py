"""Retrofitting (Faruqui et al. 2015): words move towards the mean of their neighbours in a lexicon.

Iterates `q_i <- (α q'_i + β Σ_j w_ij q_j) / (α + β)`, the weights of a word's edges summing to one. Words without an
edge stay unchanged. The published program uses each line of a lexicon in one direction only (`directed=true`) and
updates the words one after another, which converges to the same solution.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stillvec.refinement.graph import LexiconGraph, Part, shares, sweep
from stillvec.registry import check_least, check_positive
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Retrofit:
    SUMMARY: ClassVar[str] = "words moved towards their neighbours in a lexicon"
    PAPERS: ClassVar[tuple[str, ...]] = ("faruqui-2015",)

    lexicon: tuple[str, ...]  # files, WordNet folders, "wordnet"
    sweeps: int = 10
    alpha: float = 1.0
    beta: float = 1.0
    relations: tuple[str, ...] = ("synonym",)
    parts: tuple[Part, ...] = ()
    directed: bool = False
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_positive(self, "alpha")
        check_least(self, sweeps=0, beta=0)

    def __call__(self, vectors: WordVectors) -> WordVectors:
        lexicon = LexiconGraph(self.lexicon, self.relations, self.parts, self.directed, self.without)
        graph, total = lexicon.over(vectors.vocabulary), self.alpha + self.beta
        home, moved = np.full(len(vectors), self.alpha / total), np.flatnonzero(np.diff(graph.indptr))
        return sweep(vectors, home, shares(graph) * (self.beta / total), moved, self.sweeps)
