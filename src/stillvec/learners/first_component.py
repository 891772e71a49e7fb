"""The first principal component of a word's states in its contexts (Ethayarajh 2019).

With X the states of a word, one row per context, `v_w` is the unit vector that maximises `|X v|`: the one static vector
that represents them best. Its sign is that of the word's mean state. Contexts are sampled by a hash of the sentence and
the position in it, so neither the order of reading nor splitting the corpus changes the sample.

`center` subtracts each word's mean first, as the paper's program does (scikit-learn's PCA). The result is how a word's
contexts differ rather than what they share, and says far less about its meaning.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stillvec.encoding import Batch, Encoded
from stillvec.learners.accumulators import Accumulator, AccumulatorSpec, TextSource, choose_layers, to_numpy
from stillvec.learners.table_memory import FinishScale
from stillvec.registry import check_least
from stillvec.result import Result
from stillvec.statistics import KEYS, SIZE, WORDS, Array, Statistics, places, smallest
from stillvec.teachers import Teacher
from stillvec.teachers.device import resolve_device
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

_BLOCK_NUMBERS = 1 << 24  # of a block of words that is computed at once
_ROUNDING = 1e-6  # of the squared length: variance that half precision alone may cause


@dataclass(frozen=True)
class StateSample:
    """The states of `keep` sampled contexts of each word, in half precision.

    A sentence that is read twice is one context. Memory grows with what is read, to at most twice the sampled rows and
    a batch.
    """

    layer: str = "last"
    pieces: str = "mean"
    keep: int = 16
    seed: int = 0
    source: ClassVar[TextSource] = TextSource.SENTENCES

    def text_bytes(self, teacher: Teacher, vocabulary: Vocabulary, n_words: int, n_sentences: int) -> int:
        return 2 * self.sample_bytes(vocabulary, teacher.dim, n_words)  # as many rows again are free

    def sample_bytes(self, vocabulary: Vocabulary, dim: int, n_words: int) -> int:
        n_rows = min(int(np.minimum(vocabulary.counts, self.keep).sum()), n_words)
        return n_rows * (2 * dim + 16)

    def make_accumulator(self, teacher: Teacher, vocabulary: Vocabulary) -> Accumulator:
        return Sample(self, teacher, len(vocabulary))


class Sample:
    """A table of states on the teacher's device; which word has which row is known on the CPU, without waiting."""

    state_fields: tuple[str, ...] = ("bound", "words", "keys", "free", "states", "lengths")

    def __init__(self, spec: StateSample, teacher: Teacher, n_words: int) -> None:
        check_least(spec, keep=1)
        self.spec = spec
        self.layers = choose_layers(spec.layer, teacher)
        self.bound = np.full(n_words, np.iinfo(np.int64).max)  # a full word accepts smaller keys only
        self.words = np.zeros(0, np.int32)  # (R,) of each row; -1: free
        self.keys = np.zeros(0, np.int64)
        self.free = np.zeros(0, np.int64)
        self.states = torch.zeros(0, teacher.dim, dtype=torch.float16, device=teacher.device)  # (R, D) unit
        self.lengths = torch.zeros(0, device=teacher.device)  # some states exceed half precision

    def update(self, encoded: Encoded) -> None:
        batch = encoded.batch
        known = np.flatnonzero(batch.word_id >= 0)
        words, keys = batch.word_id[known], occurrence_keys(batch, self.spec.seed)[known]
        fresh = np.flatnonzero(keys < self.bound[words])
        fresh = fresh[smallest(words[fresh], keys[fresh], self.spec.keep)]
        if not len(fresh):
            return
        rows = self._rows(len(fresh))
        self.words[rows], self.keys[rows] = words[fresh], keys[fresh]
        which, where = encoded.to_device(known[fresh]), encoded.to_device(rows)
        states = torch.stack([encoded.words(layer, self.spec.pieces)[which] for layer in self.layers]).mean(0)
        lengths = states.norm(dim=1)
        self.states[where] = (states / lengths.clamp_min(1e-30)[:, None]).half()
        self.lengths[where] = lengths
        self.keep_more(encoded, known[fresh], rows)

    def keep_more(self, encoded: Encoded, chosen: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        """What else is kept of the chosen words of a batch, in these rows; here nothing."""

    def _rows(self, count: int) -> NDArray[np.int64]:
        """Free rows: those of replaced contexts, else new ones, doubling the table."""
        if count > len(self.free):
            used = self.settle()
            n_rows = max(len(self.words), 2 * len(used), len(used) + count)
            words, keys = np.full(n_rows, -1, np.int32), np.zeros(n_rows, np.int64)
            words[used], keys[used] = self.words[used], self.keys[used]
            self.words, self.keys, self.free = words, keys, np.flatnonzero(words < 0)
            self.states, self.lengths = _grow(self.states, n_rows), _grow(self.lengths, n_rows)
        taken, self.free = self.free[:count], self.free[count:]
        return taken

    def settle(self) -> NDArray[np.int64]:
        """The rows of the sample so far, sorted by word and key; sets the bound of words with a full sample."""
        used = np.flatnonzero(self.words >= 0)
        sample = used[smallest(self.words[used], self.keys[used], self.spec.keep)]
        last = sample[places(self.words[sample]) == self.spec.keep - 1]
        self.bound[self.words[last]] = self.keys[last]
        return sample

    def arrays(self) -> dict[str, Array]:
        sample = self.settle()
        where = torch.from_numpy(sample).to(self.states.device)
        return {
            WORDS: self.words[sample],
            KEYS: self.keys[sample],
            SIZE: np.array([self.spec.keep]),
            "sample:states": to_numpy(self.states[where]),
            "sample:lengths": to_numpy(self.lengths[where]),
        }


def _grow(table: Tensor, n_rows: int) -> Tensor:
    return torch.cat([table, table.new_zeros(n_rows - len(table), *table.shape[1:])]) if n_rows > len(table) else table


def occurrence_keys(batch: Batch, seed: int) -> NDArray[np.int64]:
    """A hash of each word's sentence, as subword tokens, and of its position there: independent of the batch (W,)."""
    counts = batch.tokens_per_sentence.astype(np.int64)
    first, inside = np.cumsum(counts) - counts, _place_tokens(batch)
    tokens = batch.ids.reshape(-1)[batch.token_index].astype(np.uint64)
    sentences = np.add.reduceat(_mix(tokens + (inside.astype(np.uint64) << np.uint64(32))), first)
    salt = np.uint64((seed * 0x9E3779B97F4A7C15) % 2**64)
    return np.asarray(
        _mix(sentences[batch.word_sentence] + _mix(find_places(batch).astype(np.uint64) ^ salt)) >> np.uint64(1),
        np.int64,
    )


def find_places(batch: Batch) -> NDArray[np.int64]:
    """The position of each word's first token in its sentence (W,)."""
    place_of = np.zeros(batch.ids.size, np.int64)
    place_of[batch.token_index] = _place_tokens(batch)
    return np.asarray(place_of[batch.word_token_index[np.cumsum(batch.tokens_per_word) - batch.tokens_per_word]])


def _place_tokens(batch: Batch) -> NDArray[np.int64]:
    """The position of each token in its sentence (P,)."""
    counts = batch.tokens_per_sentence.astype(np.int64)
    return np.arange(len(batch.token_index)) - np.repeat(np.cumsum(counts) - counts, counts)


def _mix(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of splitmix64 (Steele et al. 2014): every bit depends on every bit."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


@dataclass(frozen=True)
class FirstComponent:
    SUMMARY: ClassVar[str] = "the first principal component of its states in some contexts"
    PAPERS: ClassVar[tuple[str, ...]] = ("ethayarajh-2019",)
    layer: str = "last"  # layers of the teacher: last, all, a number, a range such as 3-6, last3, or best
    pieces: str = "mean"  # how the states of subword tokens are pooled: mean, first, last, max or min
    keep: int = 16  # contexts sampled per word; 64 gain half a point of WordSim-353 for twice the memory
    center: bool = False  # subtract the mean of a word's states first; with MiniLM, WordSim-353 falls from 77 to 62
    seed: int = 0  # random seed

    def finish_bytes(self, scale: FinishScale) -> int:
        """The sample, the vectors, and a block: its states in half and single precision, and their squares."""
        sample = StateSample(keep=self.keep).sample_bytes(scale.vocabulary, scale.dim, scale.n_words)
        widest = min(self.keep, int(scale.vocabulary.counts.max(initial=1)))
        block = min(_BLOCK_NUMBERS, len(scale.vocabulary) * widest * scale.dim)
        return sample + scale.table + (18 if self.center else 10) * block

    def specs(self) -> dict[str, AccumulatorSpec]:
        return {"sample": StateSample(self.layer, self.pieces, self.keep, self.seed)}

    def finish(self, statistics: Mapping[str, Statistics]) -> Result:
        sample = statistics["sample"]
        order = np.lexsort((sample[KEYS], sample[WORDS]))
        counts = np.bincount(sample[WORDS], minlength=len(sample.vocabulary))
        ends = np.cumsum(counts)
        dim = sample["sample:states"].shape[1]
        matrix = np.zeros((len(counts), dim), np.float32)
        step = max(1, _BLOCK_NUMBERS // (dim * max(1, int(counts.max(initial=0)))))
        for begin in range(0, len(counts), step):
            block = counts[begin : begin + step]
            rows = order[ends[begin] - counts[begin] : ends[begin + len(block) - 1]]
            matrix[begin : begin + step] = _components(sample, rows, block, center=self.center)
        return Result(WordVectors(sample.vocabulary, matrix), {"contexts_kept": len(order)})


def _components(sample: Statistics, rows: Array, counts: Array, *, center: bool) -> Array:
    """First components of some words (W, D), whose contexts are `rows`, word after word."""
    device = resolve_device("auto")
    word = np.repeat(np.arange(len(counts)), counts)
    width = max(1, int(counts.max(initial=0)))
    states = np.zeros((len(counts), width, sample["sample:states"].shape[1]), np.float32)
    states[word, places(word)] = sample["sample:states"][rows] * sample["sample:lengths"][rows, None]
    n_contexts = torch.from_numpy(np.asarray(counts)).to(device)
    return to_numpy(first_components(torch.from_numpy(states).to(device), n_contexts, center=center))


def first_components(states: Tensor, counts: Tensor, *, center: bool) -> Tensor:
    """Of the first `counts` rows of each word's states (W, N, D), the others zero: of unit length, towards the mean."""
    mean = states.sum(1) / counts.clamp_min(1)[:, None]  # (W, D)
    spread = states
    if center:
        real = torch.arange(states.shape[1], device=states.device) < counts[:, None]
        spread = (states - mean[:, None]) * real[:, :, None]
    gram = spread @ spread.transpose(1, 2)  # (W, N, N): its first eigenvector weights the rows
    values, vectors = torch.linalg.eigh(gram)
    component = (vectors[:, None, :, -1] @ spread)[:, 0]  # (W, D)
    constant = values[:, -1] <= _ROUNDING * states.square().sum((1, 2))  # one context, or the same state in all
    opposite = (component * mean).sum(1, keepdim=True) < 0
    component = torch.where(opposite, -component, component)
    return torch.nn.functional.normalize(torch.where(constant[:, None], mean, component))
