"""X2Static's objective in closed form (Gaussian approximation of Gupta & Jaggi 2021): one pass, no learning rate.

`u_w = S^-a (m_w - m)`, m_w the mean sentence vector around w, m the mean of all, S their covariance with a ridge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from stillvec.learners.accumulators import Accumulator, AccumulatorSpec, TextSource, parse_layers, to_numpy
from stillvec.learners.table_memory import PeakEstimate, word_table
from stillvec.result import Result
from stillvec.statistics import Array, Statistics
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

if TYPE_CHECKING:  # merging needs no torch
    from stillvec.encoding import Encoded
    from stillvec.teachers import Teacher


@dataclass(frozen=True)
class SentenceContexts:
    """Sums of sentence vectors per word, with the second moments of all sentence vectors."""

    layer: str = "last"
    source: ClassVar[TextSource] = TextSource.SENTENCES

    def make_accumulator(self, teacher: Teacher, vocabulary: Vocabulary) -> Accumulator:
        return _ContextTables(parse_layers(self.layer, teacher.depth), teacher, len(vocabulary))


class _ContextTables:
    state_fields = ("sums", "n_contexts", "count", "total", "gram")

    def __init__(self, layers: tuple[int, ...], teacher: Teacher, n_words: int) -> None:
        import torch

        self.layers = layers
        device = teacher.device
        self.sums = word_table(n_words, teacher.dim, device)
        self.n_contexts = torch.zeros(n_words, dtype=torch.int64, device=device)
        self.count = torch.zeros(1, dtype=torch.float64, device=device)
        self.total = torch.zeros(teacher.dim, dtype=torch.float64, device=device)
        self.gram = torch.zeros(teacher.dim, teacher.dim, dtype=torch.float64, device=device)

    def update(self, encoded: Encoded) -> None:
        import torch

        ids = encoded.known_id
        contexts = sum(encoded.sentences(layer) for layer in self.layers) / len(self.layers)  # (S, D)
        assert isinstance(contexts, torch.Tensor)
        self.sums.index_add_(0, ids, contexts[encoded.known_sentence])
        self.n_contexts.index_add_(0, ids, torch.ones_like(ids))
        self.count += len(contexts)
        self.total += contexts.sum(0, dtype=torch.float64)
        self.gram += contexts.T @ contexts

    def arrays(self) -> dict[str, Array]:
        return {"sum:context": to_numpy(self.sums), "sum:contexts": to_numpy(self.n_contexts)} | self.totals()

    def totals(self) -> dict[str, Array]:
        """The arrays that belong to no word."""
        totals = {"sentences": self.count, "context": self.total, "gram": self.gram}
        return {f"total:{name}": to_numpy(tensor) for name, tensor in totals.items()}


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
