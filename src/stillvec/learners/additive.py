"""Words whose weighted mean gives the teacher's sentence vector: ridge regression on the sentences that were read.

With A the sentence-by-word matrix of SIF weights a / (a + f(w)) (rows sum to one) and C the centred sentence vectors,
`(AᵀA + λI) V = AᵀC`, solved by conjugate gradients with a diagonal preconditioner. The weights in use must be those of
training, so each row is stored times its word's weight: the plain mean of a text's vectors is then the weighted one,
and cosines between words do not change.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from stillvec.encoding import Encoded
from stillvec.learners.accumulators import Accumulator, AccumulatorSpec, TextSource, parse_layers, to_numpy
from stillvec.learners.table_memory import PeakEstimate, word_table
from stillvec.result import Result
from stillvec.statistics import Statistics
from stillvec.statistics.mergeable import Array
from stillvec.teachers import Teacher
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary


@dataclass(frozen=True)
class WeightedSentences:
    """Listens for sentence vectors and the bags of words they must be made of."""

    layer: str = "last"
    smoothing: float = 1e-3  # a
    unit: bool = False  # sentence vectors made unit, as those who compare them by cosine see them
    max_sentences: int = 5_000_000  # the bags are kept; beyond this many sentences it listens no more
    source: ClassVar[TextSource] = TextSource.SENTENCES

    def text_bytes(self, teacher: Teacher, vocabulary: Vocabulary, n_words: int, n_sentences: int) -> int:
        return 8 * n_words + 4 * n_sentences

    def make_accumulator(self, teacher: Teacher, vocabulary: Vocabulary) -> Accumulator:
        return _Bags(self, teacher, vocabulary)


class _Bags:
    state_fields = ("products", "words", "shares", "lengths", "room")

    def __init__(self, part: WeightedSentences, teacher: Teacher, vocabulary: Vocabulary) -> None:
        self.layers = parse_layers(part.layer, teacher.depth)
        self.room = part.max_sentences
        self.unit = part.unit
        self.weights = sif_weights(vocabulary, part.smoothing)
        device = teacher.device
        self.device_weights = torch.from_numpy(self.weights.astype(np.float32)).to(device)
        self.products = word_table(len(vocabulary), teacher.dim, device)  # AᵀC, C not yet centred
        self.words: list[Array] = []
        self.shares: list[Array] = []
        self.lengths: list[Array] = []

    def update(self, encoded: Encoded) -> None:
        if self.room <= 0:
            return
        batch = encoded.batch
        known = np.flatnonzero(batch.word_id >= 0)
        words, sentence = batch.word_id[known], batch.word_sentence[known]
        shares = self.weights[words]
        sums = np.bincount(sentence, shares, minlength=len(batch.tokens_per_sentence))
        shares = (shares / sums[sentence]).astype(np.float32)
        lengths = np.bincount(sentence, minlength=len(sums)).astype(np.int32)
        self.words.append(words.astype(np.int32))
        self.shares.append(shares)
        self.lengths.append(lengths[lengths > 0])
        self.room -= len(self.lengths[-1])

        device = self.products.device
        vectors = torch.stack([encoded.sentences(layer) for layer in self.layers]).mean(0)  # (S, D)
        if self.unit:
            vectors = torch.nn.functional.normalize(vectors)
        masses = self.device_weights[encoded.known_id]
        whole = torch.zeros(len(vectors), device=device).index_add_(0, encoded.known_sentence, masses)
        parts = (masses / whole[encoded.known_sentence])[:, None] * vectors[encoded.known_sentence]
        self.products.index_add_(0, encoded.known_id, parts)

    def arrays(self) -> dict[str, Array]:
        return {
            "sum:products": to_numpy(self.products),
            "bag:words": _end_to_end(self.words, np.int32),
            "bag:shares": _end_to_end(self.shares, np.float32),
            "bag:lengths": _end_to_end(self.lengths, np.int32),
        }


@dataclass(frozen=True)
class Additive:
    layer: str = "last"
    ridge: float = 0.1  # λ
    smoothing: float = 1e-3
    unit: bool = False
    directions: int = 0  # first principal directions taken out
    iterations: int = 12
    FINISH_MEMORY: ClassVar[tuple[PeakEstimate, ...]] = (PeakEstimate(0, 9, 60),)

    def specs(self) -> dict[str, AccumulatorSpec]:
        return {"sentences": WeightedSentences(self.layer, self.smoothing, self.unit)}

    def finish(self, statistics: Mapping[str, Statistics]) -> Result:
        kept = statistics["sentences"]
        matrix, error = solve_additive(kept, self.ridge, self.iterations)
        if self.directions:
            centred = matrix - matrix.mean(0)
            _, vectors = np.linalg.eigh(centred.T @ centred)
            top = vectors[:, -self.directions :]
            matrix = centred - centred @ top @ top.T
        weights = sif_weights(kept.vocabulary, self.smoothing).astype(np.float32)
        return Result(WordVectors(kept.vocabulary, matrix * weights[:, None]), {"residual": error})


def sif_weights(vocabulary: Vocabulary, smoothing: float) -> Array:
    """a / (a + f(w)) (Arora et al. 2017)."""
    return np.asarray(smoothing / (smoothing + vocabulary.frequencies()))


def solve_additive(kept: Statistics, ridge: float, iterations: int) -> tuple[Array, float]:
    """The ridge solution (V, D) and the relative residual it ended with."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    a, transposed, mass, diagonal = _bag_matrix(kept, device)
    total = kept["sum:products"].sum(0, dtype=np.float64)  # of C: the shares of each sentence sum to one
    mean = torch.from_numpy(np.asarray(total / max(len(kept["bag:lengths"]), 1), np.float32)).to(device)
    goal = torch.from_numpy(np.array(kept["sum:products"])).to(device) - mass[:, None] * mean
    scale = 1 / (diagonal + ridge)[:, None]
    found = scale * goal
    rest = goal - (transposed @ (a @ found) + ridge * found)
    step = ahead = scale * rest
    strength = (rest * ahead).sum(0)
    for _ in range(iterations):
        pushed = transposed @ (a @ step) + ridge * step
        length = strength / (step * pushed).sum(0).clamp_min(1e-30)
        found = found + length * step
        rest = rest - length * pushed
        ahead = scale * rest
        now = (rest * ahead).sum(0)
        step = ahead + now / strength.clamp_min(1e-30) * step
        strength = now
    error = float(rest.norm() / goal.norm().clamp_min(1e-30))
    return to_numpy(found), error


def _bag_matrix(kept: Statistics, device: torch.device) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A as a sparse matrix (S, V), Aᵀ, the column sums of A and the diagonal of AᵀA."""
    words, shares, lengths = kept["bag:words"], kept["bag:shares"], kept["bag:lengths"]
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    shape = (len(lengths), len(kept.vocabulary))
    places = torch.from_numpy(np.stack([sentence, words.astype(np.int64)]))
    values = torch.from_numpy(np.array(shares))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # sparse rows are "in beta", says torch
        bags = torch.sparse_coo_tensor(places, values, shape, device=device, check_invariants=False).coalesce()
        by_sentence, by_word = bags.to_sparse_csr(), bags.t().to_sparse_csr()
    column, values = bags.indices()[1], bags.values()
    mass = torch.zeros(shape[1], device=device).index_add_(0, column, values)
    diagonal = torch.zeros(shape[1], device=device).index_add_(0, column, values**2)
    return by_sentence, by_word, mass, diagonal


def _end_to_end(arrays: list[Array], dtype: type) -> Array:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype)
