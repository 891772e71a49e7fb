"""Sentences of a corpus with a word in them: read on demand, up to a number of them or of seconds; nothing is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from stillvec.corpus import Corpus
from stillvec.vocabulary import Vocabulary, WordFinder
from stillvec.vocabulary.folding import fold

_BATCH = 512
_AROUND = 140  # characters shown on either side of the word


@dataclass(frozen=True)
class Examples:
    found: list[tuple[str, str, str]]  # what stands before the word, the word as it is written, what stands behind
    read: int  # sentences
    ended: bool  # the corpus, rather than the time


@dataclass(frozen=True)
class Reader:
    """Reads a corpus from its beginning for every word asked for."""

    corpus: Corpus
    most: int = 5
    seconds: float = 3.0
    clock: Callable[[], float] = field(default=time.monotonic)

    def examples(self, word: str, lowercase: bool) -> Examples:
        """The first sentences with the word, whole or around it."""
        start, read = self.clock(), 0
        finder = WordFinder(Vocabulary([word], lowercase=lowercase))
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

    def _in(self, finder: WordFinder, texts: list[str]) -> Iterator[tuple[str, str, str]]:
        if not texts:
            return
        places = finder.find(texts)
        seen: set[int] = set()
        for row, start, end, number in zip(
            places.ids.tolist(), places.starts.tolist(), places.ends.tolist(), places.text.tolist(), strict=True
        ):
            if row == 0 and number not in seen:
                seen.add(number)
                text = texts[number]
                yield _ending(text[:start]), text[start:end], _beginning(text[end:])


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
