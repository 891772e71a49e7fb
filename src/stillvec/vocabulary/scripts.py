"""The scripts in which words are written, by the Unicode names of their letters: LATIN, CYRILLIC, CJK and so on."""

from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache
from unicodedata import name

from stillvec.vocabulary.word_index import Vocabulary

_LEAST_SHARE = 0.05  # of the letters of a corpus, for a script that it is written in


def find_scripts(vocabulary: Vocabulary) -> frozenset[str]:
    """The scripts of a counted vocabulary; none if it has no counts."""
    letters: Counter[str] = Counter()
    for word, count in zip(vocabulary.words, vocabulary.counts.tolist(), strict=True):
        if count:
            for letter in word:
                letters[_script_of(letter)] += count
    del letters[""]
    return frozenset(script for script, count in letters.items() if count >= _LEAST_SHARE * letters.total())


def select_by_script(words: Iterable[str], scripts: Collection[str]) -> list[str]:
    """The words with letters of these scripts only."""
    return [word for word in words if {_script_of(letter) for letter in word} - {""} <= {*scripts}]


@lru_cache(1 << 16)
def _script_of(letter: str) -> str:
    """Empty for what is no letter."""
    return name(letter, "").partition(" ")[0] if letter.isalpha() else ""
