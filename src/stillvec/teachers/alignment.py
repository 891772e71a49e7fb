"""Pieces → words by character offsets, exact for WordPiece, byte-level BPE and SentencePiece alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stillvec.teachers.subword_tokenizer import Pieces
from stillvec.vocabulary import WordSpans

_STRIDE = 1 << 32  # no text is as long: texts laid end to end on one line of numbers


def align(pieces: Pieces, found: WordSpans) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs (piece, word) that share a character, ordered by word, then piece.

    A piece that covers several words belongs to each of them, one that covers none (a stop, a space) to no word.
    """
    text = np.repeat(np.arange(len(pieces.lengths)), pieces.lengths) * _STRIDE
    piece_start, piece_end = text + pieces.starts, text + pieces.ends
    word_start = found.text.astype(np.int64) * _STRIDE + found.starts
    word_end = found.text.astype(np.int64) * _STRIDE + found.ends
    first = np.searchsorted(word_end, piece_start, side="right")  # first word that ends after the piece begins
    last = np.searchsorted(word_start, piece_end, side="left")  # one past the last that begins before it ends
    shared = np.where(piece_end > piece_start, np.maximum(last - first, 0), 0)
    piece = np.repeat(np.arange(len(shared)), shared)
    word = np.repeat(first, shared) + _counted(shared)
    order = np.argsort(word, kind="stable")
    return piece[order], word[order]


def _counted(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, … n-1 for each n of `lengths`, one after the other."""
    ends = np.cumsum(lengths)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - lengths, lengths)
