"""Words of a stream of texts as numbers, and which of them stand beside each other, for phrases and hyphens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stillvec.vocabulary.folding import fold
from stillvec.vocabulary.latin_matcher import LatinWordMatcher
from stillvec.vocabulary.token_cache import TokenCache, TokenInterner
from stillvec.vocabulary.word_matcher import extend_over_marks, word_tokenizer

_FIRST, _LAST = 1, 2  # of its whitespace token, which has nothing before or after it; no hyphen touches it
_MAX_WORD = 100  # characters


class AdjacentText(NamedTuple):
    """The words of several texts, concatenated."""

    words: NDArray[np.int32]  # (W,) their numbers, -1 for a word that has none
    follows: NDArray[np.bool_]  # (W,) one space is between it and the word before; no hyphen touches either
    hyphenated: NDArray[np.int32]  # (H,) numbers of the strings of words with a hyphen between them


class AdjacentWords:
    """Numbers words, each new one gets the next number; the first `max_words` ones do."""

    def __init__(self, *, lowercase: bool = True, max_words: int = 10_000_000) -> None:
        self.lowercase = lowercase
        self.words, self.hyphenated = _BoundedInterner(max_words), _BoundedInterner(max_words)
        self._latin = LatinWordMatcher(self.words, (), lowercase)
        self._cache = TokenCache(3)  # word, its place in the token, hyphenated string

    def read(self, texts: Sequence[str]) -> AdjacentText:
        """The words of the texts."""
        tokens, n_tokens, slow = self._cache.look_up(texts, self._add_tokens)
        is_plain = ~np.repeat(slow, n_tokens)
        starts_text = np.zeros(len(tokens), bool)
        starts_text[(np.cumsum(n_tokens) - n_tokens)[n_tokens > 0]] = True
        tokens, starts_text = tokens[is_plain], starts_text[is_plain]
        words, lengths = self._cache.tables[0].take(tokens)
        places, _ = self._cache.tables[1].take(tokens)
        hyphenated, _ = self._cache.tables[2].take(tokens)
        token_of = np.repeat(np.arange(len(tokens)), lengths)
        follows = np.zeros(len(words), bool)
        follows[1:] = (places[1:] & _FIRST > 0) & (places[:-1] & _LAST > 0) & (np.diff(token_of) == 1)
        follows &= ~starts_text[token_of]
        parts = [AdjacentText(words, follows, hyphenated)]
        parts += [self._read_slow(texts[number]) for number in np.flatnonzero(slow).tolist()]
        return AdjacentText(*map(np.concatenate, zip(*parts, strict=True)))

    def _add_tokens(self, new: Sequence[str]) -> None:
        located, owners, plain = self._latin.match_tokens(new)
        n_words = np.bincount(owners, minlength=len(new))
        places, chains, n_chains = [], [], np.zeros(len(new), np.int64)
        token_of, starts, ends = owners.tolist(), located[:, 1].tolist(), located[:, 2].tolist()
        for owner, start, end in zip(token_of, starts, ends, strict=True):
            places.append(_find_place(new[owner], start, end))
        for number, token in enumerate(new):
            if plain[number] and "-" in token:
                first = int(np.searchsorted(owners, number))
                last = first + int(n_words[number])
                found = self._find_hyphenated(token, [*zip(starts[first:last], ends[first:last], strict=True)])
                chains += found
                n_chains[number] = len(found)
        at = len(self._cache.row)
        self._cache.tables[0].extend(located[:, 0], n_words)
        self._cache.tables[1].extend(np.array(places, np.int32), n_words)
        self._cache.tables[2].extend(np.array(chains, np.int32), n_chains)
        self._cache.grow(len(new))
        self._cache.row[at:] = at + np.arange(len(new))
        self._cache.plain[at:] = plain | [not token for token in new]

    def _read_slow(self, text: str) -> AdjacentText:
        offsets = self._splitter.encode(text, add_special_tokens=False).offsets
        spans = [(start, extend_over_marks(text, end)) for start, end in offsets]
        words = [self._number(text[start:end], self.words) for start, end in spans]
        follows = [False] * len(words)
        for at in range(1, len(spans)):
            (start, end), (next_start, next_end) = spans[at - 1 : at + 1]
            touches = text[max(start - 1, 0) : start] == "-" or text[next_end : next_end + 1] == "-"
            follows[at] = text[end:next_start] == " " and not touches
        chains = self._find_hyphenated(text, spans) if "-" in text else []
        return AdjacentText(np.array(words, np.int32), np.array(follows, bool), np.array(chains, np.int32))

    def _number(self, word: str, numbers: TokenInterner) -> int:
        return numbers[fold(word, self.lowercase)] if len(word) <= _MAX_WORD else -1

    def _find_hyphenated(self, text: str, spans: Sequence[tuple[int, int]]) -> list[int]:
        """The longest strings of words with single hyphens between them."""
        chains, first = [], 0
        for at in range(1, len(spans) + 1):
            if at == len(spans) or text[spans[at - 1][1] : spans[at][0]] != "-":
                if at - first > 1:
                    chains.append(self._number(text[spans[first][0] : spans[at - 1][1]], self.hyphenated))
                first = at
        return chains

    @cached_property
    def _splitter(self) -> Any:
        return word_tokenizer((), self.lowercase)


class _BoundedInterner(TokenInterner):
    """-1 for new strings once there are `limit` of them."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def __missing__(self, token: str) -> int:
        return super().__missing__(token) if len(self) < self._limit else -1


_HYPHENS = re.compile("[-\u2010\u2011]")


def _find_place(token: str, start: int, end: int) -> int:
    """Whether a word begins or ends its token, and its other side does not touch a hyphen."""
    before, after = token[max(start - 1, 0) : start], token[end : end + 1]
    if _HYPHENS.match(before) or _HYPHENS.match(after):
        return 0
    return _FIRST * (start == 0) | _LAST * (end == len(token))
