"""What learners share: the parts they listen with, the choice of layers, the tables that add up during a pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from stillvec.encoding import BatchConsumer, Encoded, TextChunk
from stillvec.errors import UsageError
from stillvec.learners.partition import ALONE_AT_ONCE
from stillvec.learners.table_memory import word_table
from stillvec.statistics import Statistics
from stillvec.statistics.mergeable import Array
from stillvec.teachers import Teacher
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary, WordSpans

_AT_ONCE = 8192  # words


class Accumulator(BatchConsumer, Protocol):
    """A listener that can say what it heard; its `memory` names what changes meanwhile (`remembering`)."""

    def arrays(self) -> dict[str, Array]:
        """Named as `statistics` wants them."""


class AccumulatorSpec(Protocol):
    """One thing to listen for. Parts compare by their settings: equal ones, of several learners, listen once."""

    @property
    def label(self) -> str:
        """What it has read to it, in words."""

    def texts(self, vocabulary: Vocabulary) -> Iterator[TextChunk] | None:
        """Texts of its own for the teacher to read, or None: it listens to the corpus."""

    def listen(self, teacher: Teacher, vocabulary: Vocabulary) -> Accumulator:
        """Begin to listen."""


@dataclass(frozen=True)
class Finished:
    """Vectors, and what the learner decided on the way."""

    vectors: WordVectors
    notes: Mapping[str, object] = field(default_factory=dict)
    model: Mapping[str, Array] = field(default_factory=dict)  # what else was learnt, for those who look inside


class Learner(Protocol):
    """A method: settings, parts that listen, and what to make of what they heard."""

    def parts(self) -> dict[str, AccumulatorSpec]:
        """What it listens for, by name."""

    def finish(self, heard: Mapping[str, Statistics]) -> Finished:
        """Vectors from the statistics of its parts."""


def layers_of(layer: str, depth: int) -> tuple[int, ...]:
    """`last`, `3`, `-2` (the last but one), `3-6`, `last3` (the last three), `all`."""
    text = str(layer).strip()
    if text.startswith("last") and text[4:].isdigit() and int(text[4:]):
        return tuple(range(max(0, depth + 1 - int(text[4:])), depth + 1))
    if text == "last":
        return (depth,)
    if text == "all":
        return tuple(range(depth + 1))
    first, dash, last = text.partition("-") if not text.startswith("-") else (text, "", "")
    try:
        low = int(first)
        low, high = (depth + 1 + low if low < 0 else low), (int(last) if dash else None)
    except ValueError:
        raise UsageError(f"A layer is a number, 'last', 'all' or a range such as 3-6, and {layer!r} came.") from None
    high = low if high is None else high
    if not 0 <= low <= high <= depth:
        raise UsageError(f"The teacher has layers 0 (input) to {depth} (last), and {layer!r} was asked for.")
    return tuple(range(low, high + 1))


@dataclass(frozen=True)
class WordStates:
    """Listens for the states of words: pieces pooled, then contexts pooled, a table a layer."""

    layer: str = "last"
    pieces: str = "mean"
    contexts: str = "mean"
    label: ClassVar[str] = "the corpus"

    def texts(self, vocabulary: Vocabulary) -> Iterator[TextChunk] | None:
        return None

    def listen(self, teacher: Teacher, vocabulary: Vocabulary) -> Accumulator:
        return _WordTables(self, teacher, len(vocabulary))


class _WordTables:
    memory = ("tables", "heard")

    def __init__(self, part: WordStates, teacher: Teacher, words: int) -> None:
        if part.contexts not in ("mean", "max", "min"):
            raise UsageError(f"There is no context pooling {part.contexts!r}; known are mean, max, min.")
        self.part = part
        self.layers = layers_of(part.layer, teacher.depth)
        self.kind = "sum" if part.contexts == "mean" else part.contexts
        empty = {"sum": 0.0, "max": -torch.inf, "min": torch.inf}[self.kind]
        self.tables = {layer: word_table(words, teacher.dim, teacher.device, empty) for layer in self.layers}
        self.heard = torch.zeros(words, dtype=torch.int64, device=teacher.device)

    def update(self, encoded: Encoded) -> None:
        ids = encoded.known_id
        self.heard.index_add_(0, ids, torch.ones_like(ids))
        for layer, table in self.tables.items():
            if self.kind == "sum" and self.part.pieces == "mean":
                encoded.add_to(table, layer)
                continue
            states = encoded.words(layer, self.part.pieces)[encoded.known]
            if self.kind == "sum":
                table.index_add_(0, ids, states)
            else:
                table.index_reduce_(0, ids, states, "amax" if self.kind == "max" else "amin")

    def arrays(self) -> dict[str, Array]:
        tables = {f"{self.kind}:layer-{layer}": to_numpy(table) for layer, table in self.tables.items()}
        return tables | {"sum:contexts": to_numpy(self.heard)}


def to_numpy(tensor: Tensor) -> Array:
    return np.asarray(tensor.cpu().numpy())


class WordMeans(Mapping[int, Array]):
    """Layer → (V, D): the pooled states that `WordStates` heard, each made when it is asked for."""

    def __init__(self, heard: Statistics, layers: Iterable[int] | None = None) -> None:
        self._contexts = np.maximum(heard["sum:contexts"], 1)[:, None].astype(np.float32)
        found = {int(label[6:]): (kind, heard[name]) for name, kind, label in _named(heard) if label[:6] == "layer-"}
        self._tables = found if layers is None else {layer: found[layer] for layer in layers}

    def __getitem__(self, layer: int) -> Array:
        return self._some(layer, slice(None))

    def mean(self) -> Array:
        """Of all layers, by some words at a time: no second table is held."""
        words, dim = next(iter(self._tables.values()))[1].shape
        total = np.empty((words, dim), np.float32)
        for first in range(0, words, _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            total[some] = mean_of(self._some(layer, some) for layer in self)
        return total

    def _some(self, layer: int, words: slice) -> Array:
        kind, table = self._tables[layer]
        some = table[words]
        return np.asarray(some / self._contexts[words] if kind == "sum" else np.where(np.isfinite(some), some, 0))

    def __iter__(self) -> Iterator[int]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


def _named(heard: Statistics) -> Iterator[tuple[str, str, str]]:
    for name in heard.arrays:
        kind, _, label = name.partition(":")
        yield name, kind, label


def chunk_of_whole_texts(texts: Sequence[str], rows: Sequence[int] | Array) -> TextChunk:
    """Texts that, each as a whole, stand for one word."""
    every = np.arange(len(texts), dtype=np.int32)
    lengths = np.fromiter(map(len, texts), np.int32, len(texts))
    return TextChunk(texts, WordSpans(np.asarray(rows, np.int32), np.zeros_like(lengths), lengths, every))


def chunk_texts(pairs: Iterable[tuple[int, str]], size: int = ALONE_AT_ONCE) -> Iterator[TextChunk]:
    """(row, text) pairs → marked chunks."""
    rows: list[int] = []
    texts: list[str] = []
    for row, text in pairs:
        rows.append(row)
        texts.append(text)
        if len(texts) == size:
            yield chunk_of_whole_texts(texts, rows)
            rows, texts = [], []
    if texts:
        yield chunk_of_whole_texts(texts, rows)


def unit(matrix: Array) -> Array:
    """Rows of length one; a zero row stays zero."""
    lengths: Any = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.asarray(matrix / np.where(lengths > 0, lengths, 1))


def mean_of(matrices: Iterable[Array]) -> Array:
    """Of several at once only the sum and one of them are in memory."""
    several = iter(matrices)
    total, number = np.array(next(several), np.float32), 1
    for matrix in several:
        total += matrix
        number += 1
    total /= np.float32(number)
    return total
