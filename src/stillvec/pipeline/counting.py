"""The first reading of a corpus: which words get a vector, and what the manifest tells of the text."""

from __future__ import annotations

import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, Protocol

from stillvec.corpus import Corpus
from stillvec.errors import CorpusError
from stillvec.pipeline.reading import Count
from stillvec.pipeline.results import Step
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


def counted(corpus: Corpus, chosen: WordChoice) -> Generator[Step, None, tuple[Vocabulary, dict[str, Any]]]:
    """The first reading: the words that get a vector, and what the manifest tells of the corpus."""
    begun = time.perf_counter()
    count = Count(corpus, WordCounter(lowercase=chosen.lowercase, keep=chosen.keep))
    for words in count.steps():
        yield Step("counting words", words, None, "words", time.perf_counter() - begun)
    if not count.words:
        raise CorpusError(f"The corpus has no words, only signs and spaces: {', '.join(corpus.sources[:3])}.")
    facts = {
        "sources": [Path(name).name for name in corpus.sources],
        "digest": count.digest,
        "paragraphs": count.paragraphs,
        "words": count.words,
    }
    vocabulary = Vocabulary.build(
        count.counter.counts(),
        min_count=chosen.min_count,
        max_words=chosen.max_words,
        keep=chosen.keep,
        lowercase=chosen.lowercase,
    )
    return vocabulary, facts
