"""Aggregated static embeddings (Bommasani et al. 2020): a word is the pool of its states over its contexts.

`s_w = g({f(token states of w in c) : c a context of w})`, f over subword tokens, g over contexts, at one layer or the
mean of a range of layers.
"""

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
    SUMMARY: ClassVar[str] = "the pool of the teacher's states of it over its contexts"
    PAPERS: ClassVar[tuple[str, ...]] = ("bommasani-2020",)
    FINISH_MEMORY: ClassVar[tuple[PeakEstimate, ...]] = (PeakEstimate(tables=1.3),)
    EXPANDS_LAYERS: ClassVar[bool] = True  # the general setting layer=all gives one result per layer
    layer: str = "last"  # layers of the teacher: last, all, a number, a range such as 3-6, last3, or best
    pieces: str = "mean"  # how the states of subword tokens are pooled: mean, first, last, max or min
    contexts: str = "mean"  # how states are pooled over contexts: mean, max or min

    def specs(self) -> dict[str, AccumulatorSpec]:
        return {"states": WordStates(self.layer, self.pieces, self.contexts)}

    def finish(self, statistics: Mapping[str, Statistics]) -> Result:
        means = WordMeans(statistics["states"])
        return Result(WordVectors(statistics["states"].vocabulary, means.mean()), {"layers": sorted(means)})
