"""Which words are forms of one word, and lists of neighbours with one entry per word.

In English, words with the same stem (`english_stems`). In other languages, words that begin alike, accents apart: in
at least four letters that are two thirds of the longer word or more, with at most two further letters in one of them
and three in the other ("Haus", "Häuser"); three letters suffice if they are the whole of one ("Tag", "Tage"). Whether
a vocabulary is English is decided by its function words. Parts of a term before its last space or hyphen must be equal.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from stillvec.vocabulary.english_stems import find_base, stem_english
from stillvec.vocabulary.function_words import find_language

_LEAST_COMMON = 4  # letters
_LEAST_SHARE = 2 / 3  # of the longer word
_MOST_FURTHER = (2, 3)  # letters
OVERSAMPLING = 4  # neighbours that are read at first for one group
_LAST_PART = re.compile(r"[^\s_-]*$")


class NeighbourGroup(NamedTuple):
    """A neighbour with the inflections of it that are farther away, the nearest first."""

    word: str
    cosine: float
    forms: tuple[str, ...] = ()


class NeighbourGroups(list[NeighbourGroup]):
    """Neighbours without inflections of each other or of the query; `forms` are those of the query, nearest first."""

    def __init__(self, groups: Iterable[NeighbourGroup] = (), forms: Iterable[str] = ()) -> None:
        super().__init__(groups)
        self.forms = (*forms,)


class Inflections:
    """The rule for the language of a vocabulary."""

    def __init__(self, words: Sequence[str]) -> None:
        self.language = find_language(words)

    def share_stem(self, a: str, b: str) -> bool:
        """Whether two words are forms of one word."""
        if self.language == "en":
            return stem_term(a) == stem_term(b)
        return begin_alike(a, b)

    def group(self, find: Callable[[int], list[tuple[str, float]]], k: int, queries: Sequence[str]) -> NeighbourGroups:
        """The `k` nearest words of which none is a form of another or of a query; `find(n)` gives the `n` nearest."""
        n_neighbours = OVERSAMPLING * k
        while True:
            near = find(n_neighbours)
            groups, is_complete = self.fold(near, k, queries)
            if is_complete or len(near) < n_neighbours:
                return groups
            n_neighbours *= OVERSAMPLING

    def fold(self, near: Iterable[tuple[str, float]], k: int, queries: Sequence[str]) -> tuple[NeighbourGroups, bool]:
        """The first `k` groups of neighbours, and whether a further one begins: if none does, forms may be missing."""
        own: list[str] = []
        heads: list[tuple[str, float, list[str]]] = []
        is_complete = False
        for word, cosine in near:
            if any(self.share_stem(word, query) for query in queries):
                own.append(word)
            elif (forms := next((forms for head, _, forms in heads if self.share_stem(word, head)), None)) is not None:
                forms.append(word)
            elif is_complete := len(heads) == k:
                break
            else:
                heads.append((word, cosine, []))
        groups = [NeighbourGroup(word, cosine, (*forms,)) for word, cosine, forms in heads]
        return NeighbourGroups(groups, own), is_complete


def stem_term(term: str) -> str:
    """The term in lower case, with the English stem of its last word; irregular forms have that of their base."""
    plain = term.lower().replace("’", "'")
    last = _LAST_PART.search(plain)
    return plain[: last.start()] + stem_english(find_base(last[0])) if last else plain


def begin_alike(a: str, b: str) -> bool:
    """Whether two words differ in a few last letters only."""
    a, b = _remove_accents(a), _remove_accents(b)
    if a == b:
        return True
    n_common = count_common(a, b)
    ends = sorted((a[n_common:], b[n_common:]), key=len)
    if any(end and not end.isalpha() for end in ends) or n_common < (_LEAST_COMMON if ends[0] else _LEAST_COMMON - 1):
        return False
    short = all(len(end) <= most for end, most in zip(ends, _MOST_FURTHER, strict=True))
    return short and n_common >= _LEAST_SHARE * max(len(a), len(b))


def count_common(a: str, b: str) -> int:
    """The number of letters with which both words begin."""
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _remove_accents(word: str) -> str:
    plain = word.casefold()
    if plain.isascii():
        return plain
    return "".join(char for char in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(char))
