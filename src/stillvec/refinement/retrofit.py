"""Retrofitting (Faruqui et al. 2015): a word moves halfway to the mean of its neighbours in a lexicon.

Sweeps `q_i <- (α q'_i + β Σ_j w_ij q_j) / (α + β)`, the weights of a word's edges summing to one, approach the solution
of that system of equations. Words without an edge keep their bytes. The published program takes each line of a lexicon
in one direction only (`directed=true`) and moves the words one after another, which ends at the same place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stillvec.errors import UsageError
from stillvec.refinement.graph import LexiconGraph, Part, moved_rows, shares, sweep
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Retrofit:
    SUMMARY: ClassVar[str] = "words moved towards their neighbours in a lexicon"
    PAPERS: ClassVar[tuple[str, ...]] = ("faruqui-2015",)

    lexicon: tuple[str, ...]  # files, folders of WordNet, "wordnet"
    sweeps: int = 10
    alpha: float = 1.0
    beta: float = 1.0
    relations: tuple[str, ...] = ("synonym",)
    parts: tuple[Part, ...] = ()
    directed: bool = False
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.sweeps < 0 or not self.alpha > 0 or not self.beta >= 0:
            raise UsageError("Retrofitting wants alpha above 0, and beta and sweeps of at least 0; give others.")

    def __call__(self, vectors: WordVectors) -> WordVectors:
        graph = LexiconGraph(self.lexicon, self.relations, self.parts, self.directed, self.without).over(
            vectors.vocabulary
        )
        total = self.alpha + self.beta
        home = np.full(len(vectors), self.alpha / total)
        return sweep(vectors, home, shares(graph) * (self.beta / total), moved_rows(graph), self.sweeps)
