"""The first principal component of a word's states in its contexts (Ethayarajh 2019).

With X the states of a word, a row a context, `v_w` is the unit vector that maximises `|X v|`: the one static vector
that stands best for them all. Its sign is that of the word's mean state. Of each word a sample of contexts is kept,
drawn by a hash of the sentence and the place in it: neither the order of reading nor the parts of a corpus change it.

`center` takes each word's mean from its rows before, as the paper's program does (scikit-learn's PCA). That direction
is how a word's contexts differ rather than what they share, and says far less of its meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stillvec.encoding import Batch, Encoded
from stillvec.errors import UsageError
from stillvec.learners.accumulators import Accumulator, AccumulatorSpec, TextSource, parse_layers, to_numpy
from stillvec.result import Result
from stillvec.statistics import Statistics
from stillvec.statistics.mergeable import Array
from stillvec.statistics.sampling import KEYS, SIZE, WORDS, places, smallest
from stillvec.teachers import Teacher
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

_AT_ONCE = 1 << 24  # numbers of a block of words, which are finished together
_ROUNDING = 1e-6  # of the length squared: a spread that half precision alone may have made


@dataclass(frozen=True)
class StateSample:
    """Listens for the states of words and keeps those of `keep` contexts of each, in half precision.

    A sentence that is read twice is one context. Memory is for what was heard: at most twice the rows that stay, and
    a batch.
    """

    layer: str = "last"
    pieces: str = "mean"
    keep: int = 16
    seed: int = 0
    source: ClassVar[TextSource] = TextSource.SENTENCES

    def text_bytes(self, teacher: Teacher, vocabulary: Vocabulary, n_words: int, n_sentences: int) -> int:
        n_rows = min(int(np.minimum(vocabulary.counts, self.keep).sum()), n_words)
        return n_rows * 2 * (2 * teacher.dim + 16)  # as many rows again are free

    def make_accumulator(self, teacher: Teacher, vocabulary: Vocabulary) -> Accumulator:
        return _Sample(self, teacher, len(vocabulary))


class _Sample:
    """A table of states where the teacher is. Which row is whose is known here: a GPU need not be waited for."""

    state_fields = ("bound", "words", "keys", "free", "states", "lengths")

    def __init__(self, part: StateSample, teacher: Teacher, words: int) -> None:
        if part.keep < 1:
            raise UsageError(f"The setting keep is at least 1, and {part.keep} came.")
        self.part = part
        self.layers = parse_layers(part.layer, teacher.depth)
        self.bound = np.full(words, np.iinfo(np.int64).max)  # a full word takes only keys that are smaller
        self.words = np.zeros(0, np.int32)  # (R,) of each row; -1: free
        self.keys = np.zeros(0, np.int64)
        self.free = np.zeros(0, np.int64)
        self.states = torch.zeros(0, teacher.dim, dtype=torch.float16, device=teacher.device)  # (R, D) of length one
        self.lengths = torch.zeros(0, device=teacher.device)  # apart: some teachers' states are beyond half precision

    def update(self, encoded: Encoded) -> None:
        batch = encoded.batch
        known = np.flatnonzero(batch.word_id >= 0)
        words, keys = batch.word_id[known], occurrence_keys(batch, self.part.seed)[known]
        fresh = np.flatnonzero(keys < self.bound[words])
        fresh = fresh[smallest(words[fresh], keys[fresh], self.part.keep)]
        if not len(fresh):
            return
        rows = self._rows(len(fresh))
        self.words[rows], self.keys[rows] = words[fresh], keys[fresh]
        which, where = encoded.to_device(known[fresh]), encoded.to_device(rows)
        states = torch.stack([encoded.words(layer, self.part.pieces)[which] for layer in self.layers]).mean(0)
        lengths = states.norm(dim=1)
        self.states[where] = (states / lengths.clamp_min(1e-30)[:, None]).half()
        self.lengths[where] = lengths

    def _rows(self, count: int) -> NDArray[np.int64]:
        """Free rows: those of contexts that gave way, else new ones, as many again as are in use."""
        if count > len(self.free):
            kept = self._settle()
            rows = max(len(self.words), 2 * len(kept), len(kept) + count)
            words, keys = np.full(rows, -1, np.int32), np.zeros(rows, np.int64)
            words[kept], keys[kept] = self.words[kept], self.keys[kept]
            self.words, self.keys, self.free = words, keys, np.flatnonzero(words < 0)
            self.states, self.lengths = _grown(self.states, rows), _grown(self.lengths, rows)
        taken, self.free = self.free[:count], self.free[count:]
        return taken

    def _settle(self) -> NDArray[np.int64]:
        """The rows of the sample so far, ordered by word and key; words that are full get their bound."""
        used = np.flatnonzero(self.words >= 0)
        kept = used[smallest(self.words[used], self.keys[used], self.part.keep)]
        last = kept[places(self.words[kept]) == self.part.keep - 1]
        self.bound[self.words[last]] = self.keys[last]
        return kept

    def arrays(self) -> dict[str, Array]:
        kept = self._settle()
        where = torch.from_numpy(kept).to(self.states.device)
        return {
            WORDS: self.words[kept],
            KEYS: self.keys[kept],
            SIZE: np.array([self.part.keep]),
            "sample:states": to_numpy(self.states[where]),
            "sample:lengths": to_numpy(self.lengths[where]),
        }


def _grown(table: Tensor, rows: int) -> Tensor:
    if rows <= len(table):
        return table
    grown = table.new_zeros(rows, *table.shape[1:])
    grown[: len(table)] = table
    return grown


def occurrence_keys(batch: Batch, seed: int) -> NDArray[np.int64]:
    """A hash of each word's sentence, as pieces, and of its place there: the same in whatever batch it is read (W,)."""
    counts = batch.tokens_per_sentence.astype(np.int64)
    first = np.cumsum(counts) - counts
    inside = np.arange(len(batch.token_index)) - np.repeat(first, counts)  # place of each piece in its sentence
    pieces = batch.ids.reshape(-1)[batch.token_index].astype(np.uint64)
    sentences = np.add.reduceat(_mixed(pieces + (inside.astype(np.uint64) << np.uint64(32))), first)
    place_of = np.zeros(batch.ids.size, np.uint64)
    place_of[batch.token_index] = inside
    begins = batch.word_token_index[np.cumsum(batch.tokens_per_word) - batch.tokens_per_word]
    salt = np.uint64((seed * 0x9E3779B97F4A7C15) % 2**64)
    return np.asarray(
        _mixed(sentences[batch.word_sentence] + _mixed(place_of[begins] ^ salt)) >> np.uint64(1), np.int64
    )


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finish of splitmix64 (Steele et al. 2014): every bit depends on every bit."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


