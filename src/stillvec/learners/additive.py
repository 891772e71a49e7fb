"""Words whose weighted mean gives the teacher's sentence vector: ridge regression on the sentences of the corpus.

With A the sentence-by-word matrix of SIF weights a / (a + f(w)) (rows sum to one) and C the centred sentence vectors,
`(AᵀA + λI) V = AᵀC` (`training/bag_regression.py`). Each row is stored times its word's weight, so that the plain mean
of a text's vectors is the weighted one; cosines between words do not change.

Sentence vectors are those of a sentence-transformers folder (pooling, Dense, normalization, prompt) if these are more
than the mean of tokens, scaled or not; else that mean, without special tokens (`vectors`).

With `prior`, a word is shrunk towards P instead of zero, so that rare words need fewer sentences:
`(AᵀA + λI)(V - P) = AᵀC - AᵀA P`. P = X M maps what the teacher makes of the word, X = [mean state in its contexts;
state of the word alone], to sentence vectors: M is the ridge regression of C on A X. States are centred and scaled to
length one; the mean over n contexts is shrunk towards its prediction from the word alone, with the weight of
four contexts. Words without a context have their vector of the prior: as texts of one word, of which there may be more
than sentences, they would bend the map.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stillvec.errors import UsageError
from stillvec.learners.accumulators import (
    Accumulator,
    AccumulatorSpec,
    TextSource,
    WordMeans,
    WordStates,
    choose_layers,
    remove_directions,
    to_numpy,
)
from stillvec.learners.decontextualized import Templates
from stillvec.learners.table_memory import FinishScale, PeakEstimate, word_table
from stillvec.numerics import unit_rows
from stillvec.result import Result
from stillvec.statistics import N_ISOLATED, Array, Statistics, drop_isolated
from stillvec.training.bag_regression import Bags, make_system, mean_text, solve_system
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from stillvec.encoding import Encoded
    from stillvec.teachers import Teacher

SENTENCE_VECTORS = ("auto", "own", "tokens")
_PRIOR_CONTEXTS = 4  # contexts that the prediction from the word alone counts for
_RELIABLE = 20  # contexts from which on a mean state is not more reliable
_STATE_RIDGE = 0.01  # of maps from states, of the mean squared length of a column


@dataclass(frozen=True)
class WeightedSentences:
    """Sentence vectors, and the bags of words that are to give them."""

    layer: str = "last"
    smoothing: float = 1e-3
    unit: bool = False
    vectors: str = "auto"
    max_sentences: int = 5_000_000  # the bags stay in memory; further sentences are ignored
    contexts_only: bool = False  # words that the corpus lacks are not read alone
    source: ClassVar[TextSource] = TextSource.SENTENCES

    def make_accumulator(self, teacher: Teacher, vocabulary: Vocabulary) -> Accumulator:
        return _Bags(self, teacher, vocabulary)

    def text_bytes(self, teacher: Teacher, vocabulary: Vocabulary, n_words: int, n_sentences: int) -> int:
        return 8 * n_words + 4 * n_sentences


def _takes_own_vectors(vectors: str, teacher: Teacher, layers: Sequence[int]) -> bool:
    if vectors not in SENTENCE_VECTORS:
        raise UsageError.unknown("kind of sentence vectors", vectors, SENTENCE_VECTORS)
    last = (*layers,) == (teacher.depth,)
    if vectors == "own" and not last:
        raise UsageError.conflict(
            "The teacher's own sentence vectors are those of its last layer", cure="use layer=last"
        )
    return vectors == "own" or (vectors == "auto" and last and teacher.head is not None and not teacher.head.is_plain)


class _Bags:
    state_fields = ("products", "words", "shares", "lengths", "room")

    def __init__(self, spec: WeightedSentences, teacher: Teacher, vocabulary: Vocabulary) -> None:
        import torch

        self.layers = choose_layers(spec.layer, teacher)
        self.own = _takes_own_vectors(spec.vectors, teacher, self.layers)
        self.room = spec.max_sentences  # sentences that are still accepted
        self.unit = spec.unit
        self.weights = sif_weights(vocabulary, spec.smoothing)
        self.device_weights = torch.from_numpy(self.weights.astype(np.float32)).to(teacher.device)
        dim = teacher.text_dim if self.own else teacher.dim
        self.products = word_table(len(vocabulary), dim, teacher.device)  # AᵀC, C not yet centred
        self.words: list[Array] = []
        self.shares: list[Array] = []
        self.lengths: list[Array] = []

    def update(self, encoded: Encoded) -> None:
        import torch

        if self.room <= 0:
            return
        batch = encoded.batch
        known = np.flatnonzero(batch.word_id >= 0)
        words, sentence = batch.word_id[known], batch.word_sentence[known]
        shares = self.weights[words]
        sums = np.bincount(sentence, shares, minlength=len(batch.tokens_per_sentence))
        lengths = np.bincount(sentence, minlength=len(sums)).astype(np.int32)
        self.words.append(words.astype(np.int32))
        self.shares.append((shares / sums[sentence]).astype(np.float32))
        self.lengths.append(lengths[lengths > 0])
        self.room -= len(self.lengths[-1])

        if self.own:
            vectors = encoded.text_vectors()  # (S, D)
        else:
            vectors = torch.stack([encoded.sentences(layer) for layer in self.layers]).mean(0)
        if self.unit:
            vectors = torch.nn.functional.normalize(vectors)
        weights = self.device_weights[encoded.known_id]
        totals = torch.zeros(len(vectors), device=weights.device).index_add_(0, encoded.known_sentence, weights)
        terms = (weights / totals[encoded.known_sentence])[:, None] * vectors[encoded.known_sentence]
        self.products.index_add_(0, encoded.known_id, terms)

    def arrays(self) -> dict[str, Array]:
        arrays = {"sum:products": to_numpy(self.products)}
        for name, dtype in (("words", np.int32), ("shares", np.float32), ("lengths", np.int32)):
            arrays[f"ragged:{name}"] = np.concatenate([np.zeros(0, dtype), *getattr(self, name)])
        return arrays


@dataclass(frozen=True)
class Additive:
    SUMMARY: ClassVar[str] = "fitted so that weighted sums of words give sentence vectors"
    layer: str = "last"  # layers of the teacher: last, all, a number, a range such as 3-6, last3, or best
    vectors: str = "auto"  # of sentences: own (the teacher's), tokens (their mean), or auto: own if more than a mean
    ridge: float = 0.1  # λ
    smoothing: float = 1e-3  # a, the SIF constant of the word weights
    unit: bool = False  # scale sentence vectors to unit length first
    directions: int = 0  # principal directions removed at the end, with the mean; 0: nothing is removed
    centred: bool = True  # leave out the mean sentence vector; false: means of texts lie where the teacher's vectors do
    prior: bool = False  # shrink a word towards a map of its states, in its contexts and alone, instead of zero
    iterations: int = 12  # of the conjugate-gradient solver

    def finish_bytes(self, scale: FinishScale) -> int:
        """Bytes of the solver, and of the states that the prior is a map of."""
        return PeakEstimate(tables=14.5 if self.prior else 10.5, word_bytes=60, sentence_rows=1).total(scale)

    def specs(self) -> dict[str, AccumulatorSpec]:
        sentences = WeightedSentences(self.layer, self.smoothing, self.unit, self.vectors, contexts_only=self.prior)
        specs: dict[str, AccumulatorSpec] = {"sentences": sentences}
        if self.prior:
            alone = Templates(self.layer, templates=("{}",))
            specs |= {"states": WordStates(self.layer, contexts_only=True), "alone": alone}
        return specs

    def finish(self, statistics: Mapping[str, Statistics]) -> Result:
        sentences = statistics["sentences"]
        if self.prior:
            sentences = drop_isolated(sentences)
        prior = join_states(statistics["states"], statistics["alone"]) if self.prior else None
        matrix, residual = solve_additive(sentences, self.ridge, self.iterations, prior)
        if self.centred:
            matrix = remove_directions(matrix, sentences.vocabulary, self.directions)
        else:
            matrix = matrix + mean_text(bags_of(sentences), sentences["sum:products"])
        weights = sif_weights(sentences.vocabulary, self.smoothing).astype(np.float32)
        notes = {"residual": residual, "smoothing": self.smoothing}
        return Result(WordVectors(sentences.vocabulary, matrix * weights[:, None]), notes)


def sif_weights(vocabulary: Vocabulary, smoothing: float) -> Array:
    """a / (a + f(w)) (Arora et al. 2017)."""
    return np.asarray(smoothing / (smoothing + vocabulary.frequencies()))


def bags_of(sentences: Statistics) -> Bags:
    words, shares, lengths = (sentences[f"ragged:{name}"] for name in ("words", "shares", "lengths"))
    return Bags(words, shares, lengths, len(sentences.vocabulary))


def solve_additive(
    sentences: Statistics, ridge: float, iterations: int, states: Array | None = None
) -> tuple[Array, float]:
    """The ridge solution (V, D), and its relative residual; with `states` (V, E), shrunk towards a map of these."""
    system = make_system(bags_of(sentences), sentences["sum:products"])
    prior = 0
    if states is not None:
        prior = _map_states(system.by_text, system.goal, states)
        system = system._replace(goal=system.goal - system.by_word @ (system.by_text @ prior))
    solution, residual = solve_system(system, ridge, iterations)
    return to_numpy(prior + solution), residual


def join_states(states: Statistics, alone: Statistics) -> Array:
    """[mean state in its contexts; state alone] of each word (V, 2D), centred, of length one."""
    n_contexts = np.where(states.vocabulary.counts > 0, states["sum:contexts"], 0).astype(np.float32)[:, None]
    n_contexts[states[N_ISOLATED] > 0] = 0
    isolated = _direct(WordMeans(alone).mean(), np.ones(len(n_contexts), bool))
    means = _direct(WordMeans(states).mean(), n_contexts[:, 0] > 0)
    weights = np.sqrt(np.minimum(n_contexts, _RELIABLE))
    reliable = isolated * weights
    onto = invert_moments(reliable.T @ reliable, reliable.T @ (means * weights))
    shrunk = (n_contexts * means + _PRIOR_CONTEXTS * (isolated @ onto)) / (n_contexts + _PRIOR_CONTEXTS)
    return np.concatenate([shrunk, isolated], axis=1).astype(np.float32)


def _direct(matrix: Array, known: Array) -> Array:
    """Rows of length one, centred on those that are known; the others are zero."""
    rows = unit_rows(matrix)
    mean = rows[known].mean(axis=0) if known.any() else 0
    return np.asarray(unit_rows(rows - mean) * known[:, None])


def invert_moments(moments: Array, products: Array) -> Array:
    """(moments + penalty)⁻¹ products, the penalty a share of the mean of the diagonal."""
    moments = np.asarray(moments, np.float64)
    penalty = _STATE_RIDGE * np.trace(moments) / len(moments) + 1e-30
    return np.asarray(np.linalg.solve(moments + penalty * np.eye(len(moments)), products), np.float32)


def _map_states(a: Any, goal: Any, states: Array) -> Any:
    """The states (V, E) mapped to sentence vectors by ridge regression (V, D), in the arrays of the system."""
    if isinstance(goal, np.ndarray):
        bags = a @ states
        return states @ invert_moments(bags.T @ bags, states.T @ goal)
    import torch

    rows = torch.from_numpy(states).to(goal.device)
    bags = a @ rows
    onto = invert_moments(to_numpy(bags.T @ bags), to_numpy(rows.T @ goal))
    return rows @ torch.from_numpy(onto).to(goal.device)
