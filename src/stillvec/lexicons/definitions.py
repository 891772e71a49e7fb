"""Dictionaries as (word, gloss) pairs, one per sense, from WordNet or a table; and word lists."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from stillvec.lexicons.edge_lines import bad_entry, empty_file, read_entries
from stillvec.lexicons.wordnet import DATA_FILES, find_bases, find_wordnet, read_synsets

_SEGMENT = re.compile(r'(?:[^;"]|"[^"]*(?:"|$))+')  # semicolons separate the parts of a gloss, but not inside quotes
_EXAMPLE = re.compile(r'[:,]\s*"[^"]*"?$')


def read_dictionary(source: str | os.PathLike[str]) -> Iterator[tuple[str, str]]:
    """The senses of a dictionary, in its order.

    `source` is "wordnet" (where its packages install it), a folder with WordNet's data files, or a file with a word, a
    tab and a gloss on each line.
    """
    if source == "wordnet":
        return _read_wordnet(find_wordnet())
    path = Path(source).expanduser()
    return _read_wordnet(find_wordnet(path)) if path.is_dir() else _read_table(path)


def read_definitions(source: str | os.PathLike[str], words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The senses of a dictionary, and for those of the words that WordNet lacks, the senses of their base forms."""
    forms: dict[str, list[str]] = {}
    if source == "wordnet" or Path(source).expanduser().is_dir():
        defined = {word.lower() for word, _ in read_dictionary(source)}
        for word in words:
            for base in find_bases(word.lower(), defined):
                forms.setdefault(base, []).append(word)
    for word, gloss in read_dictionary(source):
        yield word, gloss
        yield from ((form, gloss) for form in forms.get(word.lower(), ()))


def read_words(path: str | os.PathLike[str]) -> list[str]:
    """Distinct words or multi-word terms, one per line; blank lines and `#` comments are skipped."""
    words = dict.fromkeys(line for _, line in read_entries(Path(path).expanduser()))
    if not words:
        raise empty_file("one word or term", Path(path))
    return list(words)


def _read_wordnet(folder: Path) -> Iterator[tuple[str, str]]:
    for file in DATA_FILES:
        for synset in read_synsets(folder / file, pointers=False):
            definition = _definition(synset.gloss)
            yield from ((word, definition) for word in synset.words)


def _definition(gloss: str) -> str:
    """A gloss without its examples, which are in quotes."""
    segments = [_EXAMPLE.sub("", segment.strip()) for segment in _SEGMENT.findall(gloss)]
    definitions = [segment for segment in segments if segment and not segment.startswith('"')]
    return "; ".join(definitions) or gloss.strip(' "')


def _read_table(path: Path) -> Iterator[tuple[str, str]]:
    word = ""
    for number, line in read_entries(path):
        word, _, gloss = (part.strip() for part in line.partition("\t"))
        if not (word and gloss):
            raise bad_entry("a word, a tab and a gloss", line, path, number)
        yield word, gloss
    if not word:
        raise empty_file("a word, a tab and a gloss", path)