@dataclass(frozen=True)
class FirstComponent:
    layer: str = "last"
    pieces: str = "mean"  # mean, first, last, max, min
    keep: int = 16  # contexts of a word; 64 gain half a point of WordSim-353 for twice the memory
    center: bool = False  # centred, WordSim-353 falls from 77 to 62 (MiniLM on the demo's texts, 20 contexts)
    seed: int = 0

    def specs(self) -> dict[str, AccumulatorSpec]:
        return {"sample": StateSample(self.layer, self.pieces, self.keep, self.seed)}

    def finish(self, statistics: Mapping[str, Statistics]) -> Result:
        kept = statistics["sample"]
        order = np.lexsort((kept[KEYS], kept[WORDS]))
        counts = np.bincount(kept[WORDS], minlength=len(kept.vocabulary))
        ends = np.cumsum(counts)
        dim = kept["sample:states"].shape[1]
        matrix = np.zeros((len(counts), dim), np.float32)
        step = max(1, _AT_ONCE // (dim * max(1, int(counts.max(initial=0)))))
        for begin in range(0, len(counts), step):
            held = counts[begin : begin + step]
            rows = order[ends[begin] - counts[begin] : ends[begin + len(held) - 1]]
            matrix[begin : begin + step] = _components(kept, rows, held, center=self.center)
        return Result(WordVectors(kept.vocabulary, matrix), {"contexts_kept": len(order)})


def _components(kept: Statistics, rows: Array, counts: Array, *, center: bool) -> Array:
    """First components of some words (W, D), whose contexts are `rows`, word after word."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    word = np.repeat(np.arange(len(counts)), counts)
    width = max(1, int(counts.max(initial=0)))
    states = np.zeros((len(counts), width, kept["sample:states"].shape[1]), np.float32)
    states[word, places(word)] = kept["sample:states"][rows] * kept["sample:lengths"][rows, None]
    held = torch.from_numpy(np.asarray(counts)).to(device)
    return to_numpy(first_components(torch.from_numpy(states).to(device), held, center=center))


def first_components(states: Tensor, counts: Tensor, *, center: bool) -> Tensor:
    """Of the first `counts` rows of each word's states (W, N, D), the others being zero: unit, towards the mean."""
    mean = states.sum(1) / counts.clamp_min(1)[:, None]  # (W, D)
    spread = states
    if center:
        real = torch.arange(states.shape[1], device=states.device) < counts[:, None]
        spread = (states - mean[:, None]) * real[:, :, None]
    gram = spread @ spread.transpose(1, 2)  # (W, N, N): its first eigenvector weighs the rows
    values, vectors = torch.linalg.eigh(gram)
    found = (vectors[:, None, :, -1] @ spread)[:, 0]  # (W, D)
    alike = values[:, -1] <= _ROUNDING * states.square().sum((1, 2))  # one context, or the same state in all
    away = (found * mean).sum(1, keepdim=True) < 0
    found = torch.where(away, -found, found)
    return torch.nn.functional.normalize(torch.where(alike[:, None], mean, found))
