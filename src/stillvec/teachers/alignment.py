"""Subword tokens → words by character offsets, exact for WordPiece, byte-level BPE and SentencePiece alike."""

import numpy as np
from numpy.typing import NDArray

from stillvec.teachers.subword_tokenizer import SubwordTokens
from stillvec.vocabulary import WordSpans

_STRIDE = 1 << 32  # longer than any text: character positions of all texts share one number line


def align(tokens: SubwordTokens, words: WordSpans) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs (token, word) that share a character, ordered by word, then token.

    A token that covers several words belongs to each of them; one that covers none (a full stop, a space) to no word.
    """
    text = np.repeat(np.arange(len(tokens.lengths)), tokens.lengths) * _STRIDE
    token_start, token_end = text + tokens.starts, text + tokens.ends
    word_start = words.text_index.astype(np.int64) * _STRIDE + words.starts
    word_end = words.text_index.astype(np.int64) * _STRIDE + words.ends
    first = np.searchsorted(word_end, token_start, side="right")  # first word that ends after the token begins
    last = np.searchsorted(word_start, token_end, side="left")  # one past the last that begins before it ends
    n_words = np.where(token_end > token_start, np.maximum(last - first, 0), 0)  # words that each token covers
    token = np.repeat(np.arange(len(n_words)), n_words)
    word = np.repeat(first, n_words) + _ranges(n_words)
    order = np.argsort(word, kind="stable")
    return token[order], word[order]


def _ranges(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, … n-1 for each n of `lengths`, concatenated."""
    ends = np.cumsum(lengths)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - lengths, lengths)
