"""Words of plain (Latin) texts by one pattern of Python's `re` and a dict: several times as fast as the Rust tokenizer.

A text is plain if it contains only characters below U+0180 and some common punctuation. There the definition of a word
(`word_matcher.py`) needs no Unicode tables, and both implementations give the same rows. Any other text, and one that
may contain a multi-word term, is left to `WordMatcher`. Whole corpora go through `TokenCache`.
"""

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from stillvec.vocabulary.folding import normalizer
from stillvec.vocabulary.token_cache import TokenCache, TokenInterner, sum_segments

_MIN_CACHED = 16  # texts; for fewer the cache does not pay
_LATIN = "".join(map(chr, range(0x180)))
_LETTERS = "".join(char for char in _LATIN if category(char)[0] == "L")
_DIGITS = "".join(char for char in _LATIN if category(char)[0] == "N")
_NOT_PLAIN = re.compile("[^\0-\u012f\u0131-\u017f\u2010-\u2015‘’‚“”„†‡…•′€−]")  # U+0130 is two characters in lower case


def _pattern(letters: str, digits: str) -> re.Pattern[str]:
    char, digit = f"[{letters}{digits}_]", f"[{digits}]"
    joiner = rf"(?:'(?![sS](?!{char}))|[.·]|(?<={digit}),(?={digit}))"
    return re.compile(
        rf"(?:[cdjlmnstCDJLMNST]|[qQ]u)'(?=[{letters}]{{2}})"
        rf"|(?:\A|(?<={char}))'[sS](?!{char})"
        rf"|{char}+(?:{joiner}{char}+)*"
    )


_ASCII_WORD = _pattern("A-Za-z", "0-9")
_LATIN_WORD = _pattern(_LETTERS, _DIGITS)
_ALPHANUMERIC = re.compile("[A-Za-z0-9_]+")


class LatinWordMatcher:
    """Vocabulary rows of the words of plain texts; `rows` has the words in their folded form.

    With a `TokenInterner` for `rows`, every new word gets the next number.
    """

    def __init__(self, rows: Mapping[str, int], terms: Iterable[str], lowercase: bool) -> None:
        self._rows = rows if isinstance(rows, TokenInterner) else _RowLookup(rows)
        self._lowercase = lowercase
        possible = [term for term in map(normalizer(lowercase).normalize_str, terms) if not _NOT_PLAIN.search(term)]
        # a text that contains a term contains the term's longest alphanumeric part; a term without any is punctuation
        self._term_parts = {max(parts, key=len) for term in possible if (parts := _ALPHANUMERIC.findall(term))}
        punctuation = [term for term in possible if not _ALPHANUMERIC.search(term)]
        pattern = "|".join(map(re.escape, punctuation))
        self._punctuation = re.compile(rf"(?<![A-Za-z0-9_])(?:{pattern})(?![A-Za-z0-9_])") if pattern else None
        self._cache = TokenCache(3)  # vocabulary row, start and end of each word
        self.splits_on_whitespace = not any(" " in term for term in punctuation)

    def split_token(self, token: str) -> list[str] | None:
        """The folded words of a whitespace token inside a text; None if it is not plain."""
        return self._split(f"\n{token}") if token.split() == [token] else None

    def match_tokens(self, tokens: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
        """(row, start, end) of the words of whitespace tokens, the token of each word, and which tokens are plain.

        Tokens that `match_rows` has in its cache are not located again.
        """
        cache = self._cache
        with cache.lock:
            numbers = (cache.interner.get(token, -1) if token else -1 for token in tokens)
            number = np.fromiter(numbers, np.int64, len(tokens))
            cached, new = np.flatnonzero(number >= 0), np.flatnonzero(number < 0)
            columns = [table.take(cache.row[number[cached]]) for table in cache.tables]
            plain = cache.plain[number] if len(cached) else np.zeros(len(tokens), bool)
        words, owners, plain[new] = self._locate([tokens[token] for token in new.tolist()])
        if len(cached):
            words = np.concatenate([np.stack([flat for flat, _ in columns], 1), words])
            owners = np.concatenate([np.repeat(cached, columns[0][1]), new[owners]])
            order = np.argsort(owners, kind="stable")
            words, owners = words[order], owners[order]
        return words, owners.astype(np.int32), plain

    def _locate(self, tokens: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.bool_]]:
        no_terms = not self._term_parts and self._punctuation is None
        plain = np.array(
            [
                token.split() == [token]
                and ((no_terms and token.isascii()) or self._fold_plain(f"\n{token}") is not None)
                for token in tokens
            ],
            bool,
        )
        which = np.flatnonzero(plain)
        strings = [tokens[token] for token in which.tolist()]
        row = self._rows.__getitem__
        pattern, text = self._fold("".join(f"\n{string}" for string in strings))
        flat = [number for word in pattern.finditer(text) for number in (row(word[0]), word.start(), word.end())]
        words = np.array(flat, np.int32).reshape(-1, 3)
        lengths = np.fromiter(map(len, strings), np.int64, len(strings)) + 1
        starts = (np.cumsum(lengths) - lengths).astype(np.int32)
        owners = np.searchsorted(starts, words[:, 1], side="right") - 1
        words[:, 1:] -= starts[owners][:, None] + 1
        return words, which[owners], plain

    def match_rows(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64], list[int]]:
        """The rows of all words, the number of words per text, and the texts that are not plain, which have none."""
        if len(texts) < _MIN_CACHED or not self.splits_on_whitespace:
            return self._match_uncached(texts)
        with self._cache.lock:
            tokens, n_tokens, slow = self._cache.look_up(texts, self._add_tokens)
            rows, lengths = self._cache.tables[0].take(tokens[~np.repeat(slow, n_tokens)])
        return rows, sum_segments(lengths, np.where(slow, 0, n_tokens)), np.flatnonzero(slow).tolist()

    def _match_uncached(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64], list[int]]:
        rows, lengths, slow = array("i"), array("q"), []
        row = self._rows.__getitem__
        for number, text in enumerate(texts):
            words = self._split(text)
            if words is None:
                slow.append(number)
                words = []
            rows.extend(map(row, words))
            lengths.append(len(words))
        return np.array(rows, np.int32), np.array(lengths, np.int64), slow

    def _add_tokens(self, new: Sequence[str]) -> None:
        words, owners, plain = self._locate(new)
        first, lengths = len(self._cache.row), np.bincount(owners, minlength=len(new))
        for column, table in enumerate(self._cache.tables):
            table.extend(words[:, column], lengths)
        self._cache.grow(len(new))
        self._cache.row[first:] = first + np.arange(len(new))
        self._cache.plain[first:] = plain | [not token for token in new]  # no word between two spaces

    def _split(self, text: str) -> list[str] | None:
        folded = self._fold_plain(text)
        return None if folded is None else folded[0].findall(folded[1])

    def _fold_plain(self, text: str) -> tuple[re.Pattern[str], str] | None:
        """The pattern of words and the folded text; None if the text is not plain."""
        if not text.isascii() and _NOT_PLAIN.search(text):
            return None
        pattern, text = self._fold(text)
        if self._term_parts and not self._term_parts.isdisjoint(_ALPHANUMERIC.findall(text)):
            return None
        if self._punctuation and self._punctuation.search(text):
            return None
        return pattern, text

    def _fold(self, text: str) -> tuple[re.Pattern[str], str]:
        pattern, text = (_ASCII_WORD, text) if text.isascii() else (_LATIN_WORD, text.replace("’", "'"))
        return pattern, text.lower() if self._lowercase else text


class _RowLookup(dict[str, int]):
    def __missing__(self, word: str) -> int:
        return -1
