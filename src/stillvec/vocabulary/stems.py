"""Stems of words by the Snowball algorithms (Porter 2001): `cultures`, `cultural`, `culturally` → `cultur`."""

from collections.abc import Sequence

from stillvec.errors import UsageError
from stillvec.registry import require


def stem_words(words: Sequence[str], language: str = "english") -> list[str]:
    """The stem of each word, in lower case.

    Parameters
    ----------
    words: the words.
    language: the name of a Snowball algorithm, such as "german" (default: english).
    """
    snowball = require("snowballstemmer", "stems", "Finding the stems of words")
    if language not in snowball.algorithms():
        raise UsageError.unknown("language", language, snowball.algorithms(), where="setting 'language'")
    stems: list[str] = snowball.stemmer(language).stemWords([word.lower() for word in words])
    return stems
