"""Sentences of a corpus with a word in them: read on demand, up to a number of them or of seconds; nothing is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from stillvec.corpus import Corpus
from stillvec.vocabulary import Vocabulary, WordMatcher
from stillvec.vocabulary.folding import fold

_BATCH = 512
_AROUND = 140  # characters shown on either side of the word
_PATIENCE = 20  # times as long, when it is for all words of a page that is written


@dataclass(frozen=True)
class Examples:
    found: list[tuple[str, str, str]]  # what stands before the word, the word as it is written, what stands behind
    read: int  # sentences
    ended: bool  # the corpus, rather than the time


@dataclass(frozen=True)
class ExamplesOfMany:
    found: dict[str, list[tuple[str, str, str]]]  # by word
    read: int
    ended: bool


@dataclass(frozen=True)
class ExampleReader:
    """Reads a corpus from its beginning for every word asked for."""

    corpus: Corpus
    most: int = 5
    seconds: float = 3.0
    clock: Callable[[], float] = field(default=time.monotonic)

    def examples(self, word: str, lowercase: bool) -> Examples:
        """The first sentences with the word, whole or around it."""
        start, read = self.clock(), 0
        finder = WordMatcher(Vocabulary([word], lowercase=lowercase))
        found: list[tuple[str, str, str]] = []
        sentences = self.corpus.sentences()
        while batch := [*islice(sentences, _BATCH)]:
            read += len(batch)
            found += self._in(finder, [each for each in batch if word in fold(each, lowercase)])
            if len(found) >= self.most:
                return Examples(found[: self.most], read, False)
            if self.clock() - start > self.seconds:
                return Examples(found, read, False)
        return Examples(found, read, True)

    def of_many(self, words: Sequence[str], lowercase: bool, most: int) -> Iterator[ExamplesOfMany]:
        """The first sentences with each of the words, after every some thousand sentences; one reading for all."""
        start, read = self.clock(), 0
        finder = WordMatcher(Vocabulary(words, lowercase=lowercase))
        found: dict[str, list[tuple[str, str, str]]] = {word: [] for word in words}
        lacking = np.full(len(words), most)
        sentences = self.corpus.sentences()
        while batch := [*islice(sentences, 8 * _BATCH)]:
            read += len(batch)
            places = finder.find(batch)
            wanted = np.flatnonzero((places.ids >= 0) & (lacking[places.ids] > 0))
            _, firsts = np.unique(np.stack([places.ids[wanted], places.text[wanted]]), axis=1, return_index=True)
            for at in wanted[np.sort(firsts)].tolist():  # once a sentence
                row, text = int(places.ids[at]), batch[places.text[at]]
                if lacking[row]:
                    lacking[row] -= 1
                    found[words[row]].append(_around(text, int(places.starts[at]), int(places.ends[at])))
            late = self.clock() - start > self.seconds * _PATIENCE
            yield ExamplesOfMany(found, read, False)
            if late or not lacking.any():
                return
        yield ExamplesOfMany(found, read, True)

    def _in(self, finder: WordMatcher, texts: list[str]) -> Iterator[tuple[str, str, str]]:
        if not texts:
            return
        places = finder.find(texts)
        seen: set[int] = set()
        for row, start, end, number in zip(
            places.ids.tolist(), places.starts.tolist(), places.ends.tolist(), places.text.tolist(), strict=True
        ):
            if row == 0 and number not in seen:
                seen.add(number)
                yield _around(texts[number], start, end)


def _around(text: str, start: int, end: int) -> tuple[str, str, str]:
    return _ending(text[:start]), text[start:end], _beginning(text[end:])


def _ending(text: str) -> str:
    """The last of a text, from a whole word on."""
    if len(text) <= _AROUND:
        return text
    _, blank, rest = text[-_AROUND:].partition(" ")
    return f"… {rest if blank else text[-_AROUND:]}"


def _beginning(text: str) -> str:
    if len(text) <= _AROUND:
        return text
    rest, blank, _ = text[:_AROUND].rpartition(" ")
    return f"{rest if blank else text[:_AROUND]} …"
