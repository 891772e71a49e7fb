"""A corpus as the pass wants it: counted once, then read again, only the sentences that are needed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from operator import itemgetter
from typing import TypeVar

from stillvec.corpus import Corpus, sentence_ends
from stillvec.corpus.selection import LOOKAHEAD, ContextSelector
from stillvec.encoding import TextChunk, TextUnit
from stillvec.learners.partition import Partition
from stillvec.vocabulary import Vocabulary, WordCounter, WordMatcher

T = TypeVar("T")
_PARAGRAPHS = 1000  # counted at once
_FILES = 4  # a share, at least, where shares are files
_SENTENCE = 110  # characters, about
_FIRST = (16, 8), (16, 2)  # chunks, and how many of them are as large as a later one,
_LEAST = 2048 * _SENTENCE  # characters of a chunk that is worth it
_TOGETHER = 32  # paragraphs
_WHOLE = 20_000  # characters of a paragraph that is read whole, at most


@dataclass
class CorpusCounter:
    """The first reading: how often each word stands in the corpus, or in a share of it.

    With enough files a share is files, else stretches of paragraphs, for which the whole corpus is read through.
    """

    corpus: Corpus
    counter: WordCounter
    share: Partition = field(default_factory=Partition)
    words: int = 0
    paragraphs: int = 0
    characters: int = 0
    digests: dict[int, str] = field(default_factory=dict)  # of the text of each file, by its number
    _stretches: int = field(default=0, init=False)

    def steps(self) -> Iterator[int]:
        """Yields the number of words so far."""
        of = self.share.of
        by_file = of > 1 and len(self.corpus.sources) >= _FILES * of
        read = self.corpus.numbered((lambda file: file % of == self.share.number) if by_file else None)
        held: list[str] = []
        for file, several in groupby(read, itemgetter(0)):
            state = hashlib.blake2b(digest_size=16)
            for chunk in batched((paragraph for _, paragraph in several), _PARAGRAPHS):
                state.update("\n".join(chunk).encode("utf-8", "replace"))
                held += chunk
                if len(held) >= _PARAGRAPHS:
                    self._count(held, every=by_file)
                    held = []
                    yield self.words
            self.digests[file] = state.hexdigest()
        self._count(held, every=by_file)
        yield self.words

    def _count(self, paragraphs: list[str], *, every: bool) -> None:
        mine = every or self._stretches % self.share.of == self.share.number
        self._stretches += 1
        if mine:
            self.words += self.counter.add(paragraphs)
            self.paragraphs += len(paragraphs)
            self.characters += sum(map(len, paragraphs))


@dataclass
class SentenceStream:
    """The second reading: sentences for the teacher."""

    corpus: Corpus
    vocabulary: Vocabulary
    contexts: int | None
    sentences_at_once: int
    seed: int = 0
    share: Partition = field(default_factory=Partition)
    characters: int = 0  # of the corpus, and
    words: int = 0  # its words: how far a chunk is in it

    @property
    def characters_at_once(self) -> int:
        """Of a chunk, about."""
        return self.sentences_at_once * _SENTENCE

    def parts(self) -> list[SentenceStream]:
        """What can be read apart, with the chunks that the whole has: shares of the corpus; choosing is one stream."""
        return [self] if self.contexts is not None else [replace(self, corpus=share) for share in self.corpus.shares()]

    def chunks(self) -> Iterator[TextChunk]:
        return self._everything() if self.contexts is None else self._chosen(self.contexts)

    def paragraphs(self) -> Iterator[TextChunk]:
        """The same, paragraph by paragraph, for those who read them whole."""
        finder = WordMatcher(self.vocabulary)
        selector = None
        if self.contexts is not None:
            selector = ContextSelector(self.vocabulary.counts, self.contexts, seed=self.seed)
        number = gone = 0
        size = max(1, self.sentences_at_once // 4)
        for held in (held for part in self.parts() for held in batched(part._not_too_long(), size)):
            if selector is not None:
                rows, text = finder.rows(held)
                wanted = selector.choose(rows, text, len(held))
                chosen = [paragraph for paragraph, take in zip(held, wanted, strict=True) if take]
            else:
                chosen = held
            if chosen:
                if self.share.takes(number, gone / max(self.characters, 1)):
                    yield TextChunk(chosen, unit=TextUnit.WHOLE_PARAGRAPHS)
                number += 1
            gone += sum(map(len, held))

    def _not_too_long(self) -> Iterator[str]:
        """Paragraphs; one that no teacher could read at once, cut between sentences."""
        for paragraph in self.corpus.paragraphs():
            if len(paragraph) <= _WHOLE:
                yield paragraph
                continue
            start = end = 0
            for here in sentence_ends(paragraph):
                if here - start > _WHOLE and end > start:
                    yield paragraph[start:end]
                    start = end
                end = here
            yield paragraph[start:]

    def _everything(self) -> Iterator[TextChunk]:
        """Paragraphs: whoever prepares them, in a thread or in many processes, cuts them into sentences."""
        gone = 0
        for number, held in enumerate(held for part in self.parts() for held in part._stretches()):
            if self.share.takes(number, gone / max(self.characters, 1)):
                yield TextChunk(held, unit=TextUnit.PARAGRAPHS)
            gone += sum(map(len, held))

    def _stretches(self) -> Iterator[list[str]]:
        """The first ones are small, so that a fast teacher has something to read soon."""
        most = self.characters_at_once
        sizes = (min(most, max(most // share, _LEAST)) for number, share in _FIRST for _ in range(number))
        wanted = next(sizes)
        held: list[str] = []
        size = 0
        paragraphs = self.corpus.paragraphs()
        while several := [*islice(paragraphs, _TOGETHER)]:
            length = sum(map(len, several))
            if size + length < wanted:
                held += several
                size += length
                continue
            for paragraph in several:
                held.append(paragraph)
                size += len(paragraph)
                if size >= wanted:
                    yield held
                    held, size = [], 0
                    wanted = next(sizes, most)
        if held:
            yield held

    def _chosen(self, contexts: int) -> Iterator[TextChunk]:
        finder = WordMatcher(self.vocabulary)
        selector = ContextSelector(self.vocabulary.counts, contexts, seed=self.seed)
        number = passed = 0
        for sentences in batched(self.corpus.sentences(), LOOKAHEAD):
            rows, text = finder.rows(sentences)
            wanted = selector.choose(rows, text, len(sentences))
            chosen = [sentence for sentence, take in zip(sentences, wanted, strict=True) if take]
            gone = passed / max(self.words, 1)
            parts = [*batched(chosen, self.sentences_at_once)]
            for place, part in enumerate(parts, 1):
                if self.share.takes(number, gone):
                    yield TextChunk(part, corpus_position=passed + len(rows) * place // len(parts))
                number += 1
            passed += len(rows)


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    held: list[T] = []
    for item in items:
        held.append(item)
        if len(held) == size:
            yield held
            held = []
    if held:
        yield held
