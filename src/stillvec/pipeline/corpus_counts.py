"""The first reading of a corpus: which words get a vector, and facts about the text for the manifest."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from stillvec.corpus import Corpus
from stillvec.errors import CorpusError
from stillvec.files import digest
from stillvec.learners.partition import Partition
from stillvec.pipeline.sentence_stream import CorpusCounter
from stillvec.progress import Progress
from stillvec.vocabulary import Vocabulary, WordCounter


class WordChoice(Protocol):
    """The settings that decide which words get a vector."""

    @property
    def min_count(self) -> int: ...
    @property
    def max_words(self) -> int | None: ...
    @property
    def include_words(self) -> tuple[str, ...]: ...
    @property
    def lowercase(self) -> bool: ...


@dataclass(frozen=True)
class CorpusFacts:
    """What is known of a corpus once it was counted; without a corpus, where the words come from."""

    n_words: int = 0
    sources: tuple[str, ...] = ()
    digest: str = ""
    n_paragraphs: int = 0
    n_characters: int = 0
    words_from: str = ""

    def to_manifest(self) -> dict[str, Any]:
        if self.words_from:
            return {"words": 0, "from": self.words_from}
        return {
            "sources": [*self.sources],
            "digest": self.digest,
            "paragraphs": self.n_paragraphs,
            "words": self.n_words,
            "characters": self.n_characters,
        }

    @classmethod
    def from_manifest(cls, facts: Mapping[str, Any]) -> CorpusFacts:
        sources, counts = tuple(facts["sources"]), (facts["paragraphs"], facts["characters"])
        return cls(facts["words"], sources, facts["digest"], *counts)


@dataclass(frozen=True)
class CorpusCounts:
    """What was counted in the corpus or in a part of it; parts add up."""

    counts: Mapping[str, int]
    n_words: int
    n_paragraphs: int
    n_characters: int
    digests: Mapping[int, str]  # of files, by number

    @classmethod
    def of(cls, counter: CorpusCounter) -> CorpusCounts:
        sizes = counter.n_words, counter.n_paragraphs, counter.n_characters
        return cls(counter.counter.counts(), *sizes, counter.digests)

    def __add__(self, other: CorpusCounts) -> CorpusCounts:
        counts = dict(self.counts)
        for word, number in other.counts.items():
            counts[word] = counts.get(word, 0) + number
        return CorpusCounts(
            counts,
            self.n_words + other.n_words,
            self.n_paragraphs + other.n_paragraphs,
            self.n_characters + other.n_characters,
            {**self.digests, **other.digests},
        )

    @property
    def digest(self) -> str:
        """Of the text, file by file."""
        return digest(self.digests[file].encode() for file in sorted(self.digests))

    def choose_words(self, corpus: Corpus, choice: WordChoice) -> tuple[Vocabulary, CorpusFacts]:
        """The words that get a vector, and the facts about the corpus."""
        if not self.n_words:
            raise CorpusError(f"The corpus has no words, only punctuation and spaces: {', '.join(corpus.sources[:3])}.")
        sources = tuple(Path(name).name for name in corpus.sources)
        facts = CorpusFacts(self.n_words, sources, self.digest, self.n_paragraphs, self.n_characters)
        vocabulary = Vocabulary.build(
            self.counts,
            min_count=choice.min_count,
            max_words=choice.max_words,
            include_words=choice.include_words,
            lowercase=choice.lowercase,
        )
        return vocabulary, facts


def count_partition(
    corpus: Corpus, choice: WordChoice, partition: Partition | None = None
) -> Generator[Progress, None, CorpusCounts]:
    """Count the corpus, or one part of it."""
    start = time.perf_counter()
    counter = WordCounter(lowercase=choice.lowercase, include_words=choice.include_words)
    corpus_counter = CorpusCounter(corpus, counter, partition or Partition())
    for n_words in corpus_counter.steps():
        seconds = time.perf_counter() - start
        yield Progress("counting words", n_words * corpus_counter.partition.count, None, "words", seconds)
    return CorpusCounts.of(corpus_counter)


def count_corpus(corpus: Corpus, choice: WordChoice) -> Generator[Progress, None, tuple[Vocabulary, CorpusFacts]]:
    """Count the corpus: the words that get a vector, and the facts about the text."""
    counts = yield from count_partition(corpus, choice)
    return counts.choose_words(corpus, choice)
