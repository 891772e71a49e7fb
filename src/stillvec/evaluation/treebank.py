"""Tagged sentences: CoNLL-U, or one word with its columns per line and a blank line between sentences.

Spans of IOB tags are counted as by `conlleval` and `seqeval` by default: a span starts at B-X, S-X or U-X, at a
change of type, and at any tag after O or an end tag (E-X, L-X, S-X, U-X), so invalid tag sequences also yield spans. A
predicted span is correct if its type, first word and last word all match.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from stillvec.errors import DatasetError
from stillvec.evaluation.dataset_files import read_blocks
from stillvec.files import inner_suffix

_COLUMNS = 10  # of CoNLL-U
_TAG = re.compile(r"O|[BIESLU]-.+")
_ENDS = frozenset("ESLU")
_STARTS = frozenset("BSU")


class Token(NamedTuple):
    """A word of a sentence in CoNLL-U."""

    form: str
    lemma: str
    upos: str
    xpos: str
    features: dict[str, str]
    head: int  # from 1; 0 is the root
    relation: str  # without its subtype


Sentence = tuple[Token, ...]


def conllu(path: Path) -> list[Sentence]:
    """The sentences, without multiword ranges (3-4) and empty nodes (3.1)."""
    sentences = []
    for block in _blocks(path):
        words = [(line, fields) for line, fields in block if fields[0].isdecimal()]
        sentence = tuple(_token(path, line, fields) for line, fields in words)
        for token, (line, _) in zip(sentence, words, strict=True):
            if token.head > len(sentence):
                what = f"the head of {token.form!r} within its sentence"
                raise DatasetError.expected(what, token.head, path=path, line=line)
        if sentence:
            sentences.append(sentence)
    if not sentences:
        raise DatasetError.expected("sentences in CoNLL-U", "an empty file", path=path, line=1)
    return sentences


def read_tagged(path: Path) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """(words, tags) of each sentence: UPOS in a .conllu, else the first and the last column."""
    if inner_suffix(path) == ".conllu":
        return [(tuple(t.form for t in sentence), tuple(t.upos for t in sentence)) for sentence in conllu(path)]
    sentences = []
    for block in _blocks(path):
        for line, fields in block:
            if len(fields) < 2:
                raise DatasetError.expected("a word and its tag", "one field", path=path, line=line)
        sentences.append((tuple(fields[0] for _, fields in block), tuple(fields[-1] for _, fields in block)))
    if not sentences:
        raise DatasetError.expected("a word and its tag per line", "an empty file", path=path, line=1)
    return sentences


def _blocks(path: Path) -> Iterator[list[tuple[int, list[str]]]]:
    """(line number, fields) of the lines of each sentence; only CoNLL-U has comments."""
    skipped = ("-DOCSTART-", "#") if inner_suffix(path) == ".conllu" else ("-DOCSTART-",)
    for block in read_blocks(path):
        kept = [(number, line) for number, line in block if not line.startswith(skipped)]
        if kept:
            yield [(n, line.rstrip("\t ").split("\t") if "\t" in line else line.split()) for n, line in kept]


def _token(path: Path, line: int, fields: list[str]) -> Token:
    if len(fields) != _COLUMNS:
        raise DatasetError.expected(f"{_COLUMNS} columns separated by tabs", len(fields), path=path, line=line)
    if not fields[6].isdecimal() or len(fields[6]) > 9:
        raise DatasetError.expected("the number of a word", repr(fields[6][:40]), where="HEAD", path=path, line=line)
    features = dict(feature.split("=", 1) for feature in fields[5].split("|") if "=" in feature)
    relation = fields[7].partition(":")[0]
    return Token(fields[1], fields[2], fields[3], fields[4], features, int(fields[6]), relation)


def are_spans(tags: Iterable[str]) -> bool:
    """Whether the tags encode spans: only O, B-X, I-X, ..., and not only O."""
    seen = set(tags)
    return any("-" in tag for tag in seen) and all(_TAG.fullmatch(tag) for tag in seen)


def spans(tags: Sequence[str]) -> set[tuple[str, int, int]]:
    """Extract the spans of a sentence as (type, first, last)."""
    result = set()
    first, kind, before = 0, "", "O"
    for place, tag in enumerate([*tags, "O"]):
        mark, _, now = tag.partition("-")
        starts = mark in _STARTS or before in "O" or before in _ENDS or now != kind
        if before != "O" and (mark == "O" or starts):
            result.add((kind, first, place - 1))
        if mark != "O" and starts:
            first = place
        before, kind = mark, now
    return result


def counts(gold: Sequence[str], said: Sequence[str]) -> tuple[int, int, int]:
    """Number of correct, predicted and gold spans of a sentence."""
    true, predicted = spans(gold), spans(said)
    return len(true & predicted), len(predicted), len(true)
