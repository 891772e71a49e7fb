"""WordNet's own dictionary files (wndb(5)): synonyms, antonyms, hypernyms and similar adjectives, by part of speech."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

from stillvec.corpus.definitions import CURE, PARTS, find_wordnet, numbered_lines, wordnet_in
from stillvec.errors import LexiconError
from stillvec.lexicons.edge import Edge

_RELATIONS = {"!": "antonym", "@": "hypernym", "@i": "hypernym", "&": "similar"}
_FILES = {"n": "data.noun", "v": "data.verb", "a": "data.adj", "s": "data.adj", "r": "data.adv"}
_MARKER = re.compile(r"\((?:a|p|ip)\)$")  # how an adjective may stand: before the noun, behind the verb


class _Synset(NamedTuple):
    words: list[str]
    pointers: list[tuple[str, str, str, str]]  # relation, file, offset, which words of each (two hexadecimal digits)
    where: str


def read(path: Path) -> Iterator[Edge]:
    """Edges in the order of the files; a path that says nothing means wherever WordNet is installed."""
    folder = find_wordnet() if path == Path() else wordnet_in(path)
    if folder is None:
        raise LexiconError(f"WordNet's dictionary files were wanted in {path}, and there is no {PARTS[0]}; {CURE}")
    files = {part: _synsets(folder / part) for part in PARTS if (folder / part).is_file()}
    for file, synsets in files.items():
        part = file.removeprefix("data.")
        for synset in synsets.values():
            alike = combinations(dict.fromkeys(synset.words), 2)
            yield from (Edge(left, right, 1.0, "synonym", part) for left, right in alike)
            for relation, place, offset, which in synset.pointers:
                other = files.get(place, {}).get(offset)
                if other is None:
                    raise LexiconError(f"{synset.where}: nothing begins at {offset} of {place} in {folder}; {CURE}")
                pairs = product(_chosen(synset, which[:2]), _chosen(other, which[2:]))
                yield from (Edge(left, right, 1.0, relation, part) for left, right in pairs if left != right)


def _synsets(path: Path) -> dict[str, _Synset]:
    """By offset; `offset file type count (word id)... count (symbol offset type source/target)... | gloss`."""
    found: dict[str, _Synset] = {}
    for number, line in numbered_lines(path, comments="  "):
        fields, where = line.partition(" | ")[0].split(" "), f"{path}:{number}"
        try:
            end = 4 + 2 * int(fields[3], 16)
            words = [_MARKER.sub("", word).replace("_", " ") for word in fields[4:end:2]]
            last = end + 1 + 4 * int(fields[end])
            if not words or last > len(fields):
                raise ValueError("fewer fields than it says")
            groups = [fields[start : start + 4] for start in range(end + 1, last, 4)]
            pointers = [
                (_RELATIONS[symbol], _FILES[part], offset, which)
                for symbol, offset, part, which in groups
                if symbol in _RELATIONS
            ]
            [(int(which[:2], 16), int(which[2:], 16)) for *_, which in pointers]
        except (IndexError, KeyError, ValueError):
            raise LexiconError(
                f"A line of WordNet's data was wanted in {where}, and {line[:40]!r} came; {CURE}"
            ) from None
        found[fields[0]] = _Synset(words, pointers, where)
    return found


def _chosen(synset: _Synset, number: str) -> list[str]:
    """The word that a pointer names, counted from one; zero names all."""
    which = int(number, 16)
    return synset.words[which - 1 : which] if which else synset.words
