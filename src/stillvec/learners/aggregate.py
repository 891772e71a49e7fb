"""Aggregated static embeddings (Bommasani et al. 2020): a word is the pool of its states over its contexts.

`s_w = g({f(piece states of w in c) : c a context of w})`, f over pieces, g over contexts, at one layer or the mean of a
range of layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from stillvec.learners.accumulators import AccumulatorSpec, WordMeans, WordStates
from stillvec.learners.table_memory import PeakEstimate
from stillvec.result import Result
from stillvec.statistics import Statistics
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Aggregate:
    layer: str = "last"
    pieces: str = "mean"  # mean, first, last, max, min
    contexts: str = "mean"  # mean, max, min
    FINISH_MEMORY: ClassVar[tuple[PeakEstimate, ...]] = (PeakEstimate(0, 1),)

    def specs(self) -> dict[str, AccumulatorSpec]:
        return {"states": WordStates(self.layer, self.pieces, self.contexts)}

    def finish(self, statistics: Mapping[str, Statistics]) -> Result:
        means = WordMeans(statistics["states"])
        matrix = means.mean()
        return Result(WordVectors(statistics["states"].vocabulary, matrix), {"layers": sorted(means)})
