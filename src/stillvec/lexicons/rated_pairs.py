"""The pairs that vectors are judged by: to be taken out of a lexicon before it teaches, or to choose by."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from stillvec.errors import LexiconError
from stillvec.files import inner_suffix
from stillvec.lexicons.edge import Edge
from stillvec.lexicons.entry_lines import read_entries
from stillvec.vocabulary.folding import fold

Pair = tuple[str, str]
_ENDINGS = (".tsv", ".csv", ".txt")
_NOT_DATA = (".", "readme", "license", "licence")


def as_pair(left: str, right: str) -> Pair:
    """The one notion of a pair: without order, in lower case, written as a vocabulary writes words."""
    first, second = fold(left, True), fold(right, True)
    return (first, second) if first <= second else (second, first)


def find_pairs(edges: Iterable[Edge], pairs: Iterable[Pair]) -> set[Pair]:
    """Which of some pairs (of `as_pair`) the edges of lexicons tell anything about, be it that they are opposites."""
    wanted = {*pairs}
    return wanted.intersection(as_pair(edge.left, edge.right) for edge in edges)


def read_evaluation_pairs(source: str | os.PathLike[str]) -> Iterator[Pair]:
    """The first two words of every line of a file, or of all files of a folder (of its `similarity/`, if it has one).

    Lines are parted by tabs, else in a .csv by commas, else by spaces; headers name words that no lexicon joins.
    """
    for path in _files(Path(source).expanduser()):
        for _, fields in _rows(path):
            yield fields[0], fields[1]


def read_rated_pairs(source: str | os.PathLike[str]) -> dict[str, list[tuple[str, str, float]]]:
    """The same with what people said, by file: word, word and a number; a first line without a number is a header."""
    found: dict[str, list[tuple[str, str, float]]] = {}
    for path in _files(Path(source).expanduser()):
        judged: list[tuple[str, str, float]] = []
        for place, (where, fields) in enumerate(_rows(path)):
            try:
                judged.append((fields[0], fields[1], float(fields[2])))
            except (IndexError, ValueError):
                if place:
                    raise LexiconError(f"{where}: a word, a word and a number are wanted; correct the line.") from None
        found[str(path)] = judged
    return found


def _files(place: Path) -> list[Path]:
    if not place.is_dir():
        return [place]
    folder = place / "similarity" if (place / "similarity").is_dir() else place
    inside = sorted(path for path in folder.iterdir() if inner_suffix(path) in _ENDINGS and path.is_file())
    files = [path for path in inside if not path.name.lower().startswith(_NOT_DATA)]
    if not files:
        raise LexiconError(
            f"Evaluated pairs were wanted, and {folder} has no {', '.join(_ENDINGS)}; name another folder."
        )
    return files


def _rows(path: Path) -> Iterator[tuple[str, list[str]]]:
    """(file:line, fields)."""
    indexed = None
    for number, line in read_entries(path):
        if "\t" in line:
            fields = line.split("\t")
        elif "," in line and inner_suffix(path) == ".csv":
            fields = _fields(line, f"{path}:{number}")
            indexed = not fields[0] if indexed is None else indexed  # pandas writes numbers, and no name over them
            fields = fields[1:] if indexed else fields
        else:
            fields = line.split()
        fields = [field.strip() for field in fields]
        if len(fields) < 2 or not (fields[0] and fields[1]):
            raise LexiconError(f"Two words were wanted in {path}:{number}, and {line[:40]!r} came; correct the line.")
        yield f"{path}:{number}", fields


def _fields(line: str, where: str) -> list[str]:
    try:
        return next(csv.reader([line]))
    except csv.Error as error:
        raise LexiconError(f"Fields parted by commas were wanted in {where}, and there are none: {error}.") from None
