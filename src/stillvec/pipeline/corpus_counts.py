"""The first reading of a corpus: which words get a vector, and facts about the text for the manifest."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Container, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from stillvec.corpus import Corpus
from stillvec.errors import CorpusError
from stillvec.files import digest
from stillvec.learners.partition import Partition
from stillvec.pipeline.sentence_stream import split_batches
from stillvec.pipeline.settings import SharedSettings, filter_words
from stillvec.progress import Phase, Progress
from stillvec.vocabulary import Vocabulary, WordCounter
from stillvec.vocabulary.folding import fold
from stillvec.vocabulary.glued_words import GluedWord, describe_glued, find_glued
from stillvec.vocabulary.phrases import PhraseFinder

_PARAGRAPHS_AT_ONCE = 1000  # counted together
_MIN_FILES = 4  # per part, where parts are whole files
_N_EXAMPLES = 8


def select_text(corpus: Corpus, choice: SharedSettings) -> Corpus:
    """The corpus without the paragraphs that are too short for these settings."""
    if choice.min_sentences is None and choice.min_characters is None:
        return corpus
    return corpus.drop_short_paragraphs(choice.min_sentences or 1, choice.min_characters or 0)


@dataclass(frozen=True)
class Terms:
    """Strings of several words that are counted as one."""

    phrases: tuple[str, ...] = ()  # found in the corpus
    hyphenated: tuple[str, ...] = ()  # found in the corpus
    earlier: tuple[str, ...] = ()  # of the vocabulary that the text is added to

    @property
    def found(self) -> tuple[str, ...]:
        return (*self.phrases, *self.hyphenated)

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.found, *self.earlier)

    def dissolve_rare(self, counts: Mapping[str, int], min_count: int, included: Container[str]) -> dict[str, int]:
        """The counts without found terms that are rare, as parts of longer ones are; they count for their words."""
        dissolved = dict(counts)
        for term in self.found:
            if term not in included and 0 < (count := dissolved.get(term, 0)) < min_count:
                del dissolved[term]
                for word in term.replace("-", " ").split():
                    dissolved[word] = dissolved.get(word, 0) + count
        return dissolved


NO_TERMS = Terms()


@dataclass(frozen=True)
class ChoiceFacts:
    """What is told of the choice of words, and is in no manifest."""

    n_filtered: int = 0  # frequent words that were left out
    filtered: tuple[str, ...] = ()  # the most frequent of them
    glued: tuple[GluedWord, ...] = ()  # words that look like two written together
    glued_sentence: str = ""
    phrases: tuple[str, ...] = ()  # of the vocabulary, the most frequent first
    hyphenated: tuple[str, ...] = ()

    def notes(self) -> list[str]:
        """Sentences for the start of a run."""
        found = {"phrases": self.phrases, "words with hyphens": self.hyphenated}
        told = [f"{len(words):,} {what}: {list_examples(words)}" for what, words in found.items() if words]
        return [*told, self.glued_sentence] if self.glued_sentence else told


def list_examples(words: Sequence[str]) -> str:
    """The first of the words, and three dots if there are more."""
    return ", ".join(words[:_N_EXAMPLES]) + (", ..." if len(words) > _N_EXAMPLES else "")


@dataclass(frozen=True)
class CorpusFacts:
    """What is known of a corpus once it was counted; without a corpus, where the words come from."""

    n_words: int = 0
    sources: tuple[str, ...] = ()
    digest: str = ""
    n_paragraphs: int = 0
    n_characters: int = 0
    words_from: str = ""
    file_digests: tuple[str, ...] = ()  # of the text of each file
    choice: ChoiceFacts = field(default_factory=lambda: ChoiceFacts(), compare=False)

    def to_manifest(self) -> dict[str, Any]:
        if self.words_from:
            return {"words": 0, "from": self.words_from}
        found = {"phrases": len(self.choice.phrases), "hyphenated": len(self.choice.hyphenated)}
        return {
            **{key: number for key, number in found.items() if number},
            "sources": [*self.sources],
            "digest": self.digest,
            "paragraphs": self.n_paragraphs,
            "words": self.n_words,
            "characters": self.n_characters,
            "file_digests": [*self.file_digests],
        }

    @classmethod
    def from_manifest(cls, facts: Mapping[str, Any]) -> CorpusFacts:
        sources, counts = tuple(facts["sources"]), (facts["paragraphs"], facts["characters"])
        return cls(facts["words"], sources, facts["digest"], *counts, file_digests=tuple(facts["file_digests"]))


@dataclass(frozen=True)
class CorpusCounts:
    """What was counted in the corpus or in a part of it; parts add up."""

    counts: Mapping[str, int]
    n_words: int
    n_paragraphs: int
    n_characters: int
    digests: Mapping[int, str]  # of files, by number
    joins: Mapping[str, int] = field(default_factory=dict)  # words with a capital inside, divided (`glued_words.py`)

    def __add__(self, other: CorpusCounts) -> CorpusCounts:
        return CorpusCounts(
            _add_counts(self.counts, other.counts),
            self.n_words + other.n_words,
            self.n_paragraphs + other.n_paragraphs,
            self.n_characters + other.n_characters,
            {**self.digests, **other.digests},
            _add_counts(self.joins, other.joins),
        )

    @property
    def file_digests(self) -> tuple[str, ...]:
        return tuple(self.digests[file] for file in sorted(self.digests))

    @property
    def digest(self) -> str:
        """Of the text, file by file."""
        return _digest_all(self.file_digests)

    def choose_words(
        self, corpus: Corpus, choice: SharedSettings, terms: Terms = NO_TERMS
    ) -> tuple[Vocabulary, CorpusFacts]:
        """The words that get a vector, and the facts about the corpus."""
        if not self.n_paragraphs:
            raise corpus.empty_error()
        if not self.n_words:
            raise CorpusError(f"The corpus has no words, only punctuation and spaces: {', '.join(corpus.sources[:3])}.")
        sources = tuple(Path(name).name for name in corpus.sources)
        counts = (self.n_paragraphs, self.n_characters)
        included = {fold(word, choice.lowercase) for word in choice.include_words}
        dissolved = terms.dissolve_rare(self.counts, choice.min_count, included)
        allowed = filter_words(choice).apply(dissolved, included)
        vocabulary = Vocabulary.build(
            allowed,
            min_count=choice.min_count,
            max_words=choice.max_words,
            include_words=choice.include_words,
            lowercase=choice.lowercase,
            segmenter=choice.segmenter,
        )
        told = self._describe_choice(allowed, vocabulary, choice)
        phrases, hyphenated = (sort_by_row(words, vocabulary) for words in (terms.phrases, terms.hyphenated))
        told = replace(told, phrases=phrases, hyphenated=hyphenated)
        facts = CorpusFacts(self.n_words, sources, self.digest, *counts, file_digests=self.file_digests, choice=told)
        return vocabulary, facts

    def _describe_choice(
        self, allowed: Mapping[str, int], vocabulary: Vocabulary, choice: SharedSettings
    ) -> ChoiceFacts:
        n_left_out = len(self.counts) - len(allowed)
        frequent = (word for word, count in self.counts.items() if count >= choice.min_count and word not in allowed)
        filtered = sorted(frequent, key=lambda word: (-self.counts[word], word)) if n_left_out else []
        glued = find_glued(self.counts, self.joins, lowercase=choice.lowercase)
        sentence = describe_glued(glued, vocabulary)
        return ChoiceFacts(len(filtered), tuple(filtered[:_N_EXAMPLES]), tuple(glued), sentence)


def sort_by_row(words: Iterable[str], vocabulary: Vocabulary) -> tuple[str, ...]:
    """Those of the words that are in the vocabulary, in its order."""
    return tuple(sorted((word for word in words if word in vocabulary.index), key=vocabulary.index.__getitem__))


def _add_counts(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    counts = dict(one)
    for word, number in other.items():
        counts[word] = counts.get(word, 0) + number
    return counts


def make_counter(choice: SharedSettings, terms: Terms = NO_TERMS) -> WordCounter:
    """An empty counter that finds words as the settings say."""
    lowercase, segmenter = choice.lowercase, choice.segmenter
    return WordCounter(lowercase=lowercase, include_words=(*choice.include_words, *terms.all), segmenter=segmenter)


def find_terms(corpus: Corpus, choice: SharedSettings) -> Generator[Progress, None, Terms]:
    """Find the phrases and hyphenated words of a corpus, in readings of their own; none unless they are wanted.

    Every process that needs them finds the same ones, since each reads the whole corpus.
    """
    if not choice.phrases and choice.hyphens == "split":
        return NO_TERMS
    finder = PhraseFinder(
        choice.phrase_score if choice.phrases else None,
        min_count=choice.min_count,
        lowercase=choice.lowercase,
        allows=filter_words(choice).allows,
    )
    start, n_bytes = time.perf_counter(), corpus.n_bytes * finder.n_readings
    n_read = n_words = 0
    for _ in range(finder.n_readings):
        for chunk in split_batches(corpus.paragraphs(), _PARAGRAPHS_AT_ONCE):
            n_words += finder.add(chunk)
            n_read += sum(map(len, chunk))
            work = (min(n_read, n_bytes), n_bytes) if n_bytes else None
            yield Progress(Phase.PHRASES, n_words, None, "words", time.perf_counter() - start, work=work)
        finder.end_reading()
    hyphenated = tuple(finder.find_hyphenated()) if choice.hyphens == "keep" else ()
    return Terms(tuple(finder.find_phrases()), hyphenated)


def count_partition(
    corpus: Corpus, choice: SharedSettings, partition: Partition | None = None, terms: Terms = NO_TERMS
) -> Generator[Progress, None, CorpusCounts]:
    """Count the corpus, or one part of it.

    With enough files a part consists of whole files, otherwise of groups of paragraphs; each process then reads through
    the whole corpus.
    """
    start, part = time.perf_counter(), partition or Partition()
    corpus.watch()
    by_file = part.count > 1 and len(corpus.sources) >= _MIN_FILES * part.count
    numbered = corpus.paragraphs_by_file((lambda file: file % part.count == part.index) if by_file else None)
    counter = make_counter(choice, terms)
    n_words = n_paragraphs = n_characters = 0
    n_bytes = corpus.n_bytes / (part.count if by_file else 1)
    digests: dict[int, str] = {}
    for number, (paragraphs, n_read) in enumerate(group_paragraphs(numbered, digests)):
        if by_file or number % part.count == part.index:
            n_words += counter.add(paragraphs)
            n_paragraphs += len(paragraphs)
            n_characters += sum(map(len, paragraphs))
        seconds, work = time.perf_counter() - start, (min(n_read, n_bytes), n_bytes) if n_bytes else None
        yield Progress(Phase.COUNTING, n_words * part.count, None, "words", seconds, work=work)
    return CorpusCounts(counter.counts(), n_words, n_paragraphs, n_characters, digests, counter.joins())


def group_paragraphs(numbered: Iterable[tuple[int, str]], digests: dict[int, str]) -> Iterator[tuple[list[str], int]]:
    """Paragraphs that are counted together, and the bytes so far; `digests` gets that of each file, by its number."""
    pending: list[str] = []
    n_bytes = 0
    for file, group in groupby(numbered, itemgetter(0)):
        state = hashlib.blake2b(digest_size=16)
        for chunk in split_batches((paragraph for _, paragraph in group), _PARAGRAPHS_AT_ONCE):
            data = "\n".join(chunk).encode("utf-8", "replace")
            state.update(data)
            n_bytes += len(data)
            pending += chunk
            if len(pending) >= _PARAGRAPHS_AT_ONCE:
                yield pending, n_bytes
                pending = []
        digests[file] = state.hexdigest()
    yield pending, n_bytes


def digest_corpus(corpus: Corpus) -> str:
    """The digest of a corpus that is not counted."""
    digests: dict[int, str] = {}
    for _ in group_paragraphs(corpus.paragraphs_by_file(), digests):
        pass
    return _digest_all(digests[file] for file in sorted(digests))


def _digest_all(digests: Iterable[str]) -> str:
    return digest(text.encode() for text in digests)
