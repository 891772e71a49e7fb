"""Several vectors for an ambiguous word: clusters of its sampled states in context, with example sentences.

The vector of a word is the mean of its sampled states, as in `aggregate`, and a sense is the mean of those of one
cluster: both are in one space. In the space of another method, `auto` with `senses=N`, a sense is the word's vector and
the difference of its mean from the word's, mapped linearly: `s = v_w + W (c - m_w)`, where W is the ridge regression of
all words' vectors on their means. Clusters are found by spherical k-means (Dhillon & Modha 2001), as in Reisinger &
Mooney (2010), of the differences of states from their word's mean. Directions in which the contexts of all words differ
are shortened: `(λ / mean λ + 0.1)^(-1/4)` for each eigenvalue λ of the covariance of these differences.

A number of senses is accepted if each of them has a least share of the contexts, and if the contexts of every two are
bimodal on the line between their centres: Sarle's coefficient, (skewness² + 1) / kurtosis, which is 1/3 for a normal
distribution, 5/9 for a uniform one and 1 for two points. Of several numbers the one with the largest coefficient is
chosen. Most words keep one sense. `recipes/pseudowords.py` measures how often words are divided rightly.

The text of a sampled context is kept as up to 32 subword tokens around the word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stillvec.encoding import Encoded
from stillvec.learners.accumulators import Accumulator, AccumulatorSpec
from stillvec.learners.first_component import Sample, StateSample, find_places
from stillvec.learners.table_memory import FinishScale
from stillvec.numerics import kmeans, principal_axes, second_moments, unit_rows
from stillvec.registry import check_least
from stillvec.result import Result
from stillvec.sense_table import SenseTable
from stillvec.statistics import KEYS, WORDS, Array, Statistics
from stillvec.teachers import Teacher
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

TEXT_BYTES = 192  # of a context, as UTF-8
TEXTS = "sample:texts"
_TOKENS = 32  # of a context
_N_STARTS = 3  # of k-means
_N_EXAMPLES = 3  # per sense
_RIDGE = 0.01  # of the map into another space, as a share of the mean variance
_FLOOR = 0.1  # added to eigenvalues, as a share of their mean
_POWER = -0.25  # of eigenvalues


@dataclass(frozen=True)
class TextSample(StateSample):
    """The same sample of states, with the text around each."""

    def sample_bytes(self, vocabulary: Vocabulary, dim: int, n_words: int) -> int:
        n_rows = min(int(np.minimum(vocabulary.counts, self.keep).sum()), n_words)
        return super().sample_bytes(vocabulary, dim, n_words) + n_rows * (4 * _TOKENS + TEXT_BYTES)

    def make_accumulator(self, teacher: Teacher, vocabulary: Vocabulary) -> Accumulator:
        return _SampleWithTexts(self, teacher, len(vocabulary))


class _SampleWithTexts(Sample):
    state_fields: tuple[str, ...] = (*Sample.state_fields, "tokens")

    def __init__(self, spec: TextSample, teacher: Teacher, n_words: int) -> None:
        super().__init__(spec, teacher, n_words)
        self.tokenizer = teacher.tokenizer
        self.tokens = np.zeros((0, _TOKENS), np.int32)  # (R, 32), -1: none

    def keep_more(self, encoded: Encoded, chosen: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        """The tokens around the chosen words of the batch."""
        if len(self.tokens) < len(self.words):
            added = np.full((len(self.words) - len(self.tokens), _TOKENS), -1, np.int32)
            self.tokens = np.concatenate([self.tokens, added])
        batch = encoded.batch
        sentence = batch.word_sentence[chosen]
        counts = batch.tokens_per_sentence.astype(np.int64)
        first, n_tokens = (np.cumsum(counts) - counts)[sentence], counts[sentence]
        start = np.clip(find_places(batch)[chosen] - _TOKENS // 2, 0, np.maximum(n_tokens - _TOKENS, 0))
        inside = start[:, None] + np.arange(_TOKENS)  # (n, 32)
        index = np.minimum(first[:, None] + inside, len(batch.token_index) - 1)
        ids = batch.ids.reshape(-1)[batch.token_index[index]]
        self.tokens[rows] = np.where(inside < n_tokens[:, None], ids, -1)

    def arrays(self) -> dict[str, Array]:
        tokens = self.tokens[self.settle()]
        texts = self.tokenizer.decode([row[row >= 0].tolist() for row in tokens])
        return super().arrays() | {TEXTS: encode_texts(texts)}


def encode_texts(texts: list[str]) -> NDArray[np.uint8]:
    """Texts as UTF-8 (n, 192), cut between characters, filled with zeros."""
    table = np.zeros((len(texts), TEXT_BYTES), np.uint8)
    for row, text in zip(table, texts, strict=True):
        data = text.strip().encode()[:TEXT_BYTES].decode(errors="ignore").encode()
        row[: len(data)] = np.frombuffer(data, np.uint8)
    return table


@dataclass(frozen=True)
class Senses:
    RENAMED: ClassVar[dict[str, str]] = {"most": "senses"}
    SUMMARY: ClassVar[str] = "the mean of its states in some contexts, with one vector per sense beside it"
    PAPERS: ClassVar[tuple[str, ...]] = ("bommasani-2020",)
    layer: str = "last3"  # layers of the teacher: last, all, a number, a range such as 3-6, or last3
    pieces: str = "mean"  # how the states of subword tokens are pooled: mean, first, last, max or min
    keep: int = 64  # contexts sampled per word
    senses: int = 3  # per word at most
    least_share: float = 0.15  # of the contexts that a sense must have
    least_contexts: int = 6  # that a sense must have
    bimodality: float = 0.72  # least coefficient of the contexts of two senses
    seed: int = 0  # random seed

    def finish_bytes(self, scale: FinishScale) -> int:
        return 2 * TextSample(keep=self.keep).sample_bytes(scale.vocabulary, scale.dim, scale.n_words) + 2 * scale.table

    def specs(self) -> dict[str, AccumulatorSpec]:
        check_least(self, senses=1, least_contexts=1)
        return {"sample": TextSample(self.layer, self.pieces, self.keep, self.seed)}

    def finish(self, statistics: Mapping[str, Statistics]) -> Result:
        means, senses = self.find(statistics["sample"])
        table = _make_table(statistics["sample"], senses, np.array([sense.centre for sense in senses], np.float32))
        return Result(WordVectors(statistics["sample"].vocabulary, means, senses=table), self.describe(senses))

    def finish_in(self, vectors: WordVectors, sample: Statistics) -> tuple[WordVectors, dict[str, object]]:
        """Vectors of another method with the senses in their space, and notes."""
        means, senses = self.find(sample)
        if not senses:
            return vectors, self.describe(senses)
        rows = np.array([sense.word for sense in senses])
        differences = np.array([sense.centre for sense in senses]) - means[rows]
        moved = vectors.matrix[rows] + differences @ map_space(means, np.asarray(vectors.matrix, np.float32))
        table = _make_table(sample, senses, unit_rows(moved) * np.linalg.norm(vectors.matrix[rows], axis=1)[:, None])
        return vectors.with_matrix(vectors.matrix, senses=table), self.describe(senses)

    def find(self, sample: Statistics) -> tuple[Array, list[FoundSense]]:
        """The mean state of each word (V, D), and the senses of words that have several."""
        order = np.lexsort((sample[KEYS], sample[WORDS]))
        counts = np.bincount(sample[WORDS], minlength=len(sample.vocabulary))
        ends = np.cumsum(counts)
        units = sample["sample:states"]
        centres = np.zeros((len(counts), units.shape[1]), np.float32)  # of the units of each word
        for word, (end, count) in enumerate(zip(ends.tolist(), counts.tolist(), strict=True)):
            centres[word] = units[order[end - count : end]].mean(axis=0, dtype=np.float64) if count else 0
        axes = shorten_axes(second_moments(units) - second_moments(centres, weights=counts.astype(np.float64)))
        matrix = np.zeros((len(counts), units.shape[1]), np.float32)
        senses: list[FoundSense] = []
        for word, (end, count) in enumerate(zip(ends.tolist(), counts.tolist(), strict=True)):
            rows = order[end - count : end]
            states = units[rows].astype(np.float32) * sample["sample:lengths"][rows, None]  # (n, D)
            matrix[word] = states.mean(axis=0) if count else 0
            labels = self._cluster(unit_rows((units[rows] - centres[word]) @ axes, np.float64))
            for label in range(int(labels.max(initial=0)) + 1 if labels.any() else 0):
                chosen = np.flatnonzero(labels == label)
                centre = states[chosen].mean(axis=0)
                typical = np.argsort(-unit_rows(states[chosen]) @ unit_rows(centre), kind="stable")[:_N_EXAMPLES]
                found = FoundSense(word, centre, len(chosen) / count, rows[chosen], rows[chosen[typical]].tolist())
                senses.append(found)
        return matrix, senses

    def _cluster(self, units: Array) -> NDArray[np.int64]:
        """The sense of each state (n,), larger senses first; zeros if the word has one."""
        best, best_coefficient = np.zeros(len(units), np.int64), self.bimodality
        if len(units) < units.shape[1]:
            units = np.linalg.qr(units.T)[1].T  # (n, n): the same cosines in fewer dimensions
        least = max(self.least_contexts, int(np.ceil(self.least_share * len(units))))
        for n_senses in range(2, min(self.senses, len(units) // least) + 1):
            generator = np.random.default_rng(self.seed)
            starts = [kmeans(units, n_senses, generator, spherical=True) for _ in range(_N_STARTS)]
            clustering = min(starts, key=lambda found: found.inertia)
            sizes = np.bincount(clustering.labels, minlength=n_senses)
            if sizes.min() < max(least, 2):  # of one state nothing is left for its own centre
                continue
            coefficient = measure_bimodality(units, clustering.labels)
            if coefficient > best_coefficient:
                rank = np.argsort(np.argsort(-sizes, kind="stable"), kind="stable")
                best, best_coefficient = rank[clustering.labels], coefficient
        return best

    @staticmethod
    def describe(senses: Sequence[FoundSense]) -> dict[str, object]:
        return {"ambiguous_words": len({sense.word for sense in senses}), "senses": len(senses)}


class FoundSense(NamedTuple):
    word: int  # row in the vocabulary
    centre: Array  # (D,)
    share: float  # of the word's contexts
    rows: NDArray[np.int64]  # of the sample: its contexts
    examples: list[int]  # the most typical ones


def map_space(means: Array, vectors: Array) -> Array:
    """The matrix W (D, dim) for which the centred `means W` are nearest to the centred vectors, by ridge regression."""
    from_mean, to_mean = means.mean(axis=0), vectors.mean(axis=0)
    x, y = (means - from_mean).astype(np.float64), (vectors - to_mean).astype(np.float64)
    second = x.T @ x
    ridge = _RIDGE * np.trace(second) / len(second) * np.eye(len(second))
    return np.asarray(np.linalg.solve(second + ridge + 1e-12 * np.eye(len(second)), x.T @ y), np.float32)


def shorten_axes(moments: Array) -> Array:
    """A map (D, D) to principal axes, of which those with large moments are shortened."""
    values, axes = principal_axes(moments)
    mean = values.mean()
    return axes * (values / mean + _FLOOR) ** _POWER if mean else axes


def measure_bimodality(units: Array, labels: NDArray[np.int64]) -> float:
    """Sarle's coefficient on the line between two centres, the least of all pairs of clusters.

    A unit row's place is its cosine with the one centre less that with the other, and its own centre is computed
    without it: otherwise two halves of any cluster would seem apart.
    """
    sums = np.stack([units[labels == label].sum(axis=0) for label in range(int(labels.max(initial=0)) + 1)])  # (k, D)
    own = np.sum(units * unit_rows(sums[labels] - units, np.float64), axis=1)
    cosines = units @ unit_rows(sums, np.float64).T  # (n, k)
    cosines[np.arange(len(units)), labels] = own
    coefficients = []
    for one, other in combinations(range(len(sums)), 2):
        chosen = (labels == one) | (labels == other)
        places = cosines[chosen, one] - cosines[chosen, other]
        places -= places.mean()
        places /= places.std() or 1
        skewness, kurtosis = float(np.mean(places**3)), float(np.mean(places**4))
        coefficients.append((skewness**2 + 1) / kurtosis if kurtosis else 0.0)
    return min(coefficients)


def _make_table(sample: Statistics, senses: Sequence[FoundSense], matrix: Array) -> SenseTable | None:
    if not senses:
        return None
    examples = np.zeros((len(senses), _N_EXAMPLES, TEXT_BYTES), np.uint8)
    for number, sense in enumerate(senses):
        examples[number, : len(sense.examples)] = sample[TEXTS][sense.examples]
    words = np.array([sense.word for sense in senses], np.int64)
    shares = np.array([sense.share for sense in senses], np.float32)
    return SenseTable(sample.vocabulary, words, np.asarray(matrix, np.float32), shares, examples)
