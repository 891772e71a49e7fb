"""X2Static's objective in closed form (Gupta & Jaggi 2021, its Gaussian approximation): one pass, no learning rate.

`u_w = S^-a (m_w - m)`, m_w the mean sentence vector around w, m the mean of all, S their covariance with a ridge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stillvec.learners.accumulators import AccumulatorSpec
from stillvec.learners.sentence_contexts import SentenceContexts
from stillvec.learners.table_memory import PeakEstimate
from stillvec.result import Result
from stillvec.statistics import Statistics
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class WhitenedContext:
    layer: str = "last"
    power: float = 0.5  # a
    ridge: float = 0.1  # in mean eigenvalues
    FINISH_MEMORY: ClassVar[tuple[PeakEstimate, ...]] = (PeakEstimate(0, 4.6),)

    def specs(self) -> dict[str, AccumulatorSpec]:
        return {"contexts": SentenceContexts(self.layer)}

    def finish(self, statistics: Mapping[str, Statistics]) -> Result:
        kept = statistics["contexts"]
        count = max(float(kept["total:sentences"][0]), 1.0)
        mean = kept["total:context"] / count
        covariance = kept["total:gram"] / count - np.outer(mean, mean)
        values, vectors = np.linalg.eigh(covariance)
        values = np.maximum(values, 0) + self.ridge * max(float(values.mean()), 1e-12)
        whitener = (vectors * values**-self.power) @ vectors.T  # (D, D)
        contexts = np.maximum(kept["sum:contexts"], 1)[:, None]
        matrix = (kept["sum:context"] / contexts - mean) @ whitener
        return Result(WordVectors(kept.vocabulary, matrix.astype(np.float32)))
