"""Texts → subword tokens and the words they belong to, tokenizing each distinct whitespace-separated string only once.

A corpus repeats itself: two million strings between whitespace ("house,", "the") are ninety thousand distinct ones.
Where a tokenizer splits its text on whitespace, as all common kinds do, the tokens and words of a text are those of its
strings, concatenated. Where it also splits on punctuation, as BERT's does, those of a new string are those of its
letters and punctuation ("sea-shore,"). Texts for which that may not hold (a multiword term, non-Latin letters, unusual
whitespace) are tokenized as a whole, as one string that is not cached.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stillvec.teachers import SubwordTokenizer, SubwordTokens, align
from stillvec.vocabulary import WordMatcher, WordSpans
from stillvec.vocabulary.token_cache import TokenCache, sum_segments

Ints = NDArray[np.int64]
_JOINED = 256  # new strings that are tokenized as one text
_PUNCTUATION = r"-—–,;:!?\"()\[\]“”…"
_EDGES = rf"[{_PUNCTUATION}.'‘’]"  # a full stop or an apostrophe joins the letters around it
_SPLITTABLE = re.compile(rf"{_EDGES}*[A-Za-z]+(?:[{_PUNCTUATION}]+[A-Za-z]+)*{_EDGES}*")
_PARTS = re.compile("[A-Za-z]+|[^A-Za-z]+")


@dataclass(frozen=True)
class TokenizedTexts:
    """Texts as flat arrays; a link is a pair of a token and a word that it belongs to."""

    token_ids: NDArray[np.int32]  # (P,)
    n_tokens: Ints  # (T,) of each text
    word_token: Ints  # (K,) the token of each link, ordered by word
    n_links: Ints  # (T,) of each text
    tokens_per_word: Ints  # (W,) at least one
    word_id: NDArray[np.int32]  # (W,) row in the vocabulary, -1: out of vocabulary
    n_words: Ints  # (T,) of each text
    sentence_in_paragraph: Ints | None = None  # (W,) where the texts are whole paragraphs


def align_words(tokens: SubwordTokens, spans: WordSpans) -> tuple[TokenizedTexts, NDArray[np.bool_]]:
    """Tokenized texts, and which words have a token: a tokenizer may drop all letters of one."""
    token, word = align(tokens, spans)
    tokens_per_word = np.bincount(word, minlength=len(spans.ids))
    present = tokens_per_word > 0
    n_texts = len(tokens.lengths)
    n_words = np.bincount(spans.text_index[present], minlength=n_texts)
    n_links = np.bincount(spans.text_index[word], minlength=n_texts)
    texts = TokenizedTexts(
        tokens.ids, tokens.lengths, token, n_links, tokens_per_word[present], spans.ids[present], n_words
    )
    return texts, present


def tokenize_paragraphs(
    texts: Sequence[str], spans: WordSpans, tokenizer: SubwordTokenizer, ends: Sequence[Sequence[int]]
) -> TokenizedTexts:
    """Whole paragraphs; `ends` are the ends of each paragraph's sentences, in characters."""
    tokenized, present = align_words(tokenizer.encode(texts), spans)
    return replace(tokenized, sentence_in_paragraph=_sentence_numbers(spans, ends)[present])


def _sentence_numbers(spans: WordSpans, ends: Sequence[Sequence[int]]) -> Ints:
    """The number, inside its paragraph, of the sentence in which each word begins."""
    longest = max(1, *(text_ends[-1] + 1 for text_ends in ends if text_ends), int(spans.ends.max(initial=0)))
    last = np.cumsum([len(text_ends) for text_ends in ends])
    flat = np.array([text * longest + end for text, text_ends in enumerate(ends) for end in text_ends], np.int64)
    sentence = np.searchsorted(flat, spans.text_index.astype(np.int64) * longest + spans.starts, side="right")
    first = np.concatenate([np.zeros(1, np.int64), last[:-1]])
    return np.asarray(np.clip(sentence, first[spans.text_index], last[spans.text_index] - 1) - first[spans.text_index])


def split_punctuation(string: str) -> tuple[str, ...]:
    """Letters and the punctuation between them, if the tokens of the string are theirs; else nothing."""
    return () if string.isalpha() or not _SPLITTABLE.fullmatch(string) else tuple(_PARTS.findall(string))


