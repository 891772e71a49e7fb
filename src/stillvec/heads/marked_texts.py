"""A sentence with one marked span, or two: what a head `span` labels.

In Python it is `(words, (first, last))`, with words from 0 and the last one inside, or `(words, (first, last, first,
last))`; as a text the span is in brackets: `She lives in [New York].` Of two spans, the one in double brackets comes
first, else the one that comes first in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stillvec.errors import UsageError
from stillvec.heads.span_questions import KINDS, ask, read_marked
from stillvec.heads.word_splitting import split_tokens
from stillvec.input_checks import describe
from stillvec.numerics.array_types import Rows

_BRACKETS = re.compile(r"\[\[(?P<double>[^\[\]]+)\]\]|\[(?P<single>[^\[\]]+)\]")
_FORM = "a text with a span in [brackets], or (words, (first, last))"


class MarkedText(NamedTuple):
    """The words of a sentence, and the first and last word of one span or of two."""

    words: tuple[str, ...]
    places: tuple[int, ...]

    @property
    def spans(self) -> list[tuple[str, ...]]:
        """The words of each span."""
        ends = zip(self.places[::2], self.places[1::2], strict=True)
        return [self.words[first : last + 1] for first, last in ends]


def read_marked_texts(path: Path, question: str = "", draw: int = 0) -> Iterator[tuple[MarkedText, tuple[str, ...]]]:
    """The spans of a file of `span_questions.py` that a question asks for, and their labels.

    Without a question, it is the one about the labels of the file.
    """
    sentences = read_marked(path)
    known = KINDS[sentences[0].kind]
    name = question or known[0]
    if name not in known:
        what = f"one of the questions about {sentences[0].kind}: {', '.join(known)}"
        raise UsageError.expected(what, repr(name), where="setting 'question' of head span")
    questions = ask(name, sentences, draw)
    for text, places, labels in zip(questions.text.tolist(), questions.spans.tolist(), questions.labels, strict=True):
        chosen = tuple(questions.names[at] for at in np.flatnonzero(labels))
        yield MarkedText(sentences[text].words, tuple(places)), chosen


def parse_marked_text(item: Any, n_spans: int | None = None) -> MarkedText:
    """An item in any of its forms, with `n_spans` spans if that is given."""
    marked = _parse_brackets(item) if isinstance(item, str) else _check_places(item)
    if n_spans is not None and len(marked.places) != 2 * n_spans:
        what = "one span" if n_spans == 1 else "two spans"
        raise UsageError.expected(what, len(marked.places) // 2, where=" ".join(marked.words)[:40])
    return marked


def _parse_brackets(text: str) -> MarkedText:
    words: list[str] = []
    spans: list[tuple[bool, int, int]] = []  # those in double brackets sort first
    before = 0
    for match in _BRACKETS.finditer(text):
        words += split_tokens(text[before : match.start()])
        inside = split_tokens(match["double"] or match["single"])
        if inside:
            spans.append((match["double"] is None, len(words), len(words) + len(inside) - 1))
        words += inside
        before = match.end()
    words += split_tokens(text[before:])
    if not 1 <= len(spans) <= 2:
        raise UsageError.expected(_FORM, repr(text[:40]))
    return MarkedText(tuple(words), tuple(place for _, first, last in sorted(spans) for place in (first, last)))


def _check_places(item: Any) -> MarkedText:
    if not isinstance(item, Sequence) or len(item) != 2 or isinstance(item[0], str):
        raise UsageError.expected(_FORM, describe(item))
    words, places = (tuple(part) if isinstance(part, list | tuple) else () for part in item)
    whole = all(isinstance(place, int | np.integer) and not isinstance(place, bool) for place in places)
    if not words or not all(isinstance(word, str) for word in words) or len(places) not in (2, 4) or not whole:
        raise UsageError.expected(_FORM, describe(item))
    for first, last in zip(places[::2], places[1::2], strict=True):
        if not 0 <= first <= last < len(words):
            where = " ".join(words)[:40]
            raise UsageError.expected(f"first and last of the words 0 to {len(words) - 1}", (first, last), where=where)
    return MarkedText(words, tuple(map(int, places)))


def number_sentences(items: Sequence[MarkedText]) -> tuple[list[tuple[str, ...]], Rows]:
    """The sentences of items, and the number of that of each; items about one sentence are neighbours."""
    sentences: list[tuple[str, ...]] = []
    numbers = np.zeros(len(items), np.int64)
    for at, item in enumerate(items):
        if not sentences or sentences[-1] != item.words:
            sentences.append(item.words)
        numbers[at] = len(sentences) - 1
    return sentences, numbers
