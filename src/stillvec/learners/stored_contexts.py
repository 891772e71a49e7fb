"""Contexts that are trained on: listened for once, kept on disk or in memory, read again in shards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stillvec.encoding import Contexts, ContextWriter, Encoded, StoreLocation, bytes_needed, shard_of
from stillvec.errors import UsageError
from stillvec.learners.accumulators import Accumulator, TextSource, layers_of
from stillvec.statistics.mergeable import Array
from stillvec.teachers import Teacher
from stillvec.vocabulary import Vocabulary


@dataclass(frozen=True)
class StoredContexts:
    """Listens for the vector of every sentence, alone or inside its paragraph; for the states of its words if asked.

    What was heard goes to a store, if there is a desk with a folder for it, and else stays in memory.
    """

    layer: str = "last"
    unit: str = "sentence"  # or "paragraph", where a context is the mean of a sentence's words
    states: bool = False
    min_sentences: int = 1  # sentences with words that a paragraph must have; a word that is read alone has none

    def __post_init__(self) -> None:
        if self.unit not in ("sentence", "paragraph"):
            raise UsageError(f"A context is a sentence or a paragraph, and {self.unit!r} came.")

    @property
    def source(self) -> TextSource:
        return TextSource.SENTENCES if self.unit == "sentence" else TextSource.PARAGRAPHS

    def make_accumulator(self, teacher: Teacher, vocabulary: Vocabulary) -> ContextStoreWriter:
        return ContextStoreWriter(self, teacher, vocabulary)


class ContextAccumulator(Accumulator, Protocol):
    """Who hears contexts, and may leave some out."""

    part: StoredContexts
    met: NDArray[np.int64]  # how often each word stood in one that was kept


class ContextStoreWriter:
    """Writes down the contexts of a pass; with a store that is there already, it need not listen."""

    def __init__(self, part: StoredContexts, teacher: Teacher, vocabulary: Vocabulary) -> None:
        self.part = part
        self.layers = layers_of(part.layer, teacher.depth)
        self.kept: Contexts | None = None
        self.met = np.zeros(len(vocabulary), np.int64)
        self._dim = teacher.dim
        self._facts = {
            "teacher": teacher.digest,
            "precision": teacher.precision,
            "layers": self.layers,
            "reads": part.unit,
            "states": part.states,
            "least": part.min_sentences,
            "vocabulary": vocabulary.digest if vocabulary.lowercase else f"{vocabulary.digest}, cased",
        }
        self._writer: ContextWriter | None = None
        self._desk: StoreLocation | None = None

    def open(self, desk: StoreLocation) -> None:
        """Take the store that this desk has, or get ready to write it."""
        self._desk = desk
        place = self.place()
        if place.exists():
            self.kept = Contexts.open(place)

    def bytes_needed(self) -> int:
        """About what will be written."""
        if self.kept is not None or self._desk is None:
            return 0
        return bytes_needed(self._desk.words, self._desk.sentences, self._dim, states=self.part.states)

    def update(self, encoded: Encoded) -> None:
        if self._writer is None:
            self._writer = self._new_writer()
        shard = block_of_contexts(encoded, self.layers, self.part)
        self.met += counted(shard.words, len(self.met))
        self._writer.add(*shard)

    def remember(self) -> dict[str, Array]:
        return {"met": self.met} | ({} if self._writer is None else self._writer.remember())

    def recall(self, kept: Mapping[str, Array]) -> None:
        """Go on with half a store, unless a whole one is there by now."""
        self.met[:] = kept["met"]
        if self.kept is None and "rows" in kept:
            self._writer = self._new_writer()
            self._writer.recall(kept)

    def _new_writer(self) -> ContextWriter:
        desk, states = self._desk, self.part.states
        if desk is None:
            return ContextWriter(None, self._dim, states=states)
        place = self.place()
        if desk.shard is not None:
            place = shard_of(place, desk.shard)
        return ContextWriter(place, self._dim, states=states, checkpoint=desk.checkpoint)

    def place(self) -> Path:
        """Where its whole store lies, or will."""
        assert self._desk is not None
        return self._desk.place(self._facts)

    def close(self) -> None:
        """The pass is over."""
        if self._writer is not None:
            self.kept, self._writer = self._writer.close(), None
        elif self.kept is None:
            sharing = self._desk is not None and self._desk.shard is not None  # who heard nothing has a shard too
            writer = self._new_writer() if sharing else ContextWriter(None, self._dim, states=self.part.states)
            self.kept = writer.close()

    def abandon(self) -> None:
        if self._writer is not None:
            self._writer.abandon()

    def arrays(self) -> dict[str, Array]:
        """As they lie; a name with `stored:` is not written beside the vectors, and does not merge."""
        if self.kept is None:
            self.close()
        assert self.kept is not None
        return kept_arrays(self.kept)


def kept_arrays(kept: Contexts) -> dict[str, Array]:
    """Contexts under the names that statistics give them."""
    found: dict[str, Array] = {
        "stored:words": kept.words,
        "stored:lengths": kept.lengths,
        "stored:contexts": kept.contexts,
        "stored:scale": np.array(kept.scale),
    }
    return found if kept.states is None else found | {"stored:states": kept.states}


def check_found_contexts(part: StoredContexts, met: NDArray[np.int64]) -> None:
    """Whether the corpus had anything for it."""
    least = part.min_sentences
    if least > 1 and not met.any():
        raise UsageError(
            f"No paragraph of the corpus has {least} sentences or more, and least={least} asks for them; "
            "give a lower one, or context=sentence."
        )


def counted(words: NDArray[np.int32], rows: int) -> NDArray[np.int64]:
    """How often each word of the vocabulary is among them."""
    return np.bincount(words[words >= 0], minlength=rows)


class BatchContexts(NamedTuple):
    """The sentences of a batch."""

    words: NDArray[np.int32]
    lengths: NDArray[np.int64]
    contexts: Tensor
    states: Tensor | None


def block_of_contexts(encoded: Encoded, layers: tuple[int, ...], part: StoredContexts) -> BatchContexts:
    """The sentences of a batch that have words, with their vectors."""
    batch = encoded.batch
    states = None
    if part.states or part.unit == "paragraph":
        states = torch.stack([encoded.words(layer) for layer in layers]).mean(0)  # (W, D)
    if part.unit == "sentence":
        lengths = np.bincount(batch.word_sentence, minlength=len(batch.tokens_per_sentence))
        filled = torch.from_numpy(np.flatnonzero(lengths))
        vectors = torch.stack([encoded.sentences(layer) for layer in layers]).mean(0)
        contexts, lengths = vectors[filled.to(vectors.device)], lengths[lengths > 0]
    else:
        assert states is not None
        begins = np.flatnonzero(
            np.diff(batch.word_sentence, prepend=-1) | np.diff(batch.sentence_in_paragraph, prepend=-1)
        )  # words come in order, so a sentence is a run
        lengths = np.diff(np.append(begins, len(batch.word_id)))
        group = torch.from_numpy(np.repeat(np.arange(len(lengths)), lengths)).to(states.device)
        size = torch.from_numpy(np.maximum(lengths, 1)).to(states.device)[:, None]
        contexts = torch.zeros(len(lengths), states.shape[1], device=states.device).index_add_(0, group, states) / size
        if part.min_sentences > 1 and len(begins):
            paragraph = batch.word_sentence[begins]
            stay = (np.bincount(paragraph)[paragraph] >= part.min_sentences) | (batch.sentence_in_paragraph[begins] < 0)
            here = np.repeat(stay, lengths)
            kept = torch.from_numpy(stay).to(states.device), torch.from_numpy(here).to(states.device)
            return BatchContexts(
                batch.word_id[here], lengths[stay], contexts[kept[0]], states[kept[1]] if part.states else None
            )
    return BatchContexts(batch.word_id, lengths, contexts, states if part.states else None)
