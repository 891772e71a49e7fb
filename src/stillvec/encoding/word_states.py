"""The states of all words of texts at several layers, from one pass of the teacher, stored as contexts are.

A store (`context_store.py`) holds one layer: `states` has a row for every word, the mean over its tokens, in the order
of the texts; `contexts` has one for every text, its first token ([CLS]); `words` is -1 for a word that has no token.
Both begin with two rows of zeros (`N_SPECIAL`), so that a mapped file can serve as the table of a task as it is.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stillvec.encoding.batch import Batch, make_batches
from stillvec.encoding.batch_loader import BatchBudget
from stillvec.encoding.caching_tokenizer import align_words
from stillvec.encoding.context_store import Contexts, ContextWriter, StoreLocation, bytes_needed, check_room
from stillvec.encoding.encoded import Encoded
from stillvec.encoding.forward_pass import encode_batch
from stillvec.files import digest
from stillvec.teachers import Teacher
from stillvec.vocabulary import Vocabulary, WordMatcher, WordSpans

N_SPECIAL = 2  # rows of zeros at the start of a store
_BLOCK = 1024  # texts whose states are in memory at once


@dataclass(frozen=True)
class MarkedTexts:
    """Texts and where their words are."""

    texts: Sequence[str]
    spans: WordSpans  # of all words, in order; the ids are not used

    @classmethod
    def from_tokens(cls, sentences: Sequence[Sequence[str]]) -> MarkedTexts:
        """Tokenized sentences: the teacher reads their tokens with a space between."""
        lengths = np.fromiter((len(token) for sentence in sentences for token in sentence), np.int64)
        text_index = np.repeat(np.arange(len(sentences)), [len(sentence) for sentence in sentences])
        ends = np.cumsum(lengths + 1) - 1
        first = np.flatnonzero(np.diff(text_index, prepend=-1))  # words that begin a text
        offset = np.repeat((ends - lengths)[first], np.diff(first, append=len(ends)))
        arrays = (np.full(len(ends), -1), ends - lengths - offset, ends - offset, text_index)
        return cls([" ".join(tokens) for tokens in sentences], WordSpans(*(x.astype(np.int32) for x in arrays)))

    @classmethod
    def from_texts(cls, texts: Sequence[str]) -> MarkedTexts:
        """The words that `distill` would find."""
        return cls(texts, WordMatcher(Vocabulary(())).match(texts))

    @property
    def words(self) -> list[str]:
        """The words as they are written."""
        spans = zip(self.spans.text_index.tolist(), self.spans.starts.tolist(), self.spans.ends.tolist(), strict=True)
        return [self.texts[text][start:end] for text, start, end in spans]

    @cached_property
    def digest(self) -> str:
        arrays = (self.spans.starts, self.spans.ends, self.spans.text_index)
        return digest(
            chain(
                (f"{text}\0".encode("utf-8", "surrogatepass") for text in self.texts),
                (array.tobytes() for array in arrays),
            )
        )


def read_states(
    teacher: Teacher, marked: MarkedTexts, layers: Sequence[int], folder: Path | None
) -> Generator[float, None, dict[int, Contexts]]:
    """The store of each layer: those in `folder` are opened, the others are computed together; None: in memory.

    A generator of the fraction done.
    """
    location = StoreLocation(folder or Path(), {"texts": marked.digest})
    facts = {"kind": "word states", "teacher": teacher.digest, "precision": teacher.precision}
    facts["device"] = teacher.device.type
    paths = {layer: location.path_for(facts | {"layer": str(layer)}) for layer in layers}
    stores = {layer: Contexts.open(path) for layer, path in paths.items() if folder is not None and path.exists()}
    missing = [layer for layer in paths if layer not in stores]
    if missing and folder is not None:
        size = bytes_needed(len(marked.spans.ids), len(marked.texts), teacher.dim, states=True)
        check_room(folder, len(missing) * size)
    writers: dict[int, ContextWriter] = {}
    try:
        for layer in missing:
            writers[layer] = ContextWriter(None if folder is None else paths[layer], teacher.dim, states=True)
        yield from _write(teacher, marked, writers)
        stores |= {layer: writer.close() for layer, writer in writers.items()}
    finally:
        for writer in writers.values():
            writer.abandon()
    return stores


def _write(teacher: Teacher, marked: MarkedTexts, writers: Mapping[int, ContextWriter]) -> Iterator[float]:
    spans, special = marked.spans, N_SPECIAL
    for first in range(0, len(marked.texts), _BLOCK) if writers else ():
        texts = marked.texts[first : first + _BLOCK]
        begin, end = np.searchsorted(spans.text_index, [first, first + len(texts)])
        text = spans.text_index[begin:end] - np.int32(first)
        numbers = np.arange(end - begin, dtype=np.int32)  # as rows of a vocabulary: a batch then names its words
        block = WordSpans(numbers, spans.starts[begin:end], spans.ends[begin:end], text)
        tokenized, present = align_words(teacher.tokenizer.encode(texts), block)
        limits = {"window": teacher.window, "pad": teacher.pad, "budget": BatchBudget.for_teacher(teacher).n_tokens}
        states = {layer: torch.zeros(special + len(text), teacher.dim) for layer in writers}
        firsts = {layer: torch.zeros(special + len(texts), teacher.dim) for layer in writers}
        for batch in make_batches(tokenized, teacher.tokenizer, **limits, packed=teacher.packing is not None):
            encoded = encode_batch(teacher, batch, [*writers])
            word = torch.from_numpy(special + batch.word_id.astype(np.int64))
            sentence, place = _first_tokens(batch, text, len(teacher.tokenizer.prefix))
            for layer in writers:
                states[layer][word] = encoded.words(layer).cpu()
                firsts[layer][special + sentence] = _take(encoded, layer, place)
        words = np.concatenate([np.full(special, -1), np.where(present, 0, -1)])
        lengths = np.concatenate([np.ones(special, np.int64), np.bincount(text, minlength=len(texts))])
        for layer, writer in writers.items():
            writer.add(words, lengths, firsts[layer], states[layer])
        special = 0  # only the first block
        yield min(1.0, (first + len(texts)) / len(marked.texts))


def _first_tokens(batch: Batch, text: NDArray[np.int32], n_prefix: int) -> tuple[Tensor, Tensor]:
    """The number of each sentence of a batch that has words, and where the state of its first token is."""
    n_tokens = batch.tokens_per_sentence
    starts = np.cumsum(n_tokens) - n_tokens
    sentence, at = np.unique(batch.word_sentence, return_index=True)
    place = batch.token_index[starts[sentence]] - n_prefix
    return torch.from_numpy(text[batch.word_id[at]].astype(np.int64)), torch.from_numpy(place.astype(np.int64))


def _take(encoded: Encoded, layer: int, place: Tensor) -> Tensor:
    states = encoded.states[layer]
    return states[place.to(states.device)].float().cpu()
