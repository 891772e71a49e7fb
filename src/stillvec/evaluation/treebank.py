"""Sentences with a tag a word: CoNLL-U, or a word and its columns a line, a blank line between sentences."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from stillvec.errors import DatasetError
from stillvec.evaluation.dataset_files import lines
from stillvec.files import inner_suffix

_COLUMNS = 10


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
    """The sentences; ranges of words written as one (3-4) and empty nodes (3.1) are passed over."""
    found = [
        tuple(_token(where, fields) for where, fields in block if fields[0].isdecimal()) for block in _blocks(path)
    ]
    sentences = [sentence for sentence in found if sentence]
    for sentence in sentences:
        for token in sentence:
            if not 0 <= token.head <= len(sentence):
                raise DatasetError(f"{path}: a head is a word of its sentence, and {token.form!r} has {token.head}.")
    if not sentences:
        raise DatasetError(f"{path}:1: sentences in CoNLL-U are wanted, and there is none in the file.")
    return sentences


def tagged(path: Path) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """(words, tags) of each sentence: UPOS in a .conllu, else the first and the last column."""
    if inner_suffix(path) == ".conllu":
        return [(tuple(t.form for t in each), tuple(t.upos for t in each)) for each in conllu(path)]
    found = []
    for block in _blocks(path):
        for where, fields in block:
            if len(fields) < 2:
                raise DatasetError(f"{where}: a word and its tag are wanted, and one field came.")
        found.append((tuple(fields[0] for _, fields in block), tuple(fields[-1] for _, fields in block)))
    if not found:
        raise DatasetError(f"{path}:1: a word and its tag a line are wanted, and there is none in the file.")
    return found


def _blocks(path: Path) -> Iterator[list[tuple[str, list[str]]]]:
    """(file:line, fields) of the lines of each sentence; comments only where they are one, in CoNLL-U."""
    block: list[tuple[str, list[str]]] = []
    comments = inner_suffix(path) == ".conllu"
    for number, line in lines(path):
        if not line.strip():
            if block:
                yield block
            block = []
        elif not (comments and line.startswith("#")) and not line.startswith("-DOCSTART-"):
            block.append((f"{path}:{number}", line.rstrip("\t ").split("\t") if "\t" in line else line.split()))
    if block:
        yield block


def _token(where: str, fields: list[str]) -> Token:
    if len(fields) != _COLUMNS:
        raise DatasetError(f"{where}: CoNLL-U has {_COLUMNS} columns parted by tabs, and {len(fields)} came.")
    if not fields[6].isdecimal() or len(fields[6]) > 9:
        raise DatasetError(f"{where}: the seventh column is the number of the head, and {fields[6][:40]!r} came.")
    features = dict(each.split("=", 1) for each in fields[5].split("|") if "=" in each)
    relation = fields[7].partition(":")[0]
    return Token(fields[1], fields[2], fields[3], fields[4], features, int(fields[6]), relation)
