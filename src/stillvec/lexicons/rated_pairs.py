"""Files of word pairs with human ratings: to exclude the pairs from a lexicon, to select settings, or to evaluate."""

import csv
import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from stillvec.errors import InputError, LexiconError
from stillvec.files import inner_suffix, read_lines
from stillvec.files.path_names import files_in
from stillvec.lexicons.edge_lines import Edge
from stillvec.vocabulary.folding import fold

Pair = tuple[str, str]
_ENDINGS = (".tsv", ".csv", ".txt")


def as_pair(left: str, right: str) -> Pair:
    """A pair without order, lower-cased and normalized as in a vocabulary."""
    first, second = fold(left, True), fold(right, True)
    return (first, second) if first <= second else (second, first)


def find_pairs(edges: Iterable[Edge], pairs: Iterable[Pair]) -> set[Pair]:
    """The pairs (of `as_pair`) that occur in the edges of lexicons, with any relation."""
    return {*pairs}.intersection(as_pair(edge.left, edge.right) for edge in edges)


def read_evaluation_pairs(source: str | os.PathLike[str]) -> Iterator[Pair]:
    """The first two words of every line of a file, or of all files of a folder (of its `similarity/`, if it has one).

    A header is not recognized, and harmless: no lexicon relates the names of columns.
    """
    for path in _find_files(source):
        for _, fields in _read_words(path):
            yield fields[0], fields[1]


def read_rated_pairs(source: str | os.PathLike[str]) -> dict[str, list[tuple[str, str, float]]]:
    """File → (word, word, rating) of its lines; further columns are ignored."""
    what = "a word, a word and a number"
    return {str(path): [*parse_ratings(_read_words(path), path, what)] for path in _find_files(source)}


def read_columns(path: Path, error: type[InputError] = LexiconError) -> Iterator[tuple[int, list[str]]]:
    """(line number, fields) of the lines of a file that are neither blank nor comments.

    Fields are separated by tabs, else in a .csv by commas, else by spaces. The index column of pandas is left out.
    """
    indexed: bool | None = None
    for number, line in read_lines(path, error):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if "\t" in text:
            fields = text.split("\t")
        elif "," in text and inner_suffix(path) == ".csv":
            try:
                fields = next(csv.reader([text]))
            except csv.Error as problem:
                raise error.expected("fields separated by commas", problem, path=path, line=number) from None
            indexed = not fields[0] if indexed is None else indexed  # pandas leaves the header of its index empty
            fields = fields[1:] if indexed else fields
        else:
            fields = text.split()
        indexed = bool(indexed)
        yield number, [field.strip() for field in fields]


def parse_ratings(
    rows: Iterable[tuple[int, list[str]]], path: Path, what: str, error: type[InputError] = LexiconError
) -> Iterator[tuple[str, str, float]]:
    """(text, text, rating) of each row of fields; a first row without a number is a header."""
    for place, (line, fields) in enumerate(rows):
        try:
            rating = float(fields[2])
        except (IndexError, ValueError):
            if place == 0:
                continue
            raise error.expected(what, repr(" ".join(fields)[:40]), path=path, line=line) from None
        if not math.isfinite(rating):
            raise error.expected("a finite number", repr(fields[2]), path=path, line=line)
        yield fields[0], fields[1], rating


def _find_files(source: str | os.PathLike[str]) -> list[Path]:
    place = Path(source).expanduser()
    if not place.is_dir():
        return [place]
    folder = place / "similarity" if (place / "similarity").is_dir() else place
    files = files_in(folder, _ENDINGS)
    if not files:
        raise LexiconError.expected(f"evaluation pairs in {', '.join(_ENDINGS)} files", "none", path=folder)
    return files


def _read_words(path: Path) -> Iterator[tuple[int, list[str]]]:
    for line, fields in read_columns(path):
        if len(fields) < 2 or not (fields[0] and fields[1]):
            raise LexiconError.expected("two words", repr(" ".join(fields)[:40]), path=path, line=line)
        yield line, fields
