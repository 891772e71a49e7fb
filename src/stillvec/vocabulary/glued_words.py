"""Words that are two words written together ("solutionthe"), as broken headings and extraction from PDF leave them.

The evidence is a capital letter inside a word ("SolutionThe") whose second half is a function word, or, where the text
has no capitals, the end "the", "this", "that" or "which" behind a word. Both halves must be frequent and the whole
rare. Names ("PowerPoint"), identifiers ("getItem") and compounds ("without", "football") have no such evidence.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from stillvec.vocabulary.function_words import find_function_words, list_function_words

_INNER_CAPITAL = re.compile(
    r"(?<![\w.@/])([A-ZÀ-ÖØ-Þ]?[a-zß-öø-ÿ]{3,})([A-ZÀ-ÖØ-Þ][a-zß-öø-ÿ]{1,})(?![\w@/]|\.\w)"
)  # one capital inside, at least three letters before it and one behind
_CANDIDATE = re.compile(r"[a-zß-öø-ÿ]{3}[A-ZÀ-ÖØ-Þ][a-zß-öø-ÿ]")
_COMPOUND_ENDS = (  # LinkedIn, CheckOut
    "about above after all an auf aus away back by down ein for in into less like man more most off on one or out over "
    "self so some through to under up upon use with"
)
_PARTICLES = frozenset(_COMPOUND_ENDS.split())
_ENDS = ("the", "this", "that", "which")
_MIN_LEFT = 4  # letters before these ends, as names may have fewer (Bethe)
_MIN_COUNT = 20  # occurrences of each half
_TIMES = 20  # each half is this many times as frequent as the whole
_MAX_JOINS = 100_000  # different ones that are remembered


@dataclass(frozen=True)
class GluedWord:
    """A word that looks like two."""

    word: str  # as the vocabulary writes it
    parts: tuple[str, str]
    n_occurrences: int


def find_capitals_inside(tokens: Iterable[str]) -> Iterator[str]:
    """The tokens, which have no spaces, that `add_joins` may find something in: one search through all of them."""
    text = " ".join(tokens)
    end = -1
    for found in _CANDIDATE.finditer(text):
        if found.start() > end:
            end = text.find(" ", found.end())
            end = len(text) if end < 0 else end
            yield text[text.rfind(" ", 0, found.start()) + 1 : end]


def add_joins(joins: Counter[str], text: str, number: int = 1) -> None:
    """Count the words of a text with a capital letter inside, divided there: "Solution The"."""
    for left, right in _INNER_CAPITAL.findall(text) if _CANDIDATE.search(text) else ():
        pair = f"{left} {right}"
        if number and (pair in joins or len(joins) < _MAX_JOINS):
            joins[pair] += number


def find_glued(counts: Mapping[str, int], joins: Mapping[str, int], *, lowercase: bool = True) -> list[GluedWord]:
    """The words that look like two, most frequent first; `joins` are what `add_joins` counted."""
    folded = counts if lowercase else _fold_counts(counts)
    frequent = sorted(folded, key=lambda word: (-folded[word], word))[:500]
    function_words = find_function_words(frequent)
    found: dict[str, GluedWord] = {}
    for glued in [*_split_by_case(folded, joins, function_words, lowercase), *_split_by_end(folded, function_words)]:
        found.setdefault(glued.word.lower(), glued)
    return sorted(found.values(), key=lambda glued: (-glued.n_occurrences, glued.word))


def _split_by_case(
    counts: Mapping[str, int], joins: Mapping[str, int], function_words: frozenset[str], lowercase: bool
) -> Iterator[GluedWord]:
    pairs = [(pair.partition(" ")[0], pair.partition(" ")[2], number) for pair, number in joins.items()]
    likely = [(left, right, n) for left, right, n in pairs if _is_unlike(counts, left.lower(), right.lower())]
    clear = function_words - _PARTICLES
    followers: dict[str, set[str]] = {}  # of first halves, the function words glued to them
    for left, right, _ in likely:
        if right.lower() in clear:
            followers.setdefault(left.lower(), set()).add(right.lower())
    for left, right, number in likely:
        if right.lower() in clear or len(followers.get(left.lower(), ())) > 1:
            word = left + right
            yield GluedWord(word.lower() if lowercase else word, (left, right), number)


def _split_by_end(counts: Mapping[str, int], function_words: frozenset[str]) -> Iterator[GluedWord]:
    if function_words != {*list_function_words("english")}:
        return
    for word, number in counts.items():
        end = next((end for end in _ENDS if word.endswith(end)), "")
        left = word[: -len(end)] if end else ""
        if len(left) >= _MIN_LEFT and _is_unlike(counts, left, end):
            yield GluedWord(word, (left, end), number)


def _is_unlike(counts: Mapping[str, int], left: str, right: str) -> bool:
    """Whether both halves are frequent and the whole is rare."""
    least = max(_MIN_COUNT, _TIMES * counts.get(left + right, 1))
    return counts.get(left, 0) >= least and counts.get(right, 0) >= least


def _fold_counts(counts: Mapping[str, int]) -> dict[str, int]:
    folded: dict[str, int] = {}
    for word, number in counts.items():
        folded[word.lower()] = folded.get(word.lower(), 0) + number
    return folded


def describe_glued(glued: Iterable[GluedWord], vocabulary: Iterable[str]) -> str:
    """One sentence with examples and the cure; empty if there are none."""
    found = [*glued]
    if not found:
        return ""
    known = {*vocabulary}
    n_known = sum(each.word in known for each in found)
    many = f"{len(found):,} words look" if len(found) > 1 else "One word looks"
    examples = ", ".join(f"{each.word} ({each.n_occurrences:,})" for each in found[:3])
    where = f"{n_known:,} of them in the vocabulary" if n_known else "none of them in the vocabulary"
    return f"{many} like two written together, {where}: {examples}; correct the text, or give --exclude"