class CachingTokenizer:
    """Tokenizes texts with a cache of strings; the result does not depend on what is in the cache."""

    def __init__(self, tokenizer: SubwordTokenizer, matcher: WordMatcher) -> None:
        self._tokenizer, self._matcher = tokenizer, matcher
        self._on_whitespace = matcher.splits_on_whitespace and tokenizer.splits_on_whitespace
        self._on_punctuation = self._on_whitespace and tokenizer.splits_on_punctuation
        self._cache = TokenCache(4)  # token ids, links, word ids, tokens per word

    def tokenize(self, texts: Sequence[str]) -> TokenizedTexts:
        if not self._on_whitespace:
            return self._tokenize_whole(texts)
        rows, n_strings, slow = self._cache.look_up(texts, self._add_strings)
        if not slow.any():
            return self._concatenate(rows, n_strings)
        n_cached, slow_texts = len(self._cache.tables[0]), np.flatnonzero(slow)
        starts = np.cumsum(n_strings) - n_strings
        rows[starts[slow_texts]] = self._store(self._tokenize_whole([texts[text] for text in slow_texts.tolist()]))
        first = np.zeros(len(rows), bool)
        first[starts[slow_texts]] = True
        result = self._concatenate(rows[first | ~np.repeat(slow, n_strings)], np.where(slow, 1, n_strings))
        for column in self._cache.tables:
            column.truncate(n_cached)
        return result

    def _tokenize_whole(self, texts: Sequence[str]) -> TokenizedTexts:
        return align_words(self._tokenizer.encode(texts), self._matcher.match(texts))[0]

    def _add_strings(self, new: Sequence[str]) -> None:
        """Tokenize new strings: from their letters and punctuation where that is allowed, else by the tokenizer."""
        cache = self._cache
        first = len(cache.plain)
        split = [split_punctuation(string) if self._on_punctuation else () for string in new]
        n_parts = np.fromiter(map(len, split), np.int64, len(new))
        parts = np.fromiter((cache.interner[part] for string in split for part in string), np.int64, int(n_parts.sum()))
        more = cache.interner.pop_new()
        cache.grow(len(new) + len(more))
        unsplit = [string for string, pieces in zip(new, split, strict=True) if not pieces] + more
        if unsplit:
            where = first + np.concatenate([np.flatnonzero(n_parts == 0), len(new) + np.arange(len(more))])
            spans, cache.plain[where] = self._matcher.match_tokens(unsplit)
            cache.row[where] = self._store(align_words(self._tokens(unsplit, cache.plain[where]), spans)[0])
        if len(parts):
            where, n_parts = first + np.flatnonzero(n_parts), n_parts[n_parts > 0]
            cache.row[where] = self._store(self._concatenate(cache.row[parts], n_parts))
            cache.plain[where] = sum_segments(~cache.plain[parts], n_parts) == 0

    def _tokens(self, strings: Sequence[str], plain: NDArray[np.bool_]) -> SubwordTokens:
        """The tokens of plain strings, many of them joined to one text, which is faster; other strings get none."""
        which = np.flatnonzero(plain)
        groups = [
            [strings[index] for index in which[start : start + _JOINED].tolist()]
            for start in range(0, len(which), _JOINED)
        ]
        tokens = self._tokenizer.encode([" ".join(group) for group in groups])
        lengths = np.fromiter((len(string) + 1 for group in groups for string in group), np.int64, len(which))
        text = np.repeat(np.arange(len(groups)), tokens.lengths)
        first = np.cumsum(lengths) - lengths  # (N,) of the plain strings, in all texts concatenated
        text_start = first[::_JOINED][text]
        last = text_start + np.maximum(tokens.ends, 1)  # the space before a string belongs to it
        string = np.searchsorted(first, last, side="right") - 1  # (P,)
        offset = (text_start - first[string]).astype(np.int32)
        n_tokens = np.zeros(len(strings), np.int64)
        n_tokens[which] = np.bincount(string, minlength=len(which))
        return SubwordTokens(tokens.ids, np.maximum(tokens.starts + offset, 0), tokens.ends + offset, n_tokens)

    def _store(self, texts: TokenizedTexts) -> Ints:
        """Append texts to the cache; the numbers of their rows."""
        token_ids, links, word_ids, tokens_per_word = self._cache.tables
        first = len(token_ids)
        inside = texts.word_token - np.repeat(np.cumsum(texts.n_tokens) - texts.n_tokens, texts.n_links)
        token_ids.extend(texts.token_ids, texts.n_tokens)
        links.extend(inside, texts.n_links)
        word_ids.extend(texts.word_id, texts.n_words)
        tokens_per_word.extend(texts.tokens_per_word, texts.n_words)
        return first + np.arange(len(texts.n_tokens))

    def _concatenate(self, rows: Ints, n_strings: Ints) -> TokenizedTexts:
        """Texts of `n_strings` cached strings each."""
        (token_ids, n_tokens), (inside, n_links), (word_ids, n_words), (tokens_per_word, _) = (
            column.take(rows) for column in self._cache.tables
        )
        word_token = np.asarray(inside + np.repeat(np.cumsum(n_tokens) - n_tokens, n_links), np.int64)
        n_tokens, n_links, n_words = (sum_segments(counts, n_strings) for counts in (n_tokens, n_links, n_words))
        return TokenizedTexts(
            token_ids, n_tokens, word_token, n_links, tokens_per_word.astype(np.int64), word_ids, n_words
        )
