"""Tokenized texts → batches for the teacher: windows over long sentences, rows that are padded or packed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stillvec.encoding.caching_tokenizer import TokenizedTexts
from stillvec.teachers import SubwordTokenizer
from stillvec.vocabulary.token_cache import concatenate_ranges

Ints = NDArray[np.int64]
_SEGMENT = 64  # tokens summed sequentially; a frequent word has many segments, which are summed in parallel
_NARROW = 128  # tokens per row that holds several sentences; only longer sentences get wider rows
_ROW_MULTIPLE = 32  # a GPU gets batches of few shapes (`teachers.teacher`); the last one is padded
_MIN_LENGTH_RATIO = 0.8  # shortest over longest sentence of a padded batch; lower means mostly padding


@dataclass(frozen=True)
class Batch:
    """Sentences for one forward pass, and which state belongs to which word."""

    ids: NDArray[np.int32]  # (B, T) token ids
    lengths: NDArray[np.int32]  # (B,) special tokens included
    position_ids: NDArray[np.int32]  # (B, T) position in the sentence where rows are packed; else (0, 0)
    token_index: NDArray[np.int32]  # (P,) each token's index in the flattened (B * T) states
    tokens_per_sentence: NDArray[np.int32]  # (S,)
    word_token_index: NDArray[np.int32]  # (K,) indices of each word's tokens, ordered by word
    tokens_per_word: NDArray[np.int32]  # (W,)
    word_id: NDArray[np.int32]  # (W,) row in the vocabulary, -1: out of vocabulary
    word_sentence: NDArray[np.int32]  # (W,)
    sentence_in_paragraph: NDArray[np.int32]  # (W,) of words in whole paragraphs; else -1
    segment_token_index: NDArray[np.int32]  # (L,) indices of the tokens of known words, ordered by word id
    segment_tokens_per_word: NDArray[np.int32]  # (L,) number of tokens of that occurrence of the word
    segment_start: NDArray[np.int32]  # (G,) first of the L of each segment; a segment belongs to one word
    segment_word_id: NDArray[np.int32]  # (G,)


def make_batches(
    texts: TokenizedTexts, tokenizer: SubwordTokenizer, *, window: int, pad: int, budget: int, packed: bool = False
) -> Iterator[Batch]:
    """Batches of at most `budget` tokens, padding included; no sentence is split over two batches.

    `window` is the longest row, special tokens included. Packed rows hold several sentences; otherwise each sentence
    has rows of its own, and sentences of similar length go together.
    """
    maker = _BatchMaker(texts, tokenizer, window, pad)
    remaining = texts.n_tokens > 0
    if packed:
        single = remaining & (maker.rows_per_sentence == 1)
        yield from maker.iterate_packed(np.flatnonzero(single), budget)
        remaining &= ~single
    yield from maker.iterate_padded(remaining, budget)


class _Layout(NamedTuple):
    """Where windows go in a batch."""

    row: Ints
    column: Ints  # of the first token
    n_rows: int
    width: int
    packed: bool = False


class _Windows(NamedTuple):
    """Rows of at most `size` tokens over sentences; most sentences are one row."""

    sentence: Ints  # (R,) ascending
    start: Ints  # (R,) first token, counted in its sentence
    length: Ints  # (R,)
    owner: Ints  # (P,) the one row that owns the token: where windows overlap, the more central one

    @classmethod
    def over(cls, lengths: Ints, size: int) -> _Windows:
        if (lengths <= size).all():
            sentences = np.arange(len(lengths))
            return cls(sentences, np.zeros_like(sentences), lengths, np.repeat(sentences, lengths))
        rows: list[tuple[int, int, int]] = []
        owners: list[Ints] = []
        for sentence, length in enumerate(lengths.tolist()):
            starts = window_starts(length, size)
            middles = [(a + b + size) // 2 for a, b in pairwise(starts)]  # of each overlap
            owners.append(np.repeat(len(rows) + np.arange(len(starts)), np.diff([0, *middles, length])))
            rows.extend((sentence, start, min(size, length - start)) for start in starts)
        sentence, start, length = np.array(rows, np.int64).T
        return cls(sentence, start, length, np.concatenate(owners))


class _BatchMaker:
    def __init__(self, texts: TokenizedTexts, tokenizer: SubwordTokenizer, window: int, pad: int) -> None:
        self.texts, self.pad = texts, pad
        self.prefix, self.suffix = tokenizer.prefix, tokenizer.suffix
        self.n_special = len(self.prefix) + len(self.suffix)
        self.first_token, self.first_word = _starts(texts.n_tokens), _starts(texts.n_words)
        self.first_link = _starts(texts.n_links)
        self.windows = _Windows.over(texts.n_tokens, window - self.n_special)
        self.rows_per_sentence = np.bincount(self.windows.sentence, minlength=len(texts.n_tokens))
        self.first_row = _starts(self.rows_per_sentence)

    def iterate_padded(self, chosen: NDArray[np.bool_], budget: int) -> Iterator[Batch]:
        longest = np.zeros(len(chosen), np.int64)
        np.maximum.at(longest, self.windows.sentence, self.windows.length)
        order = np.argsort(-longest, kind="stable")
        order = order[chosen[order]]
        start = 0
        while start < len(order):
            width = int(longest[order[start]]) + self.n_special
            size = np.cumsum(self.rows_per_sentence[order[start : start + max(1, budget // width)]]) * width
            end = start + max(1, int(np.searchsorted(size, budget, side="right")))
            similar = int(
                np.searchsorted(-longest[order[start:end]], -_MIN_LENGTH_RATIO * (width - self.n_special), side="right")
            )
            enough = int(np.searchsorted(size, budget // 16))
            end = min(end, start + max(1, similar, enough))
            yield self._batch(np.sort(order[start:end]))
            start = end

    def iterate_packed(self, sentences: Ints, budget: int) -> Iterator[Batch]:
        """Sentences of one window each: first those that fit into narrow rows, then the others."""
        lengths = self.texts.n_tokens[sentences] + self.n_special
        for narrow in (True, False):
            chosen = np.flatnonzero((lengths <= _NARROW) == narrow)
            if not len(chosen):
                continue
            width = _NARROW if narrow else int(lengths[chosen].max())
            row, column = pack_rows(lengths[chosen], width)
            n_rows, limit = int(row.max()) + 1, max(1, budget // width)
            if limit > 2 * _ROW_MULTIPLE:
                limit -= limit % _ROW_MULTIPLE
            batch_rows = -(-n_rows // -(-n_rows // limit))  # the same number in each batch
            if narrow and batch_rows > 2 * _ROW_MULTIPLE:
                batch_rows = -(-batch_rows // _ROW_MULTIPLE) * _ROW_MULTIPLE
            for first in range(0, n_rows, batch_rows):
                inside = np.flatnonzero((row >= first) & (row < first + batch_rows))  # ascending, as sentences are
                layout = _Layout(row[inside] - first, column[inside], batch_rows, width, packed=True)
                yield self._batch(sentences[chosen[inside]], layout)

    def _batch(self, sentences: Ints, layout: _Layout | None = None) -> Batch:
        """Sentences in ascending order; without a layout, each of their windows is one row of the batch."""
        texts, windows = self.texts, self.windows
        rows = concatenate_ranges(*_slices(self.first_row, sentences))
        lengths = windows.length[rows]
        if layout is None:
            width = int(lengths.max()) + self.n_special
            layout = _Layout(np.arange(len(rows)), np.zeros_like(rows), len(rows), width)
        tokens = concatenate_ranges(*_slices(self.first_token, sentences))
        row_start = np.zeros(len(windows.sentence), np.int64)
        row_start[rows] = layout.row * layout.width + layout.column + len(self.prefix)
        row_start -= self.first_token[windows.sentence] + windows.start
        token_index = row_start[windows.owner[tokens]] + tokens
        index_of = np.zeros(len(texts.token_ids), np.int64)
        index_of[tokens] = token_index
        words = concatenate_ranges(*_slices(self.first_word, sentences))
        word_token_index = index_of[texts.word_token[concatenate_ranges(*_slices(self.first_link, sentences))]]
        tokens_per_word, word_id = texts.tokens_per_word[words], texts.word_id[words]
        paragraph_sentences = texts.sentence_in_paragraph
        arrays = {
            "ids": self._ids(rows, layout),
            "lengths": np.bincount(layout.row, lengths + self.n_special, layout.n_rows),
            "position_ids": self._position_ids(lengths, layout),
            "token_index": token_index,
            "tokens_per_sentence": texts.n_tokens[sentences],
            "word_token_index": word_token_index,
            "tokens_per_word": tokens_per_word,
            "word_id": word_id,
            "word_sentence": np.repeat(np.arange(len(sentences)), texts.n_words[sentences]),
            "sentence_in_paragraph": (
                np.full(len(words), -1, np.int32) if paragraph_sentences is None else paragraph_sentences[words]
            ),
            **_segments(word_token_index, tokens_per_word, word_id),
        }
        return Batch(**{name: array.astype(np.int32, copy=False) for name, array in arrays.items()})

    def _ids(self, rows: Ints, layout: _Layout) -> NDArray[np.int32]:
        ids = np.full((layout.n_rows, layout.width), self.pad, np.int32)
        lengths, column = self.windows.length[rows], layout.column + len(self.prefix)
        start = self.first_token[self.windows.sentence[rows]] + self.windows.start[rows]
        inside = concatenate_ranges(np.zeros_like(lengths), lengths)
        tokens = self.texts.token_ids[np.repeat(start, lengths) + inside]
        ids[np.repeat(layout.row, lengths), np.repeat(column, lengths) + inside] = tokens
        for offset, token in enumerate(self.prefix):
            ids[layout.row, layout.column + offset] = token
        for offset, token in enumerate(self.suffix):
            ids[layout.row, column + lengths + offset] = token
        return ids

    def _position_ids(self, lengths: Ints, layout: _Layout) -> NDArray[np.int32]:
        if not layout.packed:
            return np.zeros((0, 0), np.int32)
        positions = np.zeros((layout.n_rows, layout.width), np.int32)
        full = lengths + self.n_special
        inside = concatenate_ranges(np.zeros_like(full), full)
        positions[np.repeat(layout.row, full), np.repeat(layout.column, full) + inside] = inside
        return positions


def pack_rows(lengths: Ints, width: int) -> tuple[Ints, Ints]:
    """Best-fit-decreasing bin packing: the row and the first column of each length."""
    row, column = np.zeros(len(lengths), np.int64), np.zeros(len(lengths), np.int64)
    open_rows: list[list[int]] = [[] for _ in range(width + 1)]  # by the space they have left
    spaces, n_rows = 0, 0  # bit s of `spaces`: there is a row with space s
    order = np.argsort(-lengths, kind="stable")
    cells: list[tuple[int, int]] = []
    for length in lengths[order].tolist():
        fitting = spaces >> length
        if fitting:
            space = length + (fitting & -fitting).bit_length() - 1
            chosen = open_rows[space].pop()
            spaces &= ~(0 if open_rows[space] else 1 << space)
        else:
            chosen, space, n_rows = n_rows, width, n_rows + 1
        cells.append((chosen, width - space))
        open_rows[space - length].append(chosen)
        spaces |= 1 << (space - length)
    if cells:
        row[order], column[order] = np.array(cells, np.int64).T
    return row, column


def _segments(word_token_index: Ints, tokens_per_word: Ints, word_id: NDArray[np.int32]) -> dict[str, Ints]:
    """The tokens of known words ordered by word id, in segments that are summed and then added to the word's row."""
    word, n_tokens = np.repeat(word_id, tokens_per_word), np.repeat(tokens_per_word, tokens_per_word)
    order = _stable_order(word.astype(np.int64) + 1)[np.count_nonzero(word < 0) :]
    word = word[order]
    first = np.flatnonzero(np.diff(word, prepend=-1))
    n_segments = -(-np.diff(first, append=len(word)) // _SEGMENT)
    starts = np.repeat(first, n_segments) + _SEGMENT * concatenate_ranges(np.zeros_like(n_segments), n_segments)
    return {
        "segment_token_index": word_token_index[order],
        "segment_tokens_per_word": n_tokens[order],
        "segment_start": starts,
        "segment_word_id": word[starts],
    }


def _stable_order(numbers: Ints) -> Ints:
    """A stable argsort of non-negative numbers, 16 bits at a time: numpy uses a radix sort for those."""
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    while (numbers := numbers >> 16).any():
        order = order[np.argsort(numbers[order].astype(np.uint16), kind="stable")]
    return order


def _slices(starts: Ints, chosen: Ints) -> tuple[Ints, Ints]:
    return starts[chosen], starts[chosen + 1] - starts[chosen]


def _starts(lengths: Ints) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def window_starts(length: int, size: int) -> list[int]:
    """Windows of `size` tokens that overlap by at least a quarter; the last one ends with the text."""
    if length <= size:
        return [0]
    step = max(1, size - size // 4)
    return [*range(0, length - size, step), length - size]
