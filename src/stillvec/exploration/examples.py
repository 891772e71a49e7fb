"""Sentences of a corpus that contain a word: read on demand, up to a number of sentences or seconds; not cached."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from stillvec.corpus import Corpus
from stillvec.vocabulary import Vocabulary, WordMatcher
from stillvec.vocabulary.folding import fold

Quote = tuple[str, str, str]  # text before the word, the word as it is written, text after it
_BATCH = 512
_CONTEXT = 140  # characters shown on either side of the word
_TAGS = "a|abbr|b|br|code|div|em|h[1-6]|hr|i|img|kbd|li|ol|p|pre|q|s|small|span|strong|su[bp]|t[dhr]|table|u|ul"
_MARKUP = re.compile(rf"</?(?:{_TAGS})(?:\s[^<>]*)?/?>|!?\[([^\[\]]*)\]\([^()\s]*\)", re.IGNORECASE)
_EXPORT_TIME = 20  # times the time limit, when it is for all words of an exported page


@dataclass(frozen=True)
class Examples:
    quotes: dict[str, list[Quote]]  # by word
    n_sentences: int  # read
    complete: bool  # the whole corpus was read


@dataclass(frozen=True)
class ExampleReader:
    """Reads a corpus from its start for every request."""

    corpus: Corpus
    max_quotes: int = 5
    seconds: float = 3.0
    clock: Callable[[], float] = field(default=time.monotonic)

    def find(self, word: str, vocabulary: Vocabulary) -> Examples:
        """The first sentences with a word, shortened around it."""
        start, n_sentences = self.clock(), 0
        matcher = WordMatcher(vocabulary.like([word]))
        quotes: list[Quote] = []
        sentences = self.corpus.sentences()
        while batch := [_strip_markup(text) for text in islice(sentences, _BATCH)]:
            n_sentences += len(batch)
            candidates = [text for text in batch if word in fold(text, vocabulary.lowercase)]
            quotes += [quote for _, quote in _match(matcher, candidates)]
            if len(quotes) >= self.max_quotes or self.clock() - start > self.seconds:
                return Examples({word: quotes[: self.max_quotes]}, n_sentences, False)
        return Examples({word: quotes}, n_sentences, True)

    def find_many(self, words: Sequence[str], vocabulary: Vocabulary, max_quotes: int) -> Iterator[Examples]:
        """The first sentences with each of many words, in one pass; yields the state after every few thousand."""
        start, n_sentences = self.clock(), 0
        matcher = WordMatcher(vocabulary.like(words))
        quotes: dict[str, list[Quote]] = {word: [] for word in words}
        missing = np.full(len(words), max_quotes)
        sentences = self.corpus.sentences()
        while batch := [_strip_markup(text) for text in islice(sentences, 8 * _BATCH)]:
            n_sentences += len(batch)
            for row, quote in _match(matcher, batch, missing):
                if missing[row]:
                    missing[row] -= 1
                    quotes[words[row]].append(quote)
            late = self.clock() - start > self.seconds * _EXPORT_TIME
            yield Examples(quotes, n_sentences, False)
            if late or not missing.any():
                return
        yield Examples(quotes, n_sentences, True)


def _strip_markup(text: str) -> str:
    """The text without HTML tags of texts, and with links of Markdown as their words."""
    return _MARKUP.sub(r"\1", text) if "<" in text or "](" in text else text


def _match(matcher: WordMatcher, texts: list[str], missing: np.ndarray | None = None) -> Iterator[tuple[int, Quote]]:
    """The first match of each word in each text; with `missing`, only of words that still lack sentences."""
    if not texts:
        return
    spans = matcher.match(texts)
    matches = np.flatnonzero((spans.ids >= 0) & (True if missing is None else missing[spans.ids] > 0))
    _, firsts = np.unique(np.stack([spans.ids[matches], spans.text_index[matches]]), axis=1, return_index=True)
    for at in matches[np.sort(firsts)].tolist():
        yield int(spans.ids[at]), _quote(texts[spans.text_index[at]], int(spans.starts[at]), int(spans.ends[at]))


def _quote(text: str, start: int, end: int) -> Quote:
    """The word with some text on either side, cut between words."""
    before, after = text[:start], text[end:]
    if len(before) > _CONTEXT:
        _, blank, rest = before[-_CONTEXT:].partition(" ")
        before = f"… {rest if blank else before[-_CONTEXT:]}"
    if len(after) > _CONTEXT:
        rest, blank, _ = after[:_CONTEXT].rpartition(" ")
        after = f"{rest if blank else after[:_CONTEXT]} …"
    return before, text[start:end], after
