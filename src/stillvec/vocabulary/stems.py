"""Stems of words by the Snowball algorithms (Porter 2001): `cultures`, `cultural`, `culturally` → `cultur`.

English ones are found by `english_stems`, with the same result as those of the package for other languages.
"""

from collections.abc import Sequence

from stillvec.errors import UsageError
from stillvec.registry import require
from stillvec.vocabulary.english_stems import stem_english


def stem_words(words: Sequence[str], language: str = "english") -> list[str]:
    """The stem of each word, in lower case.

    Parameters
    ----------
    words: the words.
    language: the name of a Snowball algorithm, such as "german" (default: english).
    """
    if language == "english":
        return [stem_english(word.lower()) for word in words]
    snowball = require("snowballstemmer", "stems", "Finding the stems of words")
    if language not in snowball.algorithms():
        raise UsageError.unknown("language", language, snowball.algorithms(), where="setting 'language'")
    stems: list[str] = snowball.stemmer(language).stemWords([word.lower() for word in words])
    return stems
