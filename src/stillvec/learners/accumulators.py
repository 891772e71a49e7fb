"""What learners share: specs and accumulators, the choice of layers, tables of word states.

The state of an accumulator can be saved as plain arrays, so that a run that was stopped can continue. It names in
`state_fields` its attributes that change: tensors, arrays, numbers, lists of arrays (which are concatenated) and
dictionaries of tensors. They are restored bit for bit. Other kinds of state need `save_state` and `load_state` of its
own; one with neither cannot be continued.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from stillvec.corpus.text_chunk import TextChunk
from stillvec.errors import UsageError
from stillvec.learners.partition import WORDS_PER_CHUNK
from stillvec.learners.table_memory import word_table
from stillvec.memory import release_pages
from stillvec.progress import Phase
from stillvec.refinement.all_but_the_top import AllButTheTop
from stillvec.result import Result
from stillvec.statistics import Array, Statistics
from stillvec.teachers.layer_choice import parse_layers
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary, WordSpans

if TYPE_CHECKING:  # merging needs no torch
    from stillvec.encoding import Encoded
    from stillvec.teachers import Teacher

_OLD_NAMES = {"n_contexts": "heard"}  # of fields, in checkpoints of earlier versions
_BLOCK_WORDS = 8192  # averaged at once


class TextSource(Enum):
    """What a spec has the teacher read."""

    SENTENCES = "sentences"  # of the corpus, one at a time
    PARAGRAPHS = "paragraphs"  # of the corpus, each as one text
    OWN_TEXTS = "own texts"  # `OwnTextsSpec.texts`


class Accumulator(Protocol):
    """Collects statistics batch by batch, as a `BatchConsumer`; `state_fields` names what a checkpoint holds."""

    @property
    def layers(self) -> Sequence[int]: ...

    def update(self, encoded: Encoded) -> None: ...

    def arrays(self) -> dict[str, Array]:
        """The statistics so far, named as `statistics` expects."""


@runtime_checkable
class HasStateFields(Protocol):
    """Names the attributes that a checkpoint holds."""

    state_fields: Sequence[str]


@runtime_checkable
class HasOwnState(Protocol):
    """Saves and restores its state itself."""

    def save_state(self) -> dict[str, Array]:
        """All that changes during a pass."""

    def load_state(self, arrays: Mapping[str, Array]) -> None:
        """Continue from there."""


@runtime_checkable
class HasTotals(Protocol):
    """An accumulator some of whose arrays belong to the corpus as a whole, not to single words."""

    def totals(self) -> dict[str, Array]: ...


@runtime_checkable
class HasLoss(Protocol):
    """An accumulator that trains during the pass."""

    @property
    def loss(self) -> float:
        """NaN before the first step."""


class AccumulatorSpec(Protocol):
    """What to accumulate. Specs compare by their settings: equal specs of several learners share one accumulator."""

    @property
    def source(self) -> TextSource:
        """What the teacher reads for it."""

    def make_accumulator(self, teacher: Teacher, vocabulary: Vocabulary) -> Accumulator:
        """An empty accumulator."""


@runtime_checkable
class ContextsOnlySpec(AccumulatorSpec, Protocol):
    """A spec of sentences that may do without the words that the corpus lacks, which are else read alone."""

    @property
    def contexts_only(self) -> bool: ...


@runtime_checkable
class OwnTextsSpec(AccumulatorSpec, Protocol):
    """A spec whose source is `TextSource.OWN_TEXTS`."""

    @property
    def label(self) -> str:
        """What the texts are, for progress messages."""

    @property
    def phase(self) -> Phase:
        """The phase of the run in which they are read."""

    def texts(self, vocabulary: Vocabulary) -> Iterator[TextChunk]:
        """Texts for the teacher, each standing for one word."""


@runtime_checkable
class TemplateSpec(OwnTextsSpec, Protocol):
    """A dataclass whose texts are words in templates, which several specs may have in common."""

    @property
    def templates(self) -> tuple[str, ...]: ...


class Learner(Protocol):
    """A method: settings, what it accumulates during the pass, and vectors from the statistics."""

    def specs(self) -> dict[str, AccumulatorSpec]:
        """What it accumulates, by name."""

    def finish(self, statistics: Mapping[str, Statistics]) -> Result:
        """Vectors from the statistics of its specs."""


@runtime_checkable
class HasDim(Protocol):
    """A learner with a setting for the dimension of its vectors, which needs no PCA afterwards."""

    @property
    def dim(self) -> int | None: ...


@runtime_checkable
class ExpandsLayers(Protocol):
    """A class of learners of which the general setting `layer=all` gives one per layer."""

    EXPANDS_LAYERS: bool


@runtime_checkable
class HasRunPresets(Protocol):
    """A class of learners whose presets, by name, also set fields of `Distillation`."""

    RUN_PRESETS: Mapping[str, Mapping[str, object]]


@runtime_checkable
class HasEarlierDefaults(Protocol):
    """A class of learners with settings that manifests of earlier versions lack, and that had other defaults then."""

    EARLIER: Mapping[str, object]


@dataclass(frozen=True)
class WordStates:
    """The states of words, pooled over tokens, then over contexts: one table per layer."""

    layer: str = "last"
    pieces: str = "mean"
    contexts: str = "mean"
    contexts_only: bool = False  # words that the corpus lacks are not read alone
    source: ClassVar[TextSource] = TextSource.SENTENCES

    def make_accumulator(self, teacher: Teacher, vocabulary: Vocabulary) -> Accumulator:
        return _WordTables(self, teacher, len(vocabulary))


class _WordTables:
    state_fields = ("tables", "n_contexts")

    def __init__(self, spec: WordStates, teacher: Teacher, n_words: int) -> None:
        import torch

        if spec.contexts not in ("mean", "max", "min"):
            raise UsageError.unknown("context pooling", spec.contexts, ("mean", "max", "min"))
        self.spec = spec
        self.layers = choose_layers(spec.layer, teacher)
        self.kind = "sum" if spec.contexts == "mean" else spec.contexts
        empty = {"sum": 0.0, "max": -np.inf, "min": np.inf}[self.kind]
        self.tables = {layer: word_table(n_words, teacher.dim, teacher.device, empty) for layer in self.layers}
        self.n_contexts = torch.zeros(n_words, dtype=torch.int64, device=teacher.device)

    def update(self, encoded: Encoded) -> None:
        ids = encoded.known_id
        self.n_contexts.index_add_(0, ids, ids.new_ones(len(ids)))
        for layer, table in self.tables.items():
            if self.kind == "sum" and self.spec.pieces == "mean":
                encoded.add_to(table, layer)
                continue
            states = encoded.words(layer, self.spec.pieces)[encoded.known]
            if self.kind == "sum":
                table.index_add_(0, ids, states)
            else:
                table.index_reduce_(0, ids, states, "amax" if self.kind == "max" else "amin")

    def arrays(self) -> dict[str, Array]:
        tables = {f"{self.kind}:layer-{layer}": to_numpy(table) for layer, table in self.tables.items()}
        return tables | {"sum:contexts": to_numpy(self.n_contexts)}


def choose_layers(layer: str, teacher: Teacher) -> tuple[int, ...]:
    """The layers of a setting: as `parse_layers`, and `best`, `best3`: those up to the one that relates words best."""
    parts = str(layer).split("+")
    for at, part in enumerate(parts):
        if part.startswith("best") and (part[4:] or "1").isdigit():
            from stillvec.learners.layer_look import find_best_layer  # the look needs torch

            best = find_best_layer(teacher)
            parts[at] = f"{max(min(best, 1), best + 1 - int(part[4:] or 1))}-{best}"
    return parse_layers("+".join(parts), teacher.depth)


def to_numpy(values: Any) -> Array:
    """A tensor, array or number as an array, not copied where it is in this machine's memory."""
    return np.asarray(values.detach().cpu().numpy() if hasattr(values, "detach") else values)


