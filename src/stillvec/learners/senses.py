"""Several vectors for an ambiguous word: clusters of its sampled states in context, with example sentences.

The vector of a word is the mean of its sampled states, as in `aggregate`, and a sense is the mean of those of one
cluster: both are in one space. In the space of another method, `auto` with `senses=N`, a sense is the word's vector and
the difference of its mean from the word's, mapped linearly: `s = v_w + W (c - m_w)`, where W is the ridge regression of
all words' vectors on their means. Clusters are found by spherical k-means (Dhillon & Modha 2001) of states from which
the mean of all states, which all words share, is removed. A number of senses is accepted if each of them has a least
share of the contexts, and if states are nearer to their own centre than to the next one, by the mean difference of
cosines (the simplified silhouette; Rousseeuw 1987); of several numbers the one with the largest difference. Most words
keep one. Reisinger & Mooney (2010) cluster contexts in the same way.

The text of a sampled context is kept as up to 32 subword tokens around the word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stillvec.encoding import Encoded
from stillvec.learners.accumulators import Accumulator, AccumulatorSpec
from stillvec.learners.first_component import Sample, StateSample, find_places
from stillvec.learners.table_memory import FinishScale
from stillvec.numerics import kmeans, unit_rows
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
    layer: str = "last"  # layers of the teacher: last, all, a number, a range such as 3-6, or last3
    pieces: str = "mean"  # how the states of subword tokens are pooled: mean, first, last, max or min
    keep: int = 64  # contexts sampled per word
    senses: int = 3  # per word at most
    least_share: float = 0.15  # of the contexts that a sense must have
    least_contexts: int = 6  # that a sense must have
    separation: float = 0.06  # least mean difference of a state's cosines with its own centre and with the next one
    seed: int = 0  # random seed

    def finish_bytes(self, scale: FinishScale) -> int:
        return 2 * TextSample(keep=self.keep).sample_bytes(scale.vocabulary, scale.dim, scale.n_words) + scale.table

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

    def find(self, sample: Statistics) -> tuple[Array, list[_FoundSense]]:
        """The mean state of each word (V, D), and the senses of words that have several."""
        order = np.lexsort((sample[KEYS], sample[WORDS]))
        counts = np.bincount(sample[WORDS], minlength=len(sample.vocabulary))
        ends = np.cumsum(counts)
        units = sample["sample:states"]
        mean = np.mean(units, axis=0, dtype=np.float64) if len(order) else np.zeros(units.shape[1])
        matrix = np.zeros((len(counts), units.shape[1]), np.float32)
        senses: list[_FoundSense] = []
        for word, (end, count) in enumerate(zip(ends.tolist(), counts.tolist(), strict=True)):
            rows = order[end - count : end]
            states = units[rows].astype(np.float32) * sample["sample:lengths"][rows, None]  # (n, D)
            matrix[word] = states.mean(axis=0) if count else 0
            labels = self._cluster(unit_rows(units[rows] - mean, np.float64))
            for label in range(int(labels.max(initial=0)) + 1 if labels.any() else 0):
                chosen = np.flatnonzero(labels == label)
                centre = states[chosen].mean(axis=0)
                typical = np.argsort(-unit_rows(states[chosen]) @ unit_rows(centre), kind="stable")[:_N_EXAMPLES]
                senses.append(_FoundSense(word, centre, len(chosen) / count, rows[chosen[typical]].tolist()))
        return matrix, senses

    def _cluster(self, units: Array) -> NDArray[np.int64]:
        """The sense of each state (n,), larger senses first; zeros if the word has one."""
        best, best_difference = np.zeros(len(units), np.int64), self.separation
        least = max(self.least_contexts, int(np.ceil(self.least_share * len(units))))
        for n_senses in range(2, min(self.senses, len(units) // least) + 1):
            generator = np.random.default_rng(self.seed)
            starts = [kmeans(units, n_senses, generator, spherical=True) for _ in range(_N_STARTS)]
            clustering = min(starts, key=lambda found: found.inertia)
            sizes = np.bincount(clustering.labels, minlength=n_senses)
            difference = measure_separation(units, clustering.labels)
            if sizes.min() >= least and difference > best_difference:
                rank = np.argsort(np.argsort(-sizes, kind="stable"), kind="stable")
                best, best_difference = rank[clustering.labels], difference
        return best

    @staticmethod
    def describe(senses: Sequence[_FoundSense]) -> dict[str, object]:
        return {"ambiguous_words": len({sense.word for sense in senses}), "senses": len(senses)}


class _FoundSense(NamedTuple):
    word: int  # row in the vocabulary
    centre: Array  # (D,)
    share: float  # of the word's contexts
    examples: list[int]  # rows of the sample


def map_space(means: Array, vectors: Array) -> Array:
    """The matrix W (D, dim) for which the centred `means W` are nearest to the centred vectors, by ridge regression."""
    from_mean, to_mean = means.mean(axis=0), vectors.mean(axis=0)
    x, y = (means - from_mean).astype(np.float64), (vectors - to_mean).astype(np.float64)
    second = x.T @ x
    ridge = _RIDGE * np.trace(second) / len(second) * np.eye(len(second))
    return np.asarray(np.linalg.solve(second + ridge + 1e-12 * np.eye(len(second)), x.T @ y), np.float32)


def measure_separation(units: Array, labels: NDArray[np.int64]) -> float:
    """The mean difference of each unit row's cosines with its own centre, without itself, and with the next centre."""
    sums = np.stack([units[labels == label].sum(axis=0) for label in range(int(labels.max(initial=0)) + 1)])  # (k, D)
    own = np.sum(units * unit_rows(sums[labels] - units, np.float64), axis=1)
    cosines = units @ unit_rows(sums, np.float64).T  # (n, k)
    cosines[np.arange(len(units)), labels] = -np.inf
    return float(np.mean(own - cosines.max(axis=1)))


def _make_table(sample: Statistics, senses: Sequence[_FoundSense], matrix: Array) -> SenseTable | None:
    if not senses:
        return None
    examples = np.zeros((len(senses), _N_EXAMPLES, TEXT_BYTES), np.uint8)
    for number, sense in enumerate(senses):
        examples[number, : len(sense.examples)] = sample[TEXTS][sense.examples]
    words = np.array([sense.word for sense in senses], np.int64)
    shares = np.array([sense.share for sense in senses], np.float32)
    return SenseTable(sample.vocabulary, words, np.asarray(matrix, np.float32), shares, examples)
