"""The first reading of a corpus: which words get a vector, and what the manifest tells of the text."""

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
    """The settings that say which words get a vector."""

    @property
    def min_count(self) -> int: ...
    @property
    def max_words(self) -> int | None: ...
    @property
    def keep(self) -> tuple[str, ...]: ...
    @property
    def lowercase(self) -> bool: ...


@dataclass(frozen=True)
class CorpusCounts:
    """What a reading of the corpus, or of a share of it, counted; shares add up."""

    counts: Mapping[str, int]
    words: int
    paragraphs: int
    characters: int
    digests: Mapping[int, str]  # of files, by number

    @classmethod
    def of(cls, count: CorpusCounter) -> CorpusCounts:
        return cls(count.counter.counts(), count.words, count.paragraphs, count.characters, count.digests)

    def __add__(self, other: CorpusCounts) -> CorpusCounts:
        counts = dict(self.counts)
        for word, number in other.counts.items():
            counts[word] = counts.get(word, 0) + number
        return CorpusCounts(
            counts,
            self.words + other.words,
            self.paragraphs + other.paragraphs,
            self.characters + other.characters,
            {**self.digests, **other.digests},
        )

    @property
    def digest(self) -> str:
        """Of the text, file by file."""
        return digest(self.digests[file].encode() for file in sorted(self.digests))

    def chosen(self, corpus: Corpus, chosen: WordChoice) -> tuple[Vocabulary, dict[str, Any]]:
        """The words that get a vector, and what the manifest tells of the corpus."""
        if not self.words:
            raise CorpusError(f"The corpus has no words, only signs and spaces: {', '.join(corpus.sources[:3])}.")
        facts = {
            "sources": [Path(name).name for name in corpus.sources],
            "digest": self.digest,
            "paragraphs": self.paragraphs,
            "words": self.words,
            "characters": self.characters,
        }
        vocabulary = Vocabulary.build(
            self.counts,
            min_count=chosen.min_count,
            max_words=chosen.max_words,
            keep=chosen.keep,
            lowercase=chosen.lowercase,
        )
        return vocabulary, facts


def count_partition(
    corpus: Corpus, chosen: WordChoice, share: Partition | None = None
) -> Generator[Progress, None, CorpusCounts]:
    """The first reading, of all of the corpus or of a share."""
    begun = time.perf_counter()
    count = CorpusCounter(corpus, WordCounter(lowercase=chosen.lowercase, keep=chosen.keep), share or Partition())
    for words in count.steps():
        yield Progress("counting words", words * count.share.of, None, "words", time.perf_counter() - begun)
    return CorpusCounts.of(count)


def count_corpus(corpus: Corpus, chosen: WordChoice) -> Generator[Progress, None, tuple[Vocabulary, dict[str, Any]]]:
    """The first reading: the words that get a vector, and what the manifest tells of the corpus."""
    count = yield from count_partition(corpus, chosen)
    return count.chosen(corpus, chosen)