class WordMeans(Mapping[int, Array]):
    """Layer → (V, D): the pooled states of `WordStates`, computed on access."""

    def __init__(self, statistics: Statistics, layers: Iterable[int] | None = None) -> None:
        self._contexts = np.maximum(statistics["sum:contexts"], 1)[:, None].astype(np.float32)
        names = [(name, *name.split(":layer-")) for name in statistics.arrays if ":layer-" in name]
        tables = {int(layer): (kind, statistics[name]) for name, kind, layer in names}
        self._tables = tables if layers is None else {layer: tables[layer] for layer in layers}

    def __getitem__(self, layer: int) -> Array:
        return self._rows(layer, slice(None))

    @property
    def n_contexts(self) -> Array:
        """What sums are divided by (V, 1)."""
        return self._contexts

    def table(self, layer: int) -> tuple[str, Array]:
        """How contexts are pooled (sum, max or min), and the table (V, D)."""
        return self._tables[layer]

    def mean(self) -> Array:
        """The mean over layers, a block of words at a time: no second table is in memory."""
        shape = next(iter(self._tables.values()))[1].shape
        total = np.empty(shape, np.float32)
        for first in range(0, shape[0], _BLOCK_WORDS):
            block = slice(first, first + _BLOCK_WORDS)
            total[block] = mean_matrix(self._rows(layer, block) for layer in self)
        return total

    def _rows(self, layer: int, words: slice) -> Array:
        kind, table = self._tables[layer]
        rows = table[words]
        return np.asarray(rows / self._contexts[words] if kind == "sum" else np.where(np.isfinite(rows), rows, 0))

    def __iter__(self) -> Iterator[int]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


