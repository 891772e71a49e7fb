"""Texts → pieces, and which words they belong to: of each run of signs between blanks once, then from memory.

A corpus repeats itself: of two million runs ("house,", "the") ninety thousand are different. Where a tokenizer parts
its text at blanks, as all of the usual kinds do, a text's pieces and words are those of its runs, one after the other.
Texts that may hold more than that (a term of several words, letters beyond Latin, odd blanks) are cut as a whole, as
one run that is not kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.teachers import PieceCutter, Pieces, align
from stillvec.vocabulary import Found, WordFinder
from stillvec.vocabulary.runs import RunNumbers, odd_texts

Ints = NDArray[np.int64]
_JOINED = 256  # new runs that are cut together
_MOST = 400_000  # runs that are kept,
_LONGEST = 20_000_000  # characters of them


@dataclass(frozen=True)
class Cut:
    """Texts as flat arrays."""

    pieces: NDArray[np.int32]  # (P,) ids
    lengths: Ints  # (T,) pieces of each text
    link_piece: Ints  # (K,) pairs piece - word, ordered by word
    links: Ints  # (T,) pairs of each text
    word_links: Ints  # (W,) pairs of each word, at least one
    word_id: NDArray[np.int32]  # (W,) row in the vocabulary, -1 unknown
    words: Ints  # (T,) words of each text


def cut_found(pieces: Pieces, found: Found) -> tuple[Cut, NDArray[np.bool_]]:
    """Texts in pieces whose words are found; and which words have a piece: tokenizers may drop all letters of one."""
    piece, word = align(pieces, found)
    links = np.bincount(word, minlength=len(found.ids))
    seen = links > 0
    number = len(pieces.lengths)
    words = np.bincount(found.text[seen], minlength=number)
    text_links = np.bincount(found.text[word], minlength=number)
    return Cut(pieces.ids, pieces.lengths, piece, text_links, links[seen], found.ids[seen], words), seen


class RunCutter:
    """Cuts texts, and remembers the runs it met; what it gives does not depend on what it remembers."""

    def __init__(self, cutter: PieceCutter, finder: WordFinder) -> None:
        self._cutter, self._finder = cutter, finder
        self._parts = finder.parts_at_blanks and cutter.parts_at_blanks
        self._numbers = RunNumbers()
        self._rows = _Rows(), _Rows(), _Rows(), _Rows()  # pieces, links, words, links of words
        self._plain: NDArray[np.bool_] = np.zeros(0, bool)
        self._met: NDArray[np.int64] = np.zeros(0, np.int64)  # how often, of late

    def cut(self, texts: Sequence[str]) -> Cut:
        if not self._parts:
            return self._whole(texts)
        if len(self._numbers) > _MOST or self._numbers.characters > _LONGEST:
            self._forget()
        numbers, held = self._numbers.of(texts)
        self._learn()
        self._met += np.bincount(numbers, minlength=len(self._met))
        odd = odd_texts(texts, numbers, held, self._plain)
        if not odd.any():
            return self._laid(numbers, held)
        known, which = len(self._numbers), np.flatnonzero(odd)
        self._keep(self._whole([texts[each] for each in which.tolist()]))
        begins = np.cumsum(held) - held
        numbers[begins[which]] = known + np.arange(len(which))
        first = np.zeros(len(numbers), bool)
        first[begins[which]] = True
        cut = self._laid(numbers[first | ~np.repeat(odd, held)], np.where(odd, 1, held))
        for rows in self._rows:
            rows.shorten(known)
        return cut

    def _whole(self, texts: Sequence[str]) -> Cut:
        return cut_found(self._cutter.cut(texts), self._finder.find(texts))[0]

    def _learn(self) -> None:
        """Cut the runs that are new."""
        new = self._numbers.taken()
        if not new:
            return
        found, plain = self._finder.find_in_runs(new)
        self._keep(cut_found(self._pieces(new, plain), found)[0])
        self._plain = np.concatenate([self._plain, plain])
        self._met = np.concatenate([self._met, np.zeros(len(new), np.int64)])

    def _forget(self) -> None:
        """Half of the runs stay, and of the room for their letters: those met most often, if more than once."""
        often = np.argsort(-self._met, kind="stable")[: _MOST // 2]
        runs = [*self._numbers]
        letters = np.cumsum([len(runs[each]) for each in often.tolist()])
        stay = np.sort(often[(self._met[often] > 1) & (letters <= _LONGEST // 2)])
        self._numbers = RunNumbers(runs[each] for each in stay.tolist())
        for rows in self._rows:
            kept = rows.take(stay)
            rows.shorten(0)
            rows.extend(*kept)
        self._plain, self._met = self._plain[stay], self._met[stay] // 2

    def _pieces(self, runs: Sequence[str], plain: NDArray[np.bool_]) -> Pieces:
        """Of plain runs, many of which are cut as one text, which is faster; of others, none."""
        which = np.flatnonzero(plain)
        groups = [
            [runs[each] for each in which[start : start + _JOINED].tolist()] for start in range(0, len(which), _JOINED)
        ]
        cut = self._cutter.cut([" ".join(group) for group in groups])
        lengths = np.fromiter((len(run) + 1 for group in groups for run in group), np.int64, len(which))
        text = np.repeat(np.arange(len(groups)), cut.lengths)
        first = np.cumsum(lengths) - lengths  # (N,) of the plain runs, in all texts laid end to end
        begin = first[::_JOINED][text]
        last = begin + np.maximum(cut.ends, 1)  # a blank before a run is the run's
        run = np.searchsorted(first, last, side="right") - 1  # (P,)
        inside = (begin - first[run]).astype(np.int32)
        held = np.zeros(len(runs), np.int64)
        held[which] = np.bincount(run, minlength=len(which))
        return Pieces(cut.ids, np.maximum(cut.starts + inside, 0), cut.ends + inside, held)

    def _keep(self, cut: Cut) -> None:
        pieces, links, ids, word_links = self._rows
        inside = cut.link_piece - np.repeat(np.cumsum(cut.lengths) - cut.lengths, cut.links)
        pieces.extend(cut.pieces, cut.lengths)
        links.extend(inside, cut.links)
        ids.extend(cut.word_id, cut.words)
        word_links.extend(cut.word_links, cut.words)

    def _laid(self, numbers: Ints, held: Ints) -> Cut:
        """Runs end to end; `held` are the runs of each text."""
        (pieces, lengths), (inside, links), (ids, words), (word_links, _) = (rows.take(numbers) for rows in self._rows)
        link_piece = np.asarray(inside + np.repeat(np.cumsum(lengths) - lengths, links), np.int64)
        lengths, links, words = (_summed(each, held) for each in (lengths, links, words))
        return Cut(pieces, lengths, link_piece, links, word_links.astype(np.int64), ids, words)


class _Rows:
    """Rows of numbers, of different lengths, end to end."""

    def __init__(self) -> None:
        self._flat = np.zeros(1 << 16, np.int32)
        self._ends = np.zeros(1 << 12, np.int64)  # one past the last; row 0 begins at 0
        self._number = 0

    def extend(self, flat: NDArray[Any], lengths: Ints) -> None:
        begin = int(self._ends[self._number - 1]) if self._number else 0
        ends = begin + np.cumsum(lengths)
        self._flat = _with_room(self._flat, begin + len(flat))
        self._ends = _with_room(self._ends, self._number + len(lengths))
        self._flat[begin : begin + len(flat)] = flat
        self._ends[self._number : self._number + len(lengths)] = ends
        self._number += len(lengths)

    def shorten(self, number: int) -> None:
        self._number = number

    def take(self, numbers: Ints) -> tuple[NDArray[np.int32], Ints]:
        """The rows of these numbers, end to end, and their lengths."""
        ends = self._ends[numbers]
        lengths = ends - np.where(numbers > 0, self._ends[numbers - 1], 0)
        return self._flat[ranges(ends - lengths, lengths)], lengths


def _with_room(array: NDArray[Any], size: int) -> NDArray[Any]:
    if size <= len(array):
        return array
    return np.concatenate([array, np.zeros(max(size, 2 * len(array)) - len(array), array.dtype)])


def _summed(values: Ints, held: Ints) -> Ints:
    """Sums over the runs of each text."""
    total = np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])
    ends = np.cumsum(held)
    return np.asarray(total[ends] - total[ends - held])


def ranges(starts: Ints, lengths: Ints) -> Ints:
    """start, start + 1, … for each pair, one after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.asarray(np.arange(total) + np.repeat(starts - (ends - lengths), lengths))
