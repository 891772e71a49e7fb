"""Which words belong together, and how: lists, pairs, weighted tables and WordNet's own files, read as edges.

A source is "wordnet", a folder with WordNet's files or a file; its form is known by looking, or said before a colon
(`pairs:antonyms.txt`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from stillvec.corpus.definitions import CURE, numbered_lines, wordnet_in
from stillvec.errors import LexiconError
from stillvec.files import file_digest
from stillvec.lexicons.edge import Edge
from stillvec.lexicons.rated_pairs import as_pair, pairs_held, read_evaluated, read_judged
from stillvec.registry import Registry

__all__ = [
    "LEXICONS",
    "Edge",
    "as_pair",
    "lexicon_digest",
    "pairs_held",
    "read_evaluated",
    "read_judged",
    "read_lexicon",
]

LEXICONS: Registry[Callable[[Path], Iterator[Edge]]] = Registry(
    "form of lexicon",
    {
        "list": "stillvec.lexicons.lists:read",
        "pairs": "stillvec.lexicons.pairs:read",
        "tsv": "stillvec.lexicons.weighted:read",
        "wordnet": "stillvec.lexicons.wordnet:read",
    },
)


def read_lexicon(source: str | os.PathLike[str]) -> Iterator[Edge]:
    """The edges of a lexicon, in its order."""
    form, colon, rest = str(source).partition(":")
    if colon and form in LEXICONS:
        return LEXICONS[form](Path(rest).expanduser())
    if source == "wordnet":
        return LEXICONS["wordnet"](Path())
    path = Path(source).expanduser()
    return LEXICONS[_form(path)](path)


def lexicon_digest(source: str | os.PathLike[str]) -> str:
    """One name for a lexicon: how it was named and, where it is a file, what is in it."""
    form, colon, rest = str(source).partition(":")
    path = Path(rest if colon and form in LEXICONS else source).expanduser()
    return f"{source} {file_digest(path)}" if path.is_file() else str(source)


def _form(path: Path) -> str:
    if wordnet_in(path):
        return "wordnet"
    if path.is_dir():
        raise LexiconError(f"A lexicon was wanted, and the folder {path} has no data of WordNet; {CURE}")
    first = next(numbered_lines(path, comments="# "), None)
    if first is None:
        raise LexiconError(f"A lexicon was wanted, and {path} is empty; write a word and its neighbours a line.")
    return "tsv" if "\t" in first[1] else "list"
