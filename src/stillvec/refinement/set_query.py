"""Queries in set algebra on feature tuples (Bhat et al. 2020): `river & bank - money`.

    ~a       complement         1 - a
    a & b    intersection       a b                 scaled to the smaller of |a| and |b|
    a | b    union              a + b - a b
    a + b    disjoint union     min(1, a + b)
    a - b    difference         a - min(a, b)       scaled to |a|

`~` binds tightest, then `&`; `|`, `+` and `-` are applied from left to right; parentheses group. Operators with two
sides stand between spaces, since words contain them too (at&t, x-ray). A term in double quotes may contain anything
("new york").

The paper does not scale. But probabilities of features are small, so that a product of two is nearly the empty set,
whose nearest words are those with the lowest cardinality, whatever the query; `scaled=False` is the paper's.
"""

import re
from collections.abc import Callable

import numpy as np

from stillvec.errors import UsageError
from stillvec.refinement import fuzzy_sets as fuzzy
from stillvec.refinement.fuzzy_sets import Features, Scored
from stillvec.vectors import WordVectors

_TOKEN = re.compile(r"""\s*(?:"([^"]+)"|([()~])|([^\s()~"][^\s()"]*))""")
_MAX_TOKENS = 200
_SUMS: dict[str, Callable[[Features, Features], Features]] = {
    "|": fuzzy.union,
    "+": fuzzy.disjoint_union,
    "-": fuzzy.difference,
}
_SYMBOLS = {*"()~&", *_SUMS}


def query(tuples: WordVectors, text: str, k: int = 10, *, scaled: bool = True) -> Scored:
    """The `k` words closest to a set expression, by the cross-entropy from it; words of the expression are left out.

    >>> query(tuples, "river & bank - money", k=5)  # doctest: +SKIP

    Parameters
    ----------
    tuples: vectors made by the step `feature_tuples`.
    text: words, `~ & | + -` and parentheses, see the top of this module.
    k: number of words (default: 10).
    scaled: scale intersections and differences to the cardinality of what they are made of (default: True).
    """
    features, words = evaluate_query(tuples, text, scaled=scaled)
    if not features.any():
        raise UsageError.expected("a set with features", "an empty one", where=f"query {text!r}")
    return fuzzy.nearest(tuples, features, k, exclude=words)


def evaluate_query(tuples: WordVectors, text: str, *, scaled: bool = True) -> tuple[Features, list[str]]:
    """The features of a set expression (dim,), and the words in it."""
    parser = _Parser(tuples, text, scaled)
    features = parser.parse_sum()
    if parser.tokens:
        raise parser.error("an operator or the end", parser.tokens[0])
    return features, parser.words


class _Parser:
    """Recursive descent over the tokens that are left; a token is (is it a word?, its text)."""

    def __init__(self, tuples: WordVectors, text: str, scaled: bool) -> None:
        self.tuples, self.text, self.scaled = tuples, text, scaled
        self.words: list[str] = []
        self.tokens: list[tuple[bool, str]] = []
        place = 0
        while place < len(text.rstrip()):
            if (match := _TOKEN.match(text, place)) is None:
                raise self.error("a word between two quotes", (True, text[place:].strip()))
            quoted, symbol, plain = match.groups()
            self.tokens.append((not (symbol or plain in _SYMBOLS), quoted or symbol or plain))
            place = match.end()
        if len(self.tokens) > _MAX_TOKENS:
            what = f"at most {_MAX_TOKENS} words, operators and parentheses"
            raise UsageError.expected(what, len(self.tokens), where="query")

    def parse_sum(self) -> Features:
        """A product, then any number of `|`, `+` or `-` and a product."""
        features = self.parse_product()
        while self.tokens and not self.tokens[0][0] and self.tokens[0][1] in _SUMS:
            name, before = self.tokens.pop(0)[1], fuzzy.cardinality(features)
            features = _SUMS[name](features, self.parse_product())
            features = self.scale(features, before) if name == "-" else features
        return features

    def parse_product(self) -> Features:
        """A set, then any number of `&` and a set."""
        features = self.parse_set()
        while self.tokens and self.tokens[0] == (False, "&"):
            self.tokens.pop(0)
            other = self.parse_set()
            before = min(fuzzy.cardinality(features), fuzzy.cardinality(other))
            features = self.scale(fuzzy.intersection(features, other), before)
        return features

    def parse_set(self) -> Features:
        """A word, a complement, or an expression in parentheses."""
        is_word, name = self.tokens.pop(0) if self.tokens else (False, "the end")
        if is_word:
            features = self.tuples[name].astype(np.float64)
            fuzzy.check_tuples(features)
            self.words.append(name)
            return features
        if name == "~":
            return fuzzy.complement(self.parse_set())
        if name != "(":
            raise self.error("a word", (False, name))
        features = self.parse_sum()
        if not self.tokens or self.tokens.pop(0) != (False, ")"):
            raise self.error("a closing parenthesis", (False, "none"))
        return features

    def scale(self, features: Features, size: float) -> Features:
        """Scaled to a cardinality, if asked for; the empty set stays empty."""
        if not self.scaled or not features.any():
            return features
        return np.asarray(np.clip(features * (size / fuzzy.cardinality(features)), 0, 1))

    def error(self, what: str, token: tuple[bool, str]) -> UsageError:
        got = repr(token[1]) if token[0] or token[1] in _SYMBOLS else token[1]
        return UsageError.expected(what, got, where=f"query {self.text!r}", cure="write it as in river & bank - money")
