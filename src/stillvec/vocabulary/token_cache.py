"""A bounded cache of what is known about whitespace tokens: the fast path from text to words and subword tokens.

A corpus repeats its whitespace tokens ("the", "house,"), so each is analysed once and texts are assembled from the
results with numpy, without a Python loop over words:

    text              "the old house, the river"
      | split(" ")
    tokens            the   old   house,   the   river
      | TokenInterner, a dict and a `TokenNumbers`: new tokens go to a callback, which fills the tables
    ids                0     1      2       0      3
      | row[ids]
    tables (RaggedRows, one per kind of result; CachingTokenizer has four)
      vocabulary rows      [5]   [17]   [42]    [5]   [8]          words of each token, -1 if unknown
      subword token ids    [12]  [903]  [77,4]  [12]  [31]         those of the teacher
      | RaggedRows.take: concatenate the rows of the ids
    words of the text      5 17 42 5 8
    subword tokens         12 903 77 4 12 31

This is valid only if the words of a text are those of its tokens. A token is *plain* if it consists of Latin letters
and common punctuation and cannot be part of a multi-word term; a text with another token takes the slow path
(`WordMatcher` with the Rust tokenizer). Both paths give the same words, which tests check.

When the cache is full, the half used most often stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.vocabulary.token_numbers import TokenNumbers, split_texts

Ints = NDArray[np.int64]
_MAX_TOKENS = 400_000
_MAX_CHARACTERS = 20_000_000
_MIN_TOGETHER = 32  # texts; fewer are sooner looked up one by one
_TOGETHER = 1024  # texts, whose arrays fit the cache of the CPU
_POSSESSIVES = ("'s", "'S", "’s", "’S")


class TokenInterner(dict[str, int]):
    """Numbers whitespace tokens in the order in which they first appear."""

    def __init__(self, tokens: Iterable[str] = ()) -> None:
        super().__init__((token, number) for number, token in enumerate(tokens))
        self.n_characters = sum(map(len, self))  # a corpus may have few but long tokens
        self._new: list[str] = []
        self._table = TokenNumbers()

    def __missing__(self, token: str) -> int:
        number = self[token] = len(self)
        self.n_characters += len(token)
        self._new.append(token)
        return number

    def intern(self, texts: Sequence[str]) -> tuple[Ints, Ints]:
        """The ids of the tokens of all texts, concatenated, and the number of tokens per text."""
        if len(texts) < _MIN_TOGETHER:
            split = [text.split(" ") for text in texts]
            tokens = np.fromiter(map(self.__getitem__, chain.from_iterable(split)), np.int64)
            return tokens, np.fromiter(map(len, split), np.int64, len(texts))
        parts = [self._intern_together(texts[at : at + _TOGETHER]) for at in range(0, len(texts), _TOGETHER)]
        ids, n_tokens = zip(*parts, strict=True)
        return np.concatenate(ids), np.concatenate(n_tokens)

    def _intern_together(self, texts: Sequence[str]) -> tuple[Ints, Ints]:
        tokens = split_texts(texts)
        ids = self._table.find(tokens.low, tokens.high)
        is_short = tokens.is_short
        rest = np.flatnonzero((ids < 0) | ~is_short)
        if len(rest):
            ids[rest] = np.fromiter(map(self.__getitem__, tokens.strings(rest)), np.int64, len(rest))
            new = rest[is_short[rest]]
            self._table.add(tokens.low[new], tokens.high[new], ids[new])
        return ids, tokens.n_tokens

    def pop_new(self) -> list[str]:
        """The tokens added since the last call."""
        new, self._new = self._new, []
        return new


def needs_slow_path(texts: Sequence[str], tokens: Ints, n_tokens: Ints, plain: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which texts have a token that is not plain, or begin with "'s", a word only there or after another word."""
    slow = np.fromiter((text.startswith(_POSSESSIVES) for text in texts), bool, len(texts))
    slow[np.repeat(np.arange(len(texts)), n_tokens)[~plain[tokens]]] = True
    return slow


