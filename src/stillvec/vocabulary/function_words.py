"""Function words (articles, pronouns, prepositions, auxiliaries) of some languages, which tell the one of a text."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from stillvec.vocabulary.folding import fold

_N_FREQUENT = 500  # words among which those of the language are expected
_MIN_SHARE = 0.3  # of the list that is among them
_MIN_SHARE_OF_ALL = 0.6  # of the list that is anywhere in a vocabulary that is not sorted by frequency
LANGUAGES = {
    "english": "en",
    "german": "de",
    "french": "fr",
    "spanish": "es",
    "italian": "it",
    "dutch": "nl",
    "portuguese": "pt",
}  # by name; the codes are accepted, too


def find_function_words(words: Sequence[str]) -> frozenset[str]:
    """Those of the language to which most of the frequent words belong; none if it is not in the lists."""
    language = _find_best(words[:_N_FREQUENT], _MIN_SHARE)
    return _read_lists()[language] if language else frozenset()


def find_language(words: Sequence[str]) -> str:
    """The language of a vocabulary (en, de, fr, es, it, nl, pt) by its function words; "" if it is none of these."""
    return _find_best(words[:_N_FREQUENT], _MIN_SHARE) or _find_best(words, _MIN_SHARE_OF_ALL)


def _find_best(words: Sequence[str], least: float) -> str:
    known = {fold(word, True) for word in words}
    shares = {language: len(known & listed) / len(listed) for language, listed in _read_lists().items()}
    best = max(shares, key=shares.__getitem__)
    return best if shares[best] >= least else ""


def list_function_words(language: str) -> tuple[str, ...]:
    """Those of a language, by its name or code, in alphabetical order; none if there is no list."""
    return tuple(sorted(_read_lists().get(LANGUAGES.get(language.lower(), language.lower()), ())))


def name_list(words: Sequence[str]) -> str | None:
    """The language whose function words these are, all of them and no others."""
    return next((name for name, code in LANGUAGES.items() if _read_lists()[code] == {*words}), None)


@cache
def _read_lists() -> Mapping[str, frozenset[str]]:
    table = tomllib.loads(files(__package__).joinpath("function_words.toml").read_text("utf-8"))
    return {language: frozenset(text.split()) for language, text in table.items()}
