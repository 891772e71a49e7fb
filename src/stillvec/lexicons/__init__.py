"""Relations between words: lists, pairs, weighted tables and WordNet, read as edges; dictionaries and word lists.

A source is "wordnet", a folder with WordNet's data files, or a file. Its format is recognized, or given before a colon
(`pairs:antonyms.txt`).
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from stillvec.files import file_digest
from stillvec.lexicons.definitions import read_definitions, read_dictionary, read_words
from stillvec.lexicons.edge_lines import Edge, empty_file, read_entries
from stillvec.lexicons.rated_pairs import as_pair, find_pairs, read_evaluation_pairs, read_rated_pairs
from stillvec.lexicons.word_attributes import read_attributes
from stillvec.registry import Registry

__all__ = [
    "LEXICONS",
    "Edge",
    "as_pair",
    "find_pairs",
    "lexicon_digest",
    "read_attributes",
    "read_definitions",
    "read_dictionary",
    "read_evaluation_pairs",
    "read_lexicon",
    "read_rated_pairs",
    "read_words",
]

LEXICONS: Registry[Callable[[Path], Iterator[Edge]]] = Registry(
    "lexicon format",
    {
        "list": "stillvec.lexicons.edge_lines:read_list",
        "pairs": "stillvec.lexicons.edge_lines:read_pairs",
        "tsv": "stillvec.lexicons.edge_lines:read_weighted",
        "wordnet": "stillvec.lexicons.wordnet:read",
    },
)


def read_lexicon(source: str | os.PathLike[str]) -> Iterator[Edge]:
    """The edges of a lexicon, in its order."""
    name, path = _split_source(source)
    return LEXICONS[name or _recognize(path)](path)


def lexicon_digest(source: str | os.PathLike[str]) -> str:
    """The name of a lexicon and, if it is a file, the digest of its content."""
    path = _split_source(source)[1]
    return f"{source} {file_digest(path)}" if path.is_file() else str(source)


def _split_source(source: str | os.PathLike[str]) -> tuple[str | None, Path]:
    """The format, if it is given, and the path."""
    name, colon, rest = str(source).partition(":")
    if colon and name in LEXICONS:
        return name, Path(rest).expanduser()
    return ("wordnet", Path()) if source == "wordnet" else (None, Path(source).expanduser())


def _recognize(path: Path) -> str:
    if path.is_dir():
        return "wordnet"
    first = next(read_entries(path, comments="# "), None)
    if first is None:
        raise empty_file("a word and its neighbours", path)
    return "tsv" if "\t" in first[1] else "list"
