"""The positions of words in texts, by the Rust `tokenizers` library.

A word is a sequence of letters, marks, digits and underscores of any script. It may contain an apostrophe (don't), a
full stop (U.S, 3.5), a comma between digits (1,000) and the joiners of Persian, Indic and Hebrew, but does not begin
with these or with a mark. A possessive "'s" and an elided "l'", "d'", "qu'" are words of their own. Hyphens separate
words. A word of the vocabulary that the pattern would split ("new york", "e-mail", "c++") is a multi-word term and is
matched as a whole.

Plain texts need not go through Rust: see `latin_matcher.py`, and `token_cache.py` for a picture.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any
from unicodedata import category, is_normalized

import numpy as np
from numpy.typing import NDArray

from stillvec.vocabulary.folding import fold, normalizer, replace_surrogates
from stillvec.vocabulary.latin_matcher import LatinWordMatcher
from stillvec.vocabulary.segmenters import SPACES, WordBreaker, to_original
from stillvec.vocabulary.word_index import Vocabulary

_FIRST = r"[\p{L}\p{N}_]"
_LETTER = r"[\p{L}\p{M}\p{N}_\u200C\u200D]"
_JOINER = r"(?:['’](?![sS](?!" + _LETTER + r"))|[.·׳״]|(?<=\p{N}),(?=\p{N}))"
_PATTERN = (
    r"(?:[cdjlmnstCDJLMNST]|[qQ]u)['’](?=\p{L}{2})"  # l'homme, d'être, qu'il
    rf"|(?:\A|(?<={_LETTER}))['’][sS](?!{_LETTER})"  # the dog's; \A: after a multi-word term
    rf"|{_FIRST}{_LETTER}*(?:{_JOINER}{_FIRST}{_LETTER}*)*"
)
_UNKNOWN = "\x00"  # in no text


@dataclass(frozen=True)
class WordSpans:
    """The words of several texts, concatenated."""

    ids: NDArray[np.int32]  # (W,) row in the vocabulary, -1 if out of vocabulary
    starts: NDArray[np.int32]  # (W,) first character
    ends: NDArray[np.int32]  # (W,) one past the last
    text_index: NDArray[np.int32]  # (W,) which of the texts


class WordMatcher:
    """Matches the words of texts with the rows of a vocabulary.

    The tables of the Rust tokenizer are built at once, for processes to share; with `lazy`, when they are first needed.
    """

    def __init__(self, vocabulary: Vocabulary, *, lazy: bool = False) -> None:
        self._vocabulary = vocabulary
        self._breaker = WordBreaker(vocabulary.segmenter, vocabulary.terms)
        if not lazy:
            _ = self._tokenizer
            self._breaker.load()

    @cached_property
    def _tokenizer(self) -> Any:
        return word_tokenizer(self._vocabulary.words, self._vocabulary.lowercase)

    def match(self, texts: Sequence[str]) -> WordSpans:
        """The words of the texts with their positions."""
        broken, breaks = self._breaker.insert_all(texts)
        encodings = _encode(self._tokenizer.encode_batch, broken)
        ids, text = _flat_ids(encodings)
        offsets = chain.from_iterable(chain.from_iterable(e.offsets for e in encodings))
        spans = np.fromiter(offsets, np.int32, 2 * len(ids)).reshape(-1, 2)
        starts, ends = spans[:, 0].copy(), spans[:, 1].copy()
        for number, string in enumerate(texts):
            first, last = np.searchsorted(text, [number, number + 1])
            if (inserted := breaks[number]) is not None:
                starts[first:last] = to_original(starts[first:last], inserted)
                ends[first:last] = to_original(ends[first:last], inserted)
            if not is_normalized("NFC", string):
                ends[first:last] = [extend_over_marks(string, end) for end in ends[first:last].tolist()]
        return WordSpans(ids, starts, ends, text)

    def match_rows(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """(row, text) of each word: many times as fast as `match` for plain texts."""
        ids, lengths, slow = self._latin.match_rows(texts)
        if slow:
            slow_ids, slow_text = self._match_rows_slow([texts[number] for number in slow])
            slow_lengths = np.bincount(slow_text, minlength=len(slow))
            ids = np.insert(ids, np.repeat(np.cumsum(lengths)[slow], slow_lengths), slow_ids)
            lengths[slow] = slow_lengths
        return ids, np.repeat(np.arange(len(texts), dtype=np.int32), lengths)

    def _match_rows_slow(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        broken, _ = self._breaker.insert_all(texts)
        return _flat_ids(_encode(self._tokenizer.encode_batch_fast, broken))

    @property
    def splits_on_whitespace(self) -> bool:
        """Whether the words of a text are those of its whitespace tokens, if all of these are plain."""
        return self._latin.splits_on_whitespace

    def match_tokens(self, tokens: Sequence[str]) -> tuple[WordSpans, NDArray[np.bool_]]:
        """The words of whitespace tokens inside a text, and which tokens are plain; others have no words."""
        words, token, plain = self._latin.match_tokens(tokens)
        return WordSpans(words[:, 0], words[:, 1], words[:, 2], token), plain

    @cached_property
    def _latin(self) -> LatinWordMatcher:
        words, lowercase = self._vocabulary.words, self._vocabulary.lowercase
        rows = _fold_words(words, lowercase) | dict(self._vocabulary.index)
        return LatinWordMatcher(rows, multiword_terms(words), lowercase)


def _encode(encode: Callable[..., list[Any]], texts: Sequence[str]) -> list[Any]:
    try:
        return encode(texts, add_special_tokens=False)
    except (TypeError, UnicodeEncodeError):
        return encode([*map(replace_surrogates, texts)], add_special_tokens=False)


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
    folded = {word: row + 1 for word, row in _fold_words(rows, lowercase).items()}
    tokenizer = Tokenizer(WordLevel(folded | rows | {_UNKNOWN: 0}, unk_token=_UNKNOWN))
    tokenizer.normalizer = normalizer(lowercase)
    tokenizer.pre_tokenizer = _splitter()
    # of terms that are the same when folded, such as "''" and "’’", tokenizers would match either
    terms = {(key := fold(term, lowercase)): key if key in rows else term for term in multiword_terms(rows)}
    if terms:
        tokenizer.add_tokens([AddedToken(term, single_word=True, normalized=True) for term in terms.values()])
    return tokenizer


def _fold_words(words: Iterable[str], lowercase: bool) -> dict[str, int]:
    """Rows of folded words: vectors from elsewhere may contain "don’t" or a decomposed "é"."""
    return {fold(word, lowercase): row for row, word in enumerate(words) if not word.isascii()}


def multiword_terms(words: Iterable[str]) -> list[str]:
    """The words that the pattern splits, whatever follows them: "new york", "e-mail", "c++"."""
    split = _splitter().pre_tokenize_str
    candidates = [word for word in words if not word.isalpha() and word.strip()]
    divided = [word for word in candidates if [part for part, _ in split(word)] != [word]]
    return [word for word in divided if split(word + "aa")[:1] != [(word, (0, len(word)))]]  # "l'" needs its noun


def extend_over_marks(text: str, end: int) -> int:
    """The end of a word with its combining marks: in a decomposed "é" `tokenizers` stops after the "e"."""
    while end < len(text) and (category(text[end])[0] == "M" or "\u1160" <= text[end] <= "\u11ff"):
        end += 1
    return end


@lru_cache(maxsize=1)
def _splitter() -> Any:
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import Split

    return Split(Regex(_PATTERN), "removed", invert=True)


def select_words(tokens: Iterable[str], lowercase: bool, segmenter: str = SPACES) -> list[str]:
    """The folded tokens of a tokenizer's vocabulary that are words and contain a letter."""
    folded = dict.fromkeys(fold(token, lowercase) for token in tokens if any(char.isalpha() for char in token))
    terms = {*multiword_terms(folded)}
    return WordBreaker(segmenter).select_whole([word for word in folded if word not in terms])
