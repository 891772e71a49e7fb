"""Marked texts → rows of pieces, ready to be batched: windows for what is too long, every piece owned by one row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stillvec.encoding.caching_tokenizer import TokenizedTexts, align_words
from stillvec.teachers import SubwordTokenizer
from stillvec.vocabulary import WordSpans
from stillvec.vocabulary.token_cache import ranges

Ints = NDArray[np.int64]
_GROUP = 64  # pieces summed one after the other: of a frequent word, many groups are summed at once
_NARROW = 128  # pieces of a row that holds several sentences; only longer ones get wider rows
_ROUND = 32  # rows: a GPU gets batches of few shapes (`teachers.sdpa_backend`), the last one filled with padding
_ALIKE = 0.8  # the shortest sentence of a batch over its longest, or the batch is mostly padding


@dataclass(frozen=True)
class TextChunk:
    """Texts and the words in them that are looked at; without `found`, the words are still to be found."""

    texts: Sequence[str]  # sentences, or paragraphs
    found: WordSpans | None = None
    paragraphs: bool = False  # the texts are paragraphs,
    whole: bool = False  # which are not cut: the teacher reads each as one text, and its sentences are only marked
    passed: int = 0  # words of the corpus gone by with them, read or not, where only some are read


@dataclass(frozen=True)
class TokenizedChunk:
    """Many sentences as flat arrays. A row is a window of a sentence; most sentences are one row."""

    pieces: NDArray[np.int32]  # (P,) piece ids of all sentences, one after the other
    first_piece: Ints  # (S + 1,) where each sentence's pieces begin
    row_sentence: Ints  # (R,) ordered
    row_start: Ints  # (R,) first piece of the window, counted in its sentence
    row_length: Ints  # (R,)
    piece_row: Ints  # (P,) the one row that owns the piece
    link_piece: Ints  # (K,) pairs piece - word, ordered by word
    word_links: Ints  # (W,) pairs of each word
    word_id: NDArray[np.int32]  # (W,) row in the vocabulary, -1 unknown
    word_part: Ints  # (W,) the sentence inside a paragraph read whole; -1 elsewhere
    first_word: Ints  # (S + 1,) where each sentence's words begin
    first_link: Ints  # (S + 1,)


@dataclass(frozen=True)
class Batch:
    """Some sentences of a `TokenizedChunk`, padded or packed: what a teacher reads, and which state belongs to whom."""

    ids: NDArray[np.int32]  # (B, T)
    lengths: NDArray[np.int32]  # (B,) special tokens included
    places: NDArray[np.int32]  # (B, T) of each piece in its sentence, where rows hold several; else (0, 0)
    piece_place: NDArray[np.int32]  # (P,) place of each piece in the flattened (B * T) states
    sentence_pieces: NDArray[np.int32]  # (S,) pieces of each sentence
    link_place: NDArray[np.int32]  # (K,) places of each word's pieces, ordered by word
    word_links: NDArray[np.int32]  # (W,) pieces of each word
    word_id: NDArray[np.int32]  # (W,) -1 for a word outside the vocabulary
    word_sentence: NDArray[np.int32]  # (W,)
    word_part: NDArray[np.int32]  # (W,)
    sum_place: NDArray[np.int32]  # (L,) places of the pieces of known words, ordered by the word's row
    sum_share: NDArray[np.int32]  # (L,) how many pieces the word has there
    sum_start: NDArray[np.int32]  # (G,) where each group of them begins: one word's, not too many
    sum_id: NDArray[np.int32]  # (G,) the word's row


def tokenize(
    texts: Sequence[str], found: WordSpans, cutter: SubwordTokenizer, window: int, ends: Sequence[Sequence[int]] = ()
) -> TokenizedChunk:
    """Cut, align, and lay out windows of at most `window` pieces, special tokens included.

    `ends` are where the sentences of each text end, in characters, where the texts are paragraphs read whole.
    """
    cut, seen = align_words(cutter.encode(texts), found)
    return lay_out(cut, cutter, window, _parts(found, ends)[seen])


def lay_out(cut: TokenizedTexts, cutter: SubwordTokenizer, window: int, parts: Ints | None = None) -> TokenizedChunk:
    """`parts` are the sentences of the words, where the texts are paragraphs read whole."""
    room = window - len(cutter.prefix) - len(cutter.suffix)
    rows, piece_row = _windows(cut.lengths, room)
    return TokenizedChunk(
        cut.pieces,
        _starts(cut.lengths),
        *rows,
        piece_row,
        cut.link_piece,
        cut.word_links,
        cut.word_id,
        np.full(len(cut.word_id), -1, np.int64) if parts is None else parts,
        _starts(cut.words),
        _starts(cut.links),
    )


def batches(
    prepared: TokenizedChunk, cutter: SubwordTokenizer, pad: int, budget: int, *, packed: bool = False
) -> Iterator[Batch]:
    """At most `budget` pieces with padding, no sentence parted: several in a row, or one in each and of like length."""
    rows = np.bincount(prepared.row_sentence, minlength=len(prepared.first_piece) - 1)
    some = np.diff(prepared.first_piece) > 0
    if packed:
        single = some & (rows == 1)
        yield from _packed_batches(prepared, np.flatnonzero(single), cutter, pad, budget)
        some &= ~single
    yield from _padded_batches(prepared, some, rows, cutter, pad, budget)


def _padded_batches(
    prepared: TokenizedChunk, some: NDArray[np.bool_], rows: Ints, cutter: SubwordTokenizer, pad: int, budget: int
) -> Iterator[Batch]:
    specials = len(cutter.prefix) + len(cutter.suffix)
    longest = np.zeros(len(some), np.int64)
    np.maximum.at(longest, prepared.row_sentence, prepared.row_length)
    order = np.argsort(-longest, kind="stable")
    order = order[some[order]]
    begin = 0
    while begin < len(order):
        width = int(longest[order[begin]]) + specials
        taken = np.cumsum(rows[order[begin : begin + max(1, budget // width)]]) * width
        end = begin + max(1, int(np.searchsorted(taken, budget, side="right")))
        alike = int(np.searchsorted(-longest[order[begin:end]], -_ALIKE * (width - specials), side="right"))
        enough = int(np.searchsorted(taken, budget // 16))
        end = min(end, begin + max(1, alike, enough))
        yield _batch(prepared, np.sort(order[begin:end]), cutter, pad)
        begin = end


def _packed_batches(
    prepared: TokenizedChunk, sentences: Ints, cutter: SubwordTokenizer, pad: int, budget: int
) -> Iterator[Batch]:
    """Sentences of one row each: those that fit into narrow rows, then the others."""
    lengths = np.diff(prepared.first_piece)[sentences] + len(cutter.prefix) + len(cutter.suffix)
    for narrow in (True, False):
        here = np.flatnonzero((lengths <= _NARROW) == narrow)
        if not len(here):
            continue
        width = _NARROW if narrow else int(lengths[here].max())
        row, column = pack_rows(lengths[here], width)
        rows, most = int(row.max()) + 1, max(1, budget // width)
        if most > 2 * _ROUND:
            most -= most % _ROUND
        held = -(-rows // -(-rows // most))  # rows of a batch, as many in each
        if narrow and held > 2 * _ROUND:
            held = -(-held // _ROUND) * _ROUND
        for first in range(0, rows, held):
            inside = np.flatnonzero((row >= first) & (row < first + held))  # ascending, as sentences are
            layout = _Layout(row[inside] - first, column[inside], held, width, packed=True)
            yield _batch(prepared, sentences[here[inside]], cutter, pad, layout)


def pack_rows(lengths: Ints, width: int) -> tuple[Ints, Ints]:
    """A row and its first column for each length: the longest first, each where the least room is left for it."""
    row, column = np.zeros(len(lengths), np.int64), np.zeros(len(lengths), np.int64)
    open_rows: list[list[int]] = [[] for _ in range(width + 1)]  # by the room they have left
    rooms, number = 0, 0  # bit r: there is a row with room r
    order = np.argsort(-lengths, kind="stable")
    places: list[tuple[int, int]] = []
    for length in lengths[order].tolist():
        fitting = rooms >> length
        if fitting:
            room = length + (fitting & -fitting).bit_length() - 1
            here = open_rows[room].pop()
            rooms &= ~(0 if open_rows[room] else 1 << room)
        else:
            here, room, number = number, width, number + 1
        places.append((here, width - room))
        left = room - length
        open_rows[left].append(here)
        rooms |= 1 << left
    if places:
        row[order], column[order] = np.array(places, np.int64).T
    return row, column


class _Layout(NamedTuple):
    """Where the rows of a `TokenizedChunk` stand in a batch."""

    row: Ints
    column: Ints  # the first
    rows: int
    width: int
    packed: bool = False


def _batch(
    prepared: TokenizedChunk, sentences: Ints, cutter: SubwordTokenizer, pad: int, layout: _Layout | None = None
) -> Batch:
    """Sentences in ascending order; without a layout, each row of theirs is one of the batch."""
    rows = ranges(*_spans(_starts(np.bincount(prepared.row_sentence)), sentences))
    lengths = prepared.row_length[rows]
    before, after = len(cutter.prefix), len(cutter.suffix)
    full = lengths + before + after
    if layout is None:
        layout = _Layout(np.arange(len(rows)), np.zeros_like(rows), len(rows), int(full.max()))
    row, column, width = layout.row, layout.column, layout.width
    ids = np.full((layout.rows, width), pad, np.int32)
    start = prepared.first_piece[prepared.row_sentence[rows]] + prepared.row_start[rows]
    inside = ranges(np.zeros_like(lengths), lengths)
    ids[np.repeat(row, lengths), np.repeat(column + before, lengths) + inside] = prepared.pieces[
        np.repeat(start, lengths) + inside
    ]
    for offset, token in enumerate(cutter.prefix):
        ids[row, column + offset] = token
    for offset, token in enumerate(cutter.suffix):
        ids[row, column + before + lengths + offset] = token
    places = np.zeros((layout.rows, width) if layout.packed else (0, 0), np.int32)
    if layout.packed:
        counted = ranges(np.zeros_like(full), full)
        places[np.repeat(row, full), np.repeat(column, full) + counted] = counted

    pieces = ranges(*_spans(prepared.first_piece, sentences))
    here = np.zeros(len(prepared.row_sentence), np.int64)
    here[rows] = row * width + column + before
    owner = prepared.piece_row[pieces]
    place = here[owner] + pieces - prepared.first_piece[prepared.row_sentence[owner]] - prepared.row_start[owner]
    place_of = np.full(len(prepared.pieces), -1, np.int64)
    place_of[pieces] = place

    words = ranges(*_spans(prepared.first_word, sentences))
    held = np.diff(prepared.first_word)[sentences]
    links = place_of[prepared.link_piece[ranges(*_spans(prepared.first_link, sentences))]]
    word_links, word_id = prepared.word_links[words], prepared.word_id[words]
    small = (
        np.bincount(row, full, layout.rows),
        places,
        place,
        np.diff(prepared.first_piece)[sentences],
        links,
        word_links,
        word_id,
        np.repeat(np.arange(len(sentences)), held),
        prepared.word_part[words],
        *_groups(links, word_links, word_id),
    )
    return Batch(ids, *(array.astype(np.int32) for array in small))


def _groups(links: Ints, word_links: Ints, word_id: NDArray[np.int32]) -> tuple[Ints, Ints, Ints, Ints]:
    """The pieces of known words, word by word of the vocabulary: sums over groups, then one row added for each."""
    row, share = np.repeat(word_id, word_links), np.repeat(word_links, word_links)
    order = _ascending(row.astype(np.int64) + 1)[np.count_nonzero(row < 0) :]
    row = row[order]
    new = np.flatnonzero(np.diff(row, prepend=-1))
    held = np.diff(new, append=len(row))
    groups = -(-held // _GROUP)
    starts = np.repeat(new, groups) + _GROUP * ranges(np.zeros_like(groups), groups)
    return links[order], share[order], starts, row[starts]


def _ascending(numbers: Ints) -> Ints:
    """The order of numbers from 0 on, of like ones as they stand: by 16 bits at a time, which numpy does fastest."""
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    while (numbers := numbers >> 16).any():
        order = order[np.argsort(numbers[order].astype(np.uint16), kind="stable")]
    return order


def _parts(found: WordSpans, ends: Sequence[Sequence[int]]) -> Ints:
    """The number of the sentence, inside its text, that each word begins in; -1 in texts that are not parted."""
    if not ends:
        return np.full(len(found.ids), -1, np.int64)
    longest = max(1, *(each[-1] + 1 for each in ends if each), int(found.ends.max(initial=0)))
    last = np.cumsum([len(each) for each in ends])
    flat = np.array([text * longest + end for text, each in enumerate(ends) for end in each], np.int64)
    place = np.searchsorted(flat, found.text.astype(np.int64) * longest + found.starts, side="right")
    first = np.concatenate([np.zeros(1, np.int64), last[:-1]])
    return np.asarray(np.clip(place, first[found.text], last[found.text] - 1) - first[found.text])


def _spans(firsts: Ints, chosen: Ints) -> tuple[Ints, Ints]:
    return firsts[chosen], firsts[chosen + 1] - firsts[chosen]


def _starts(lengths: Ints) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def _windows(lengths: Ints, room: int) -> tuple[tuple[Ints, Ints, Ints], Ints]:
    """Rows (sentence, start, length), and the row that owns each piece: where windows overlap, the more central one."""
    if (lengths <= room).all():
        every = np.arange(len(lengths))
        return (every, np.zeros_like(every), lengths), np.repeat(every, lengths)
    rows: list[tuple[int, int, int]] = []
    owners: list[Ints] = []
    for sentence, length in enumerate(lengths.tolist()):
        starts = window_starts(length, room)
        reach = [(a + b + room) // 2 for a, b in pairwise(starts)]  # middle of each overlap
        edges = np.diff([0, *reach, length])
        owners.append(np.repeat(len(rows) + np.arange(len(starts)), edges))
        rows.extend((sentence, start, min(room, length - start)) for start in starts)
    sentence_of, start_of, length_of = np.array(rows, np.int64).T
    return (sentence_of, start_of, length_of), np.concatenate(owners)


def window_starts(length: int, room: int) -> list[int]:
    """Windows of `room` pieces overlapping by a quarter at least; the last one ends where the text ends."""
    if length <= room:
        return [0]
    step = max(1, room - room // 4)
    return [*range(0, length - room, step), length - room]
