"""X2Static's objective in closed form (Gaussian approximation of Gupta & Jaggi 2021): one pass, no learning rate.

`u_w = S^-a (m_w - m) n_w / (n_w + prior)`, m_w the mean of the n_w sentence vectors around w, m the mean of all, S
their covariance with a ridge; then the first principal directions of all u are removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from stillvec.errors import UsageError
from stillvec.learners.accumulators import Accumulator, AccumulatorSpec, TextSource, choose_layers
from stillvec.learners.table_memory import PeakEstimate
from stillvec.learners.whitened_means import RowSums, WhitenedMeans
from stillvec.registry import check_least
from stillvec.result import Result
from stillvec.statistics import Statistics
from stillvec.vocabulary import Vocabulary

if TYPE_CHECKING:  # merging needs no torch
    from torch import Tensor

    from stillvec.encoding import Encoded
    from stillvec.teachers import Teacher


@dataclass(frozen=True)
class SentenceContexts:
    """Sums of sentence vectors per word, with the second moments of all sentence vectors."""

    layer: str = "last"
    pool: str = "words"  # what a sentence vector is the mean of: words or tokens
    source: ClassVar[TextSource] = TextSource.SENTENCES

    def make_accumulator(self, teacher: Teacher, vocabulary: Vocabulary) -> Accumulator:
        return _ContextSums(self, teacher, len(vocabulary))


class _ContextSums(RowSums):
    def __init__(self, spec: SentenceContexts, teacher: Teacher, n_words: int) -> None:
        super().__init__(choose_layers(spec.layer, teacher), teacher, n_words)
        self.spec = spec

    def update(self, encoded: Encoded) -> None:
        contexts, sentence = self._contexts(encoded)
        ids = encoded.known_id
        self.add_moments(contexts)
        self.add_words(ids, contexts[sentence], ids.new_ones(len(ids)))

    def _contexts(self, encoded: Encoded) -> tuple[Tensor, Tensor]:
        """The vectors of the sentences (S, D), and the sentence of each known word (N,)."""
        import torch

        from stillvec.learners.stored_contexts import StoredContexts, batch_contexts

        if self.spec.pool == "tokens":
            return torch.stack([encoded.sentences(layer) for layer in self.layers]).mean(0), encoded.known_sentence
        batch = batch_contexts(encoded, self.layers, StoredContexts(self.spec.layer))
        sentence = torch.repeat_interleave(encoded.to_device(batch.lengths))
        return batch.contexts, sentence[encoded.known]


@dataclass(frozen=True)
class WhitenedContext:
    SUMMARY: ClassVar[str] = "the mean of the sentences it occurs in, whitened"
    PAPERS: ClassVar[tuple[str, ...]] = ("gupta-jaggi-2021",)
    FINISH_MEMORY: ClassVar[tuple[PeakEstimate, ...]] = (PeakEstimate(tables=4.6),)
    EARLIER: ClassVar[Mapping[str, object]] = {"pool": "tokens", "prior": 0.0, "directions": 0}
    layer: str = "last"  # layers of the teacher: last, all, a number, a range such as 3-6, last3, or best
    pool: str = "words"  # what a sentence vector is the mean of: words or tokens
    power: float = 0.5  # a: 0.5 whitens, 1 is the least-squares solution
    ridge: float = 1.0  # added to the eigenvalues of S, in units of their mean
    prior: float = 4.0  # contexts at the overall mean, added to those of each word: a mean of few is noisy
    directions: int = 3  # principal directions removed at the end, with the mean; 0: nothing is removed

    def __post_init__(self) -> None:
        if self.pool not in ("words", "tokens"):
            raise UsageError.expected("words or tokens", repr(self.pool), where="setting 'pool'")
        check_least(self, ridge=0, prior=0, directions=0)

    def specs(self) -> dict[str, AccumulatorSpec]:
        return {"contexts": SentenceContexts(self.layer, self.pool)}

    def finish(self, statistics: Mapping[str, Statistics]) -> Result:
        return WhitenedMeans(self.power, self.ridge, self.prior, self.directions)(statistics["contexts"])
