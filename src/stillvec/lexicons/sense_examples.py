"""Pairs of WordNet's example sentences that use a word in the same sense or in two senses, as a word-in-context set.

A pair of examples of one synset is of the same sense, one of two synsets of the same part of speech is not. WordNet's
senses are finer than most people's: pairs of different senses may be hard to tell apart for them, too. As in WiC
(Pilehvar & Camacho-Collados 2019), a word has as many pairs of one kind as of the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from stillvec.lexicons.wordnet import DATA_FILES, find_wordnet, read_synsets

_QUOTE = re.compile('"([^"]+)"')
_WORD = re.compile(r"\w+")
_MIN_WORDS = 4  # of an example
_MAX_PAIRS = 4  # of each kind per word and part of speech
PARTS = ("development", "test")


class SensePair(NamedTuple):
    same: bool  # the word has the same sense in both
    word: str
    one: str
    other: str


def read_sense_pairs(path: Path | None = None, part: str = "test") -> Iterator[SensePair]:
    """The pairs of one half of the words; a word is in the same half everywhere.

    Without a path WordNet is looked for where it is usually installed.
    """
    folder = find_wordnet(path)
    for name in DATA_FILES:
        examples: dict[str, dict[str, list[str]]] = {}  # word → synset → examples
        for synset in read_synsets(folder / name, pointers=False):
            for text in _QUOTE.findall(synset.gloss):
                words = _WORD.findall(text.lower())
                for word in {word.lower() for word in synset.words}.intersection(words):
                    if len(words) >= _MIN_WORDS and _find_part(word) == part:
                        examples.setdefault(word, {}).setdefault(synset.offset, []).append(" ".join(text.split()))
        for word in sorted(examples):
            yield from _pair_examples(word, examples[word])


def _pair_examples(word: str, synsets: dict[str, list[str]]) -> Iterator[SensePair]:
    same = [pair for texts in synsets.values() for pair in combinations(texts, 2)]
    other = [pair for one, two in combinations(synsets.values(), 2) for pair in ((a, b) for a in one for b in two)]
    number = min(len(same), len(other), _MAX_PAIRS)
    for is_same, pairs in ((True, same), (False, other)):
        chosen = sorted(pairs, key=lambda pair: _hash(" ".join(pair)))[:number]
        yield from (SensePair(is_same, word, *pair) for pair in chosen)


def _find_part(word: str) -> str:
    return PARTS[_hash(word) % 2]


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest(), "big")
