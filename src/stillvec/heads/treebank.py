"""Tagged sentences: CoNLL-U, or one word with its columns per line and a blank line between sentences.

Spans of IOB tags are counted as by `conlleval` and `seqeval` by default: a span starts at B-X, S-X or U-X, at a
change of type, and at any tag after O or an end tag (E-X, L-X, S-X, U-X), so invalid tag sequences also yield spans. A
predicted span is correct if its type, first word and last word all match.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stillvec.errors import DatasetError
from stillvec.files import inner_suffix
from stillvec.heads.dataset_files import read_blocks
from stillvec.numerics.array_types import Floats, Rows

_COLUMNS = 10  # of CoNLL-U
_TAG = re.compile(r"O|[BIESLU]-.+")
_ENDS = "ESLU"
_STARTS = "BSU"


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


def find_spans(tags: Rows, names: Sequence[str], text: Rows) -> tuple[Rows, Rows, Rows]:
    """The first word, the last word and the number of the type of each span (m,), in order.

    `tags` are the tags of all words (N,) as places in `names`, `text` the sentences that these belong to.
    """
    marks, kinds = zip(*((name[0], name[2:]) for name in names), strict=True)
    kind = np.array([sorted(set(kinds)).index(name) for name in kinds])[tags]
    named, starts, ends = (np.isin(marks, [*letters])[tags] for letters in ("BIESLU", _STARTS, _ENDS))
    joined = named[1:] & named[:-1] & ~starts[1:] & ~ends[:-1] & (kind[1:] == kind[:-1]) & (text[1:] == text[:-1])
    first = np.flatnonzero(named & ~np.append(False, joined))
    last = np.flatnonzero(named & ~np.append(joined, False))
    return first, last, kind[first]


def count_spans(gold: Rows, predicted: Rows, names: Sequence[str], text: Rows, n_texts: int) -> Floats:
    """Number of correct, predicted and gold spans of each sentence (n, 3)."""
    first, last, kind = find_spans(gold, names, text)
    span = np.full((2, len(gold)), -1)  # last word and type of the gold span that starts at a word
    span[:, first] = last, kind
    begin, end, said = find_spans(predicted, names, text)
    right = (span[0, begin] == end) & (span[1, begin] == said)
    counted = (begin[right], begin, first)
    return np.stack([np.bincount(text[rows], minlength=n_texts) for rows in counted], axis=1).astype(np.float64)
