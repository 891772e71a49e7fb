"""Sentences with marked spans, and the questions about these (Toshniwal et al. 2020).

    trees/*.txt      bracketed trees            labelling    the labels of a constituent
                                                detection    is a span a constituent? one other span of the same length
    spans/*.jsonl    {"words", "spans"}         typing       the type of an entity
                                                mentions     is a span a mention? five others of the same length
    roles/*.jsonl    {"words", "predicates"}    roles        the role of an argument of a predicate
    spans/*.jsonl    {"words", "pairs"}         coreference  are two mentions the same entity?

`spans` are `[first, last, label]`, `pairs` are `[first, last, first, last, label]`, `predicates` are `[word, frame,
[[first, last, role], ...]]`; words are counted from 0, `last` is inside. Other spans are drawn once, each differs from
the marked ones and from the others drawn; a marked span without another of its length is not asked for. What is drawn
for a sentence depends on `draw` and on its words, not on other sentences.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError
from stillvec.files import inner_suffix
from stillvec.heads.dataset_files import lines
from stillvec.heads.trees import ROOTS, read_trees
from stillvec.numerics.array_types import Rows

KINDS = {  # of marks → the questions about them
    "constituents": ("labelling", "detection"),
    "entities": ("typing", "mentions"),
    "roles": ("roles",),
    "coreference": ("coreference",),
}
QUESTIONS = tuple(question for questions in KINDS.values() for question in questions)
FOLDERS = {"trees": ".txt", "spans": ".jsonl", "roles": ".jsonl"}
_N_OTHERS = {"detection": 1, "mentions": 5}  # spans drawn per marked span
_KEYS = {"spans": "entities", "pairs": "coreference", "predicates": "roles"}  # of a line of JSON


class MarkedSentence(NamedTuple):
    """A sentence, and the words of one or two spans with a label: (first, last, label), (first, ..., last, label)."""

    kind: str
    words: tuple[str, ...]
    marks: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, eq=False)
class SpanQuestions:
    """Questions about spans of sentences; more than one label of a span can be right."""

    names: tuple[str, ...]  # (k,) labels
    text: Rows  # (N,) the sentence of each, ascending
    spans: Rows  # (N, 2) first and last word, (N, 4) of two spans
    labels: NDArray[np.bool_]  # (N, k)
    separate: bool = False  # the two spans have different functions

    def __len__(self) -> int:
        return len(self.text)

    def count_by_text(self, n_texts: int) -> Rows:
        return np.bincount(self.text, minlength=n_texts)

    def by_text(self, n_texts: int) -> Rows:
        """The numbers of the questions about each sentence (n, S), padded with N."""
        counts = self.count_by_text(n_texts)
        numbers = np.full((n_texts, max(1, int(counts.max(initial=0)))), len(self))
        numbers[self.text, np.arange(len(self)) - (np.cumsum(counts) - counts)[self.text]] = np.arange(len(self))
        return numbers

    def count(self, said: NDArray[np.bool_], n_texts: int) -> NDArray[np.float64]:
        """Correct, predicted and gold labels of each of the first sentences (n, 3), for predictions (N, k)."""
        counts = (part.sum(axis=1) for part in (said & self.labels, said, self.labels))
        return np.stack([np.bincount(self.text, part, minlength=n_texts)[:n_texts] for part in counts], axis=1)

    def count_recalled(self, said: NDArray[np.bool_], n_texts: int) -> NDArray[np.uint8]:
        """How often each label of a sentence was predicted where it is right (n, k)."""
        counts = np.zeros((n_texts, len(self.names)), np.uint8)
        number, label = np.nonzero(said & self.labels)
        tested = self.text[number] < n_texts
        np.add.at(counts, (self.text[number[tested]], label[tested]), 1)
        return counts


def read_marked(path: Path) -> list[MarkedSentence]:
    """The sentences of a file, all with marks of one kind."""
    if inner_suffix(path) == ".txt":
        trees = read_trees(path)
        return [MarkedSentence("constituents", tree.words, tuple(_constituents(tree.constituents))) for tree in trees]
    marked: list[MarkedSentence] = []
    for number, line in lines(path):
        if line.strip():
            marked.append(_parse_line(line, path, number))
            if marked[-1].kind != marked[0].kind:
                raise DatasetError.expected(f"{marked[0].kind} in every line", marked[-1].kind, path=path, line=number)
    if not marked:
        raise DatasetError.expected("a sentence with its spans per line", "an empty file", path=path, line=1)
    return marked


def find_kind(path: Path) -> str | None:
    """The kind of the marks of a file by its first sentence; None if that cannot be read."""
    if inner_suffix(path) == ".txt":
        return "constituents"
    try:
        return next((_parse_line(line, path, number).kind for number, line in lines(path) if line.strip()), None)
    except DatasetError:
        return None


def ask(question: str, sentences: Sequence[MarkedSentence], draw: int = 0) -> SpanQuestions:
    """All questions of one name about sentences."""
    of_sentences = [_ask_sentence(question, sentence, draw) for sentence in sentences]
    names = sorted({label for asked in of_sentences for labels in asked.values() for label in labels})
    place = {name: number for number, name in enumerate(names)}
    text = np.repeat(np.arange(len(sentences)), [*map(len, of_sentences)])
    n_places = 4 if question in ("roles", "coreference") else 2
    spans = np.array([span for asked in of_sentences for span in asked], np.int64).reshape(-1, n_places)
    labels = np.zeros((len(text), len(names)), np.bool_)
    for number, own in enumerate(own for asked in of_sentences for own in asked.values()):
        labels[number, [place[label] for label in own]] = True
    return SpanQuestions(tuple(names), text, spans, labels, separate=question == "roles")


def _ask_sentence(question: str, sentence: MarkedSentence, draw: int) -> dict[tuple[int, ...], list[str]]:
    """Span → its labels."""
    asked: dict[tuple[int, ...], list[str]] = {}
    for *span, label in sentence.marks:
        asked.setdefault(tuple(span), []).append(label)
    if question not in _N_OTHERS:
        return asked
    seed = [draw, crc32("\n".join(sentence.words).encode("utf-8", "surrogatepass"))]
    return _draw_others({*asked}, len(sentence.words), _N_OTHERS[question], np.random.default_rng(seed))


def _draw_others(
    marked: set[tuple[int, ...]], n_words: int, n_others: int, random: np.random.Generator
) -> dict[tuple[int, ...], list[str]]:
    """The marked spans, and up to `n_others` others of the same length for each, none of them twice."""
    asked: dict[tuple[int, ...], list[str]] = {}
    by_length: dict[int, list[int]] = {}
    for first, last in sorted(marked):
        by_length.setdefault(last - first, []).append(first)
    for reach, starts in by_length.items():
        others = np.setdiff1d(np.arange(n_words - reach), starts)
        chosen = random.permutation(others)[: n_others * len(starts)]
        kept = random.permutation(starts)[: -(-len(chosen) // n_others)]  # no more than have another one
        for label, group in (("yes", kept), ("no", chosen)):
            asked |= {(first, first + reach): [label] for first in sorted(group.tolist())}
    return asked


def _constituents(nodes: Iterator[Any]) -> Iterator[tuple[int, int, str]]:
    seen = {(node.first, node.last, node.label): None for node in nodes if node.label not in ROOTS}
    yield from seen


def _parse_line(line: str, path: Path, number: int) -> MarkedSentence:
    def refuse(what: str, got: object) -> DatasetError:
        return DatasetError.expected(what, got, path=path, line=number)

    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        raise refuse("an object in JSON", repr(line[:40])) from None
    key = next((key for key in _KEYS if isinstance(values, Mapping) and key in values), None)
    if key is None:
        raise refuse('an object with "words" and "spans", "pairs" or "predicates"', repr(line[:40]))
    words = values.get("words")
    if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
        raise refuse('a list of words in "words"', repr(words)[:40])
    marks = []
    for mark in _iterate_marks(key, values[key]):
        if mark is None or not _is_valid(mark, 3 if key == "spans" else 5, len(words)):
            form = {"spans": "[first, last, label]", "pairs": "[first, last, first, last, label]"}
            what = form.get(key, "[word, frame, [[first, last, role], ...]]")
            raise refuse(f"{what} with words from 0 to {len(words) - 1}", repr(mark)[:60])
        marks.append(tuple(mark))
    return MarkedSentence(_KEYS[key], tuple(words), tuple(dict.fromkeys(marks)))


def _iterate_marks(key: str, values: Any) -> Iterator[Any]:
    """Each mark as a list of numbers and a label; None for what is not one."""
    if not isinstance(values, list):
        yield None
    elif key != "predicates":
        yield from values
    else:
        for predicate in values:
            is_valid = isinstance(predicate, list) and len(predicate) == 3 and isinstance(predicate[2], list)
            if not is_valid:
                yield None
                continue
            for role in predicate[2]:
                yield [predicate[0], predicate[0], *role] if isinstance(role, list) else None


def _is_valid(mark: Any, n_fields: int, n_words: int) -> bool:
    if not isinstance(mark, list) or len(mark) != n_fields or not isinstance(mark[-1], str):
        return False
    places = mark[:-1]
    if not all(type(place) is int and 0 <= place < n_words for place in places):
        return False
    return all(first <= last for first, last in zip(places[::2], places[1::2], strict=True))
