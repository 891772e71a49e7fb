"""A corpus as the pass reads it: only the sentences that are needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress, islice, pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from stillvec.corpus import Corpus, sentence_ends, split_sentences
from stillvec.corpus.selection import LOOKAHEAD, ContextSelector
from stillvec.corpus.text_chunk import StreamPosition, TextChunk, TextUnit
from stillvec.corpus.worker_pool import WorkerPool
from stillvec.learners.partition import Partition
from stillvec.vocabulary import Vocabulary, WordMatcher

T = TypeVar("T")
_SENTENCE_CHARACTERS = 110  # on average
_FIRST_CHUNKS = (16, 8), (16, 2)  # number of chunks, and how many times smaller than the later ones
_MIN_CHUNK = 2048 * _SENTENCE_CHARACTERS  # characters
_PARAGRAPHS_TOGETHER = 32  # measured together, while a chunk is far from full
_PARAGRAPHS_PER_TASK = 1000  # whose words a process finds at once
_MAX_PARAGRAPH = 20_000  # characters of a paragraph that is read as one text


@dataclass
class SentenceStream:
    """The second reading: sentences for the teacher."""

    corpus: Corpus
    vocabulary: Vocabulary
    contexts: int | None  # per word; None: everything is read
    sentences_per_chunk: int
    seed: int = 0
    partition: Partition = field(default_factory=Partition)
    n_characters: int = 0  # of the corpus, to know
    n_words: int = 0  # where in it a chunk is
    matcher: WordMatcher | None = None  # of the vocabulary, to share what it knows; None: one of its own
    workers: int = 0  # processes that find the words to select sentences by; 0: none but this one

    @property
    def characters_per_chunk(self) -> int:
        """On average."""
        return self.sentences_per_chunk * _SENTENCE_CHARACTERS

    def slices(self) -> list[SentenceStream]:
        """Streams that can be read apart and have the chunks of the whole; selection needs one stream."""
        return [self] if self.contexts is not None else [replace(self, corpus=part) for part in self.corpus.split()]

    def chunks(self) -> Iterator[TextChunk]:
        return self._read_all() if self.contexts is None else self._select(self.contexts)

    def paragraphs(self) -> Iterator[TextChunk]:
        """The same, paragraph by paragraph, for specs that read them whole."""
        selector = None if self.contexts is None else self._selector(self.contexts)
        number = position = n_chosen = n_own = 0
        size = max(1, self.sentences_per_chunk // 4)
        for chunk in (chunk for part in self.slices() for chunk in split_batches(part._split_long_paragraphs(), size)):
            chosen = chunk if selector is None else self._match_texts(chunk).choose(selector)
            before, position = position, position + sum(map(len, chunk))
            if chosen:
                size_chosen = sum(map(len, chosen))
                n_chosen += size_chosen
                if self.partition.owns_chunk(number, before / max(self.n_characters, 1)):
                    n_own += size_chosen
                    where = self._position(n_own, n_chosen * self.n_characters / position)
                    yield TextChunk(chosen, unit=TextUnit.WHOLE_PARAGRAPHS, position=where)
                number += 1

    def _selector(self, contexts: int) -> ContextSelector:
        return ContextSelector(self.vocabulary.counts, contexts, seed=self.seed)

    @cached_property
    def _matcher(self) -> WordMatcher:
        return self.matcher or WordMatcher(self.vocabulary, lazy=True)

    def _split_long_paragraphs(self) -> Iterator[str]:
        """Paragraphs; one too long for any teacher is split between sentences."""
        for paragraph in self.corpus.paragraphs():
            if len(paragraph) <= _MAX_PARAGRAPH:
                yield paragraph
                continue
            start = end = 0
            for sentence_end in sentence_ends(paragraph):
                if sentence_end - start > _MAX_PARAGRAPH and end > start:
                    yield paragraph[start:end]
                    start = end
                end = sentence_end
            yield paragraph[start:]

    def _read_all(self) -> Iterator[TextChunk]:
        """Paragraphs: the batch builder, in a thread or in many processes, splits them into sentences."""
        position = n_own = 0
        for number, chunk in enumerate(chunk for part in self.slices() for chunk in part._paragraph_chunks()):
            size = sum(map(len, chunk))
            if self.partition.owns_chunk(number, position / max(self.n_characters, 1)):
                n_own += size
                yield TextChunk(chunk, unit=TextUnit.PARAGRAPHS, position=self._position(n_own, self.n_characters))
            position += size

    def _position(self, done: int, total: float) -> StreamPosition:
        """`done` characters of this part, `total` ones of the stream, of which each part has about the same share."""
        return StreamPosition(done, max(done, round(total / self.partition.count)) if total else 0)

    def _paragraph_chunks(self) -> Iterator[list[str]]:
        """The first chunks are small, so that a fast teacher has something to read soon."""
        full = self.characters_per_chunk
        sizes = (min(full, max(full // factor, _MIN_CHUNK)) for number, factor in _FIRST_CHUNKS for _ in range(number))
        target = next(sizes)
        chunk: list[str] = []
        size = 0
        paragraphs = self.corpus.paragraphs()
        while group := [*islice(paragraphs, _PARAGRAPHS_TOGETHER)]:
            length = sum(map(len, group))
            if size + length < target:
                chunk += group
                size += length
                continue
            for paragraph in group:
                chunk.append(paragraph)
                size += len(paragraph)
                if size >= target:
                    yield chunk
                    chunk, size = [], 0
                    target = next(sizes, full)
        if chunk:
            yield chunk

    def _select(self, contexts: int) -> Iterator[TextChunk]:
        selector = self._selector(contexts)
        number = position = n_chosen = n_own = 0
        for matched in self._match_in_processes() if self.workers else self._match():
            chosen = matched.choose(selector)
            before, position = position, position + len(matched.rows)
            n_chosen += sum(map(len, chosen))
            is_last = len(matched.texts) < LOOKAHEAD
            total = n_chosen if is_last or not position else n_chosen * self.n_words / position
            for chunk in split_batches(chosen, self.sentences_per_chunk):
                if self.partition.owns_chunk(number, before / max(self.n_words, 1)):
                    n_own += sum(map(len, chunk))
                    yield TextChunk(chunk, position=self._position(n_own, total))
                number += 1

    def _match(self) -> Iterator[_MatchedTexts]:
        """All sentences, as many together as are selected from at once."""
        for sentences in split_batches(self.corpus.sentences(), LOOKAHEAD):
            yield self._match_texts(sentences)

    def _match_texts(self, texts: list[str]) -> _MatchedTexts:
        return _MatchedTexts(texts, *self._matcher.match_rows(texts))

    def _match_in_processes(self) -> Iterator[_MatchedTexts]:
        """The same, from processes that split paragraphs into sentences and find their words."""
        paragraphs = (TextChunk(chunk) for chunk in split_batches(self.corpus.paragraphs(), _PARAGRAPHS_PER_TASK))
        rest = _MatchedTexts([], np.zeros(0, np.int32), np.zeros(0, np.int32))
        with WorkerPool(self._match_paragraphs, self.workers) as pool:
            for _, (part,) in pool.results(paragraphs):
                rest = rest.plus(part.unpack())
                while len(rest.texts) >= LOOKAHEAD:
                    first, rest = rest.split(LOOKAHEAD)
                    yield first
        if rest.texts:
            yield rest

    def _match_paragraphs(self, chunk: TextChunk) -> list[_PackedTexts]:
        sentences = [sentence for paragraph in chunk.texts for sentence in split_sentences(paragraph)]
        rows, text = self._matcher.match_rows(sentences)
        lengths = np.fromiter(map(len, sentences), np.int32, len(sentences))
        joined = np.frombuffer("".join(sentences).encode("utf-8", "surrogatepass"), np.uint8)
        return [_PackedTexts(joined, lengths, rows, text)]


@dataclass(frozen=True)
class _MatchedTexts:
    """Texts and their words."""

    texts: list[str]
    rows: NDArray[np.int32]  # (W,) in the vocabulary, -1: out of it
    text: NDArray[np.int32]  # (W,) which text, ascending

    def choose(self, selector: ContextSelector) -> list[str]:
        chosen = selector.choose(self.rows, self.text, len(self.texts))
        return [*compress(self.texts, chosen.tolist())]

    def plus(self, other: _MatchedTexts) -> _MatchedTexts:
        rows = np.concatenate([self.rows, other.rows])
        return _MatchedTexts(self.texts + other.texts, rows, np.concatenate([self.text, other.text + len(self.texts)]))

    def split(self, n_texts: int) -> tuple[_MatchedTexts, _MatchedTexts]:
        """The first texts, and the others."""
        cut = int(np.searchsorted(self.text, n_texts))
        first = _MatchedTexts(self.texts[:n_texts], self.rows[:cut], self.text[:cut])
        return first, _MatchedTexts(self.texts[n_texts:], self.rows[cut:], self.text[cut:] - n_texts)


@dataclass(frozen=True)
class _PackedTexts:
    """Texts and their words as arrays, which a pool passes between processes."""

    joined: NDArray[np.uint8]
    lengths: NDArray[np.int32]  # of the texts, in characters
    rows: NDArray[np.int32]
    text: NDArray[np.int32]

    def unpack(self) -> _MatchedTexts:
        joined = self.joined.tobytes().decode("utf-8", "surrogatepass")
        ends = np.cumsum(self.lengths).tolist()
        return _MatchedTexts([joined[start:end] for start, end in pairwise([0, *ends])], self.rows, self.text)


def split_batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of `size` items; the last one may be shorter."""
    iterator = iter(items)
    while batch := [*islice(iterator, size)]:
        yield batch
