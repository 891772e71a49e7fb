"""X2Static's objective in closed form (Gaussian approximation of Gupta & Jaggi 2021): one pass, no learning rate.

`u_w = S^-a (m_w - m)`, m_w the mean sentence vector around w, m the mean of all, S their covariance with a ridge.
"""

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
    SUMMARY: ClassVar[str] = "the mean of the sentences it occurs in, whitened"
    PAPERS: ClassVar[tuple[str, ...]] = ("gupta-jaggi-2021",)
    FINISH_MEMORY: ClassVar[tuple[PeakEstimate, ...]] = (PeakEstimate(tables=4.6),)
    layer: str = "last"  # layers of the teacher: last, all, a number, a range such as 3-6, or last3
    power: float = 0.5  # a: 0.5 whitens, 1 is the least-squares solution
    ridge: float = 0.1  # added to the eigenvalues of S, in units of their mean

    def specs(self) -> dict[str, AccumulatorSpec]:
        return {"contexts": SentenceContexts(self.layer)}

    def finish(self, statistics: Mapping[str, Statistics]) -> Result:
        contexts = statistics["contexts"]
        n_sentences = max(float(contexts["total:sentences"][0]), 1.0)
        mean = contexts["total:context"] / n_sentences
        values, vectors = np.linalg.eigh(contexts["total:gram"] / n_sentences - np.outer(mean, mean))
        values = np.maximum(values, 0) + self.ridge * max(float(values.mean()), 1e-12)
        whitener = (vectors * values**-self.power) @ vectors.T  # (D, D)
        n_contexts = np.maximum(contexts["sum:contexts"], 1)[:, None]
        matrix = (contexts["sum:context"] / n_contexts - mean) @ whitener
        return Result(WordVectors(contexts.vocabulary, matrix.astype(np.float32)))