class TokenCache:
    """Whitespace tokens, whether each is plain, and `n_tables` rows of integers for each."""

    def __init__(self, n_tables: int) -> None:
        self.interner = TokenInterner()
        self.tables = tuple(RaggedRows() for _ in range(n_tables))
        self.row: Ints = np.zeros(0, np.int64)  # (tokens,) in the tables
        self.plain: NDArray[np.bool_] = np.zeros(0, bool)  # (tokens,)
        self._n_uses: Ints = np.zeros(0, np.int64)  # (tokens,) halved whenever tokens are dropped
        self.lock = Lock()  # for owners that are used by several threads

    def __reduce__(self) -> tuple[type[TokenCache], tuple[int]]:
        """Copies and pickles start empty."""
        return TokenCache, (len(self.tables),)

    def look_up(
        self, texts: Sequence[str], add: Callable[[Sequence[str]], None]
    ) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        """The table rows of all tokens, the number of tokens per text, and which texts need the slow path.

        `add` is called with the new tokens; it calls `grow` and fills in `row`, `plain` and the tables.
        """
        if len(self.interner) > _MAX_TOKENS or self.interner.n_characters > _MAX_CHARACTERS:
            self._drop_rare()
        tokens, n_tokens = self.interner.intern(texts)
        if new := self.interner.pop_new():
            add(new)
        if len(tokens) < len(self._n_uses) // 8:
            np.add.at(self._n_uses, tokens, 1)
        else:
            self._n_uses += np.bincount(tokens, minlength=len(self._n_uses))
        return self.row[tokens], n_tokens, needs_slow_path(texts, tokens, n_tokens, self.plain)

    def grow(self, n_tokens: int) -> None:
        self.row = np.concatenate([self.row, np.zeros(n_tokens, np.int64)])
        self.plain = np.concatenate([self.plain, np.ones(n_tokens, bool)])
        self._n_uses = np.concatenate([self._n_uses, np.zeros(n_tokens, np.int64)])

    def _drop_rare(self) -> None:
        """Keep at most half of the tokens and characters: those used most often, if more than once."""
        frequent = np.argsort(-self._n_uses, kind="stable")[: _MAX_TOKENS // 2]
        tokens = [*self.interner]
        n_characters = np.cumsum([len(tokens[token]) for token in frequent.tolist()])
        stay = np.sort(frequent[(self._n_uses[frequent] > 1) & (n_characters <= _MAX_CHARACTERS // 2)])
        self.interner = TokenInterner(tokens[token] for token in stay.tolist())
        for table in self.tables:
            rows = table.take(self.row[stay])
            table.truncate(0)
            table.extend(*rows)
        self.row, self.plain, self._n_uses = np.arange(len(stay)), self.plain[stay], self._n_uses[stay] // 2


class RaggedRows:
    """Rows of integers of different lengths in one array."""

    def __init__(self) -> None:
        self._flat = np.zeros(1 << 16, np.int32)
        self._ends = np.zeros(1 << 12, np.int64)  # one past the last; row 0 begins at 0
        self._n_rows = 0

    def __len__(self) -> int:
        return self._n_rows

    def extend(self, flat: NDArray[Any], lengths: Ints) -> None:
        """Append rows, given concatenated."""
        start = int(self._ends[self._n_rows - 1]) if self._n_rows else 0
        self._flat = _reserve(self._flat, start + len(flat))
        self._ends = _reserve(self._ends, self._n_rows + len(lengths))
        self._flat[start : start + len(flat)] = flat
        self._ends[self._n_rows : self._n_rows + len(lengths)] = start + np.cumsum(lengths)
        self._n_rows += len(lengths)

    def truncate(self, n_rows: int) -> None:
        self._n_rows = n_rows

    def take(self, rows: Ints) -> tuple[NDArray[np.int32], Ints]:
        """These rows, concatenated, and their lengths."""
        ends = self._ends[rows]
        lengths = ends - np.where(rows > 0, self._ends[rows - 1], 0)
        return self._flat[concatenate_ranges(ends - lengths, lengths)], lengths


def _reserve(array: NDArray[Any], size: int) -> NDArray[Any]:
    if size <= len(array):
        return array
    return np.concatenate([array, np.zeros(max(size, 2 * len(array)) - len(array), array.dtype)])


def sum_segments(values: NDArray[Any], lengths: Ints) -> Ints:
    """The sum of each segment of `values`; segments have these lengths and follow one another."""
    total = np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])
    ends = np.cumsum(lengths)
    return np.asarray(total[ends] - total[ends - lengths])


def concatenate_ranges(starts: Ints, lengths: Ints) -> Ints:
    """`start, start + 1, ..., start + length - 1` for each pair, concatenated."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.asarray(np.arange(total) + np.repeat(starts - (ends - lengths), lengths))
