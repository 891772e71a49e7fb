"""Relations between words, one or several per line of a file."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from stillvec.errors import LexiconError
from stillvec.files import read_lines


class Edge(NamedTuple):
    left: str
    right: str
    weight: float = 1.0
    relation: str = ""  # as the lexicon calls it, if it does
    part: str = ""  # part of speech (noun, verb, adj, adv), if the lexicon has it


def read_entries(path: Path, comments: str | tuple[str, ...] = "#") -> Iterator[tuple[int, str]]:
    """(number, stripped line) of the lines that are neither blank nor begin with one of `comments`."""
    for number, line in read_lines(path, LexiconError):
        if line.strip() and not line.startswith(comments):
            yield number, line.strip()


def bad_entry(expected: str, line: str, path: Path, number: int, cure: str = "correct the line") -> LexiconError:
    return LexiconError.expected(expected, repr(line[:40]), path=path, line=number, cure=cure, code="bad-line")


def empty_file(expected: str, path: Path) -> LexiconError:
    return LexiconError.expected(f"{expected} per line", "an empty file", path=path, code="empty")


def read_list(path: Path) -> Iterator[Edge]:
    """A word and its neighbours, if it has any, separated by spaces: PPDB as distributed by Faruqui et al. (2015).

    There are no comments: `#` is a word of PPDB.
    """
    for _, line in read_entries(path, comments=()):
        word, *neighbours = line.split()
        yield from (Edge(word, neighbour) for neighbour in neighbours)


def read_pairs(path: Path) -> Iterator[Edge]:
    """Two words, separated by a tab (words may then contain spaces) or by spaces."""
    for number, line in read_entries(path, comments="# "):
        words = [word.strip() for word in line.split("\t")] if "\t" in line else line.split()
        if len(words) != 2 or not all(words):
            raise bad_entry("two words", line, path, number)
        yield Edge(words[0], words[1])


def read_weighted(path: Path) -> Iterator[Edge]:
    """Tab-separated: word, word, then a weight, a relation, or both in this order."""
    for number, line in read_entries(path, comments="# "):
        fields = [field.strip() for field in line.split("\t")]
        left, right, third, fourth = (fields + [""] * 3)[:4]
        try:
            weight, relation, max_fields = float(third), fourth, 4
        except ValueError:
            weight, relation, max_fields = 1.0, third, 3
        if not (left and right) or len(fields) > max_fields or not 0 <= weight < math.inf:
            raise bad_entry("word, word, weight (at least 0) and relation, separated by tabs", line, path, number)
        yield Edge(left, right, weight, relation)
