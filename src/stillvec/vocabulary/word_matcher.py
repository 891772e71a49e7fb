"""Where words stand in a text, at the speed of the Rust `tokenizers` library.

A word is a run of letters, marks, digits and underscores of any script. Inside it may stand an apostrophe
(don't), a full stop (U.S, 3.5), a comma between digits (1,000), the joiners of Persian, Indic and Hebrew;
it begins with none of these and with no mark. A possessive "'s" and an elided "l'", "d'", "qu'" are words
of their own. Hyphens part words. What the pattern would part, but the vocabulary holds as one word ("new
york", "e-mail", "c++"), is kept whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any
from unicodedata import category, is_normalized

import numpy as np
from numpy.typing import NDArray

from stillvec.vocabulary.folding import fold, normalizer
from stillvec.vocabulary.latin_matcher import LatinWordMatcher
from stillvec.vocabulary.word_index import Vocabulary

_FIRST = r"[\p{L}\p{N}_]"
_LETTER = r"[\p{L}\p{M}\p{N}_\u200C\u200D]"
_JOINER = r"(?:['’](?![sS](?!" + _LETTER + r"))|[.·׳״]|(?<=\p{N}),(?=\p{N}))"
_PATTERN = (
    r"(?:[cdjlmnstCDJLMNST]|[qQ]u)['’](?=\p{L}{2})"  # l'homme, d'être, qu'il
    rf"|(?:\A|(?<={_LETTER}))['’][sS](?!{_LETTER})"  # the dog's; \A: a kept term may stand before
    rf"|{_FIRST}{_LETTER}*(?:{_JOINER}{_FIRST}{_LETTER}*)*"
)
_UNKNOWN = "\x00"  # a word no text can hold


@dataclass(frozen=True)
class WordSpans:
    """The words of several texts, one after the other."""

    ids: NDArray[np.int32]  # (W,) row in the vocabulary, -1 for a word it does not have
    starts: NDArray[np.int32]  # (W,) first character
    ends: NDArray[np.int32]  # (W,) one past the last
    text: NDArray[np.int32]  # (W,) which of the texts


class WordMatcher:
    """Finds the words of texts and their rows in a vocabulary.

    The tables of Rust are made at once, for processes to share; with `only_rows`, when a text that is not plain comes.
    """

    def __init__(self, vocabulary: Vocabulary, *, only_rows: bool = False) -> None:
        self._vocabulary = vocabulary
        if not only_rows:
            _ = self._tokenizer

    @cached_property
    def _tokenizer(self) -> Any:
        return word_tokenizer(self._vocabulary.words, self._vocabulary.lowercase)

    def find(self, texts: Sequence[str]) -> WordSpans:
        encodings = self._tokenizer.encode_batch(texts, add_special_tokens=False)
        ids, text = _flat_ids(encodings)
        offsets = chain.from_iterable(chain.from_iterable(e.offsets for e in encodings))
        spans = np.fromiter(offsets, np.int32, 2 * len(ids)).reshape(-1, 2)
        starts, ends = spans[:, 0].copy(), spans[:, 1].copy()
        for number, each in enumerate(texts):
            if not is_normalized("NFC", each):
                first, last = np.searchsorted(text, [number, number + 1])
                ends[first:last] = [whole_end(each, end) for end in ends[first:last].tolist()]
        return WordSpans(ids, starts, ends, text)

    def rows(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Only (row of each word, its text): many times as fast as `find` where texts are plain."""
        ids, lengths, left = self._plain.rows(texts)
        if left:
            more, of = self._rows([texts[number] for number in left])
            place = np.repeat(np.cumsum(lengths)[left], np.bincount(of, minlength=len(left)))
            ids = np.insert(ids, place, more)
            lengths[left] = np.bincount(of, minlength=len(left))
        return ids, np.repeat(np.arange(len(texts), dtype=np.int32), lengths)

    def _rows(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        return _flat_ids(self._tokenizer.encode_batch_fast(texts, add_special_tokens=False))

    @property
    def parts_at_blanks(self) -> bool:
        """Whether the words of a text are those of its runs between blanks, if all of them are plain."""
        return self._plain.parts_at_blanks

    def find_in_runs(self, runs: Sequence[str]) -> tuple[WordSpans, NDArray[np.bool_]]:
        """The words of runs between blanks as they stand in a text; and which runs are plain: of others, none."""
        words, text, plain = self._plain.found(runs)
        return WordSpans(words[:, 0], words[:, 1], words[:, 2], text), plain

    @cached_property
    def _plain(self) -> LatinWordMatcher:
        words, lowercase = self._vocabulary.words, self._vocabulary.lowercase
        return LatinWordMatcher(
            _folded(words, lowercase) | dict(self._vocabulary.index), multiword_terms(words), lowercase
        )


def _flat_ids(encodings: Sequence[Any]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    lists = [encoding.ids for encoding in encodings]
    lengths = np.fromiter(map(len, lists), np.int64, len(lists))
    ids = np.fromiter(chain.from_iterable(lists), np.int32, int(lengths.sum()))
    ids -= 1
    return ids, np.repeat(np.arange(len(lists), dtype=np.int32), lengths)


def word_tokenizer(words: Iterable[str], lowercase: bool) -> Any:
    """A `tokenizers.Tokenizer` that gives row + 1 for each word of `words`, 0 for any other."""
    from tokenizers import AddedToken, Tokenizer
    from tokenizers.models import WordLevel

    rows = {word: row for row, word in enumerate(words, start=1)}
    folded = {word: row + 1 for word, row in _folded(rows, lowercase).items()}
    tokenizer = Tokenizer(WordLevel(folded | rows | {_UNKNOWN: 0}, unk_token=_UNKNOWN))
    tokenizer.normalizer = normalizer(lowercase)
    tokenizer.pre_tokenizer = _splitter()
    whole = [AddedToken(word, single_word=True, normalized=True) for word in multiword_terms(rows)]
    if whole:
        tokenizer.add_tokens(whole)
    return tokenizer


def _folded(words: Iterable[str], lowercase: bool) -> dict[str, int]:
    """Vectors made elsewhere may hold "don’t" or a decomposed "é"; a text's words are looked up folded."""
    return {fold(word, lowercase): row for row, word in enumerate(words) if not word.isascii()}


def multiword_terms(words: Iterable[str]) -> list[str]:
    """The words that the pattern would not give as one, whatever followed them."""
    split = _splitter().pre_tokenize_str
    suspects = [word for word in words if not word.isalpha() and word.strip()]
    alone = [word for word in suspects if [w for w, _ in split(word)] != [word]]
    return [word for word in alone if split(word + "aa")[:1] != [(word, (0, len(word)))]]  # "l'" needs its noun


def whole_end(text: str, end: int) -> int:
    """A word's end in a text that is not composed, where `tokenizers` points "é" at the "e" alone."""
    while end < len(text) and (category(text[end])[0] == "M" or "\u1160" <= text[end] <= "\u11ff"):
        end += 1
    return end


@lru_cache(maxsize=1)
def _splitter() -> Any:
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import Split

    return Split(Regex(_PATTERN), "removed", invert=True)


def own_words(tokens: Iterable[str], lowercase: bool) -> list[str]:
    """Of a tokenizer's tokens, those that are whole words with a letter in them, as a vocabulary writes them."""
    folded = dict.fromkeys(fold(token, lowercase) for token in tokens if any(char.isalpha() for char in token))
    apart = {*multiword_terms(folded)}
    return [word for word in folded if word not in apart]
