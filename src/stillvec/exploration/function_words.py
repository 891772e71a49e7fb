"""Function words (articles, pronouns, prepositions, auxiliaries), which name no cluster and which a map may hide."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from stillvec.vocabulary.folding import fold

_N_FREQUENT = 500  # words among which those of the language are expected
_MIN_SHARE = 0.3  # of the list that is among them


def find_function_words(words: Sequence[str]) -> frozenset[str]:
    """Those of the language to which most of the frequent words belong; none if it is not in the lists."""
    frequent = {fold(word, True) for word in words[:_N_FREQUENT]}
    shares = {language: len(frequent & known) / len(known) for language, known in _read_lists().items()}
    best = max(shares, key=shares.__getitem__)
    return _read_lists()[best] if shares[best] >= _MIN_SHARE else frozenset()


@cache
def _read_lists() -> Mapping[str, frozenset[str]]:
    table = tomllib.loads(files(__package__).joinpath("function_words.toml").read_text("utf-8"))
    return {language: frozenset(text.split()) for language, text in table.items()}