def chunk_texts(pairs: Iterable[tuple[int, str]]) -> Iterator[TextChunk]:
    """Chunks of texts that each, as a whole, stand for one word: (row in the vocabulary, text)."""
    iterator = iter(pairs)
    while chunk := [*islice(iterator, WORDS_PER_CHUNK)]:
        rows, texts = zip(*chunk, strict=True)
        lengths = np.fromiter(map(len, texts), np.int32, len(texts))
        numbers = np.arange(len(texts), dtype=np.int32)
        yield TextChunk(texts, WordSpans(np.array(rows, np.int32), np.zeros_like(lengths), lengths, numbers))


def mean_matrix(matrices: Iterable[Array]) -> Array:
    """The mean of matrices that are made one at a time: only the sum and one of them are in memory."""
    iterator = iter(matrices)
    total, number = np.array(next(iterator), np.float32), 1
    for matrix in iterator:
        total += matrix
        number += 1
    total /= np.float32(number)
    return total


def remove_directions(matrix: Array, vocabulary: Vocabulary, n_directions: int) -> Array:
    """Remove the mean and the first principal directions, if any; very small tables stay as they are."""
    n_directions = min(n_directions, matrix.shape[1] - 1, len(matrix) - 2)
    if n_directions <= 0:
        return matrix
    return np.asarray(AllButTheTop(n_directions)(WordVectors(vocabulary, matrix)).matrix)


def can_checkpoint(accumulator: object) -> bool:
    return isinstance(accumulator, HasOwnState | HasStateFields)


def save_state(accumulator: object) -> dict[str, Array]:
    """The state of an accumulator, not copied where it is in this machine's memory."""
    if isinstance(accumulator, HasOwnState):
        return accumulator.save_state()
    assert isinstance(accumulator, HasStateFields)
    arrays: dict[str, Array] = {}
    for name in accumulator.state_fields:
        value = getattr(accumulator, name)
        if isinstance(value, list):
            arrays |= {name: np.concatenate(value)} if value else {}
        elif isinstance(value, dict):
            arrays |= {f"{name}.{key}": to_numpy(item) for key, item in value.items()}
        else:
            arrays[name] = to_numpy(value)
    return arrays


def load_state(accumulator: object, arrays: Mapping[str, Array]) -> None:
    """Restore the state of an empty accumulator."""
    if isinstance(accumulator, HasOwnState):
        accumulator.load_state(arrays)
        return
    assert isinstance(accumulator, HasStateFields)
    for name in accumulator.state_fields:
        setattr(accumulator, name, _from_arrays(name, getattr(accumulator, name), arrays))


def _from_arrays(name: str, value: Any, arrays: Mapping[str, Array]) -> Any:
    """A value of the same kind as `value`, with the saved numbers."""
    if isinstance(value, dict):
        return {key: _convert(item, arrays[f"{name}.{key}"]) for key, item in value.items()}
    if isinstance(value, list):
        return [np.array(arrays[name])] if name in arrays else []
    return _convert(value, arrays[name if name in arrays else _OLD_NAMES.get(name, name)])


def _convert(value: Any, array: Array) -> Any:
    if hasattr(value, "detach"):  # a tensor
        import torch

        if array.shape == tuple(value.shape) and value.device.type == "cpu":
            value.numpy()[...] = array  # a table may be large: no copy between
            release_pages(array)
            return value
        tensor = torch.from_numpy(np.array(array))
        release_pages(array)
        return tensor.to(value.device) if tensor.shape != value.shape else value.copy_(tensor)
    return np.array(array) if isinstance(value, np.ndarray) else type(value)(array)
