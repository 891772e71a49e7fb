"""Sentence contexts for methods that train: accumulated once, stored on disk or in memory, read again in blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stillvec.encoding import Encoded
from stillvec.encoding.context_store import Contexts, ContextWriter, StoreLocation, bytes_needed, shard_path
from stillvec.errors import UsageError
from stillvec.learners.accumulators import Accumulator, TextSource, choose_layers
from stillvec.statistics import Array
from stillvec.teachers import Teacher
from stillvec.vocabulary import Vocabulary
from stillvec.vocabulary.segmenters import split_names


@dataclass(frozen=True)
class StoredContexts:
    """The vector of every sentence, alone or inside its paragraph, with the states of its words if asked.

    They go to a store if the pass has a folder for one, and otherwise stay in memory.
    """

    layer: str = "last"
    unit: str = "sentence"  # what the teacher reads at once, or "paragraph"; a context is a mean of words in both cases
    states: bool = False
    min_sentences: int = 1  # per paragraph, with words; a word that is read alone is exempt

    def __post_init__(self) -> None:
        if self.unit not in ("sentence", "paragraph"):
            raise UsageError.expected("'sentence' or 'paragraph'", repr(self.unit), where="setting 'context'")

    @property
    def source(self) -> TextSource:
        return TextSource.SENTENCES if self.unit == "sentence" else TextSource.PARAGRAPHS

    def make_accumulator(self, teacher: Teacher, vocabulary: Vocabulary) -> ContextStoreWriter:
        return ContextStoreWriter(self, teacher, vocabulary)


class ContextAccumulator(Accumulator, Protocol):
    """Accumulates contexts, and may skip some."""

    spec: StoredContexts
    n_contexts: NDArray[np.int64]  # (V,) how often each word was in a context that was not skipped


class ContextStoreWriter:
    """Writes the contexts of a pass; where a complete store exists, it need not read anything."""

    def __init__(self, spec: StoredContexts, teacher: Teacher, vocabulary: Vocabulary) -> None:
        self.spec = spec
        self.layers = choose_layers(spec.layer, teacher)
        self.contexts: Contexts | None = None  # once they are complete
        self.n_contexts = np.zeros(len(vocabulary), np.int64)
        self._dim = teacher.dim
        self._facts = {
            "teacher": teacher.digest,
            "precision": teacher.precision,
            "layers": self.layers,
            "reads": spec.unit,
            "states": spec.states,
            "least": spec.min_sentences,
            "pools": "words",
            "vocabulary": _describe_words(vocabulary),
        }
        self._writer: ContextWriter | None = None
        self._location: StoreLocation | None = None

    def open(self, location: StoreLocation) -> None:
        """Open the store that is there, or prepare to write it."""
        self._location = location
        path = self.path()
        if path.exists():
            self.contexts = Contexts.open(path)

    def bytes_needed(self) -> int:
        """About what will be written."""
        if self.contexts is not None or self._location is None:
            return 0
        return bytes_needed(self._location.n_words, self._location.n_sentences, self._dim, states=self.spec.states)

    def update(self, encoded: Encoded) -> None:
        if self._writer is None:
            self._writer = self._new_writer()
        block = batch_contexts(encoded, self.layers, self.spec)
        self.n_contexts += count_rows(block.words, len(self.n_contexts))
        self._writer.add(*block)

    def save_state(self) -> dict[str, Array]:
        return {"met": self.n_contexts} | ({} if self._writer is None else self._writer.save_state())

    def load_state(self, arrays: Mapping[str, Array]) -> None:
        """Continue a partial store, unless a complete one exists by now."""
        self.n_contexts[:] = arrays["met"]
        if self.contexts is None and "rows" in arrays:
            self._writer = self._new_writer()
            self._writer.load_state(arrays)

    def _new_writer(self) -> ContextWriter:
        location, states = self._location, self.spec.states
        if location is None:
            return ContextWriter(None, self._dim, states=states)
        path = self.path() if location.shard is None else shard_path(self.path(), location.shard)
        return ContextWriter(path, self._dim, states=states, checkpoint=location.checkpoint)

    def path(self) -> Path:
        """Where the complete store is, or will be."""
        assert self._location is not None
        return self._location.path_for(self._facts)

    def close(self) -> None:
        """Complete the store: the pass has ended."""
        if self._writer is not None:
            self.contexts, self._writer = self._writer.close(), None
        elif self.contexts is None:
            sharded = self._location is not None and self._location.shard is not None  # an empty shard is one too
            writer = self._new_writer() if sharded else ContextWriter(None, self._dim, states=self.spec.states)
            self.contexts = writer.close()

    def abandon(self) -> None:
        if self._writer is not None:
            self._writer.abandon()

    def arrays(self) -> dict[str, Array]:
        """Memory-mapped; names with `stored:` are neither merged nor written beside the vectors."""
        if self.contexts is None:
            self.close()
        assert self.contexts is not None
        return context_arrays(self.contexts)


def context_arrays(contexts: Contexts) -> dict[str, Array]:
    """Contexts under the names that statistics give them."""
    arrays: dict[str, Array] = {
        "stored:words": contexts.words,
        "stored:lengths": contexts.lengths,
        "stored:contexts": contexts.contexts,
        "stored:scale": np.array(contexts.scale),
    }
    return arrays if contexts.states is None else arrays | {"stored:states": contexts.states}


def check_contexts_found(spec: StoredContexts, n_contexts: NDArray[np.int64]) -> None:
    """Raise an error if the corpus has no paragraph that is long enough."""
    least = spec.min_sentences
    if least > 1 and not n_contexts.any():
        raise UsageError(
            f"No paragraph of the corpus has {least} or more sentences, as min_sentences={least} requires; "
            "give a lower one, or context=sentence."
        )


def count_rows(words: NDArray[np.int32], n_rows: int) -> NDArray[np.int64]:
    """How often each row of the vocabulary occurs; -1 is ignored."""
    return np.bincount(words[words >= 0], minlength=n_rows)


class BatchContexts(NamedTuple):
    """The contexts of a batch."""

    words: NDArray[np.int32]
    lengths: NDArray[np.int64]
    contexts: Tensor
    states: Tensor | None


def batch_contexts(encoded: Encoded, layers: tuple[int, ...], spec: StoredContexts) -> BatchContexts:
    """The sentences of a batch that have words, each with the mean of its words; several layers are averaged."""
    batch = encoded.batch
    states = torch.stack([encoded.words(layer) for layer in layers]).mean(0)  # (W, D)
    is_first = np.diff(batch.word_sentence, prepend=-1) != 0  # words are in order: those of a sentence are contiguous
    if spec.unit == "paragraph":
        is_first |= np.diff(batch.sentence_in_paragraph, prepend=-1) != 0
    starts = np.flatnonzero(is_first)
    lengths = np.diff(np.append(starts, len(batch.word_id)))
    sentence = torch.from_numpy(np.repeat(np.arange(len(lengths)), lengths)).to(states.device)
    size = torch.from_numpy(np.maximum(lengths, 1)).to(states.device)[:, None]
    contexts = torch.zeros(len(lengths), states.shape[1], device=states.device).index_add_(0, sentence, states) / size
    words = batch.word_id
    if spec.min_sentences > 1 and len(starts):
        paragraph = batch.word_sentence[starts]
        chosen = np.bincount(paragraph)[paragraph] >= spec.min_sentences
        chosen |= batch.sentence_in_paragraph[starts] < 0
        of_word = np.repeat(chosen, lengths)
        contexts, states = contexts[torch.from_numpy(chosen)], states[torch.from_numpy(of_word)]
        words, lengths = words[of_word], lengths[chosen]
    return BatchContexts(words, lengths, contexts, states if spec.states else None)


def _describe_words(vocabulary: Vocabulary) -> str:
    case = [] if vocabulary.lowercase else ["cased"]
    return ", ".join([vocabulary.digest, *case, *split_names(vocabulary.segmenter)])
