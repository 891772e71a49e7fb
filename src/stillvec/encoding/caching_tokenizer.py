"""Texts → pieces, and which words they belong to: of each run of signs between blanks once, then from memory.

A corpus repeats itself: of two million runs ("house,", "the") ninety thousand are different. Where a tokenizer parts
its text at blanks, as all of the usual kinds do, a text's pieces and words are those of its runs, one after the other.
Where it parts them at signs too, as BERT's kind does, a new run is what its letters and signs are ("sea-shore,").
Texts that may hold more than that (a term of several words, letters beyond Latin, odd blanks) are cut as a whole, as
one run that is not kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stillvec.teachers import SubwordTokenizer, SubwordTokens, align
from stillvec.vocabulary import WordMatcher, WordSpans
from stillvec.vocabulary.token_cache import TokenCache, sums

Ints = NDArray[np.int64]
_JOINED = 256  # new runs that are cut together
_SIGNS = r"-—–,;:!?\"()\[\]“”…"
_EDGES = rf"[{_SIGNS}.'‘’]"  # a stop and an apostrophe join the letters around them
_MADE = re.compile(rf"{_EDGES}*[A-Za-z]+(?:[{_SIGNS}]+[A-Za-z]+)*{_EDGES}*")
_PARTS = re.compile("[A-Za-z]+|[^A-Za-z]+")


@dataclass(frozen=True)
class TokenizedTexts:
    """Texts as flat arrays."""

    pieces: NDArray[np.int32]  # (P,) ids
    lengths: Ints  # (T,) pieces of each text
    link_piece: Ints  # (K,) pairs piece - word, ordered by word
    links: Ints  # (T,) pairs of each text
    word_links: Ints  # (W,) pairs of each word, at least one
    word_id: NDArray[np.int32]  # (W,) row in the vocabulary, -1 unknown
    words: Ints  # (T,) words of each text


def align_words(pieces: SubwordTokens, found: WordSpans) -> tuple[TokenizedTexts, NDArray[np.bool_]]:
    """Texts in pieces whose words are found; and which words have a piece: tokenizers may drop all letters of one."""
    piece, word = align(pieces, found)
    links = np.bincount(word, minlength=len(found.ids))
    seen = links > 0
    number = len(pieces.lengths)
    words = np.bincount(found.text[seen], minlength=number)
    text_links = np.bincount(found.text[word], minlength=number)
    return TokenizedTexts(pieces.ids, pieces.lengths, piece, text_links, links[seen], found.ids[seen], words), seen


def split_punctuation(run: str) -> tuple[str, ...]:
    """Letters and the signs between them, whose pieces and words are the run's; none where signs may join letters."""
    return () if run.isalpha() or not _MADE.fullmatch(run) else tuple(_PARTS.findall(run))


class CachingTokenizer:
    """Cuts texts, and remembers the runs it met; what it gives does not depend on what it remembers."""

    def __init__(self, cutter: SubwordTokenizer, finder: WordMatcher) -> None:
        self._cutter, self._finder = cutter, finder
        self._parts = finder.parts_at_blanks and cutter.splits_on_whitespace
        self._at_signs = self._parts and cutter.splits_on_punctuation
        self._known = TokenCache(4)  # pieces, links, words, links of words

    def cut(self, texts: Sequence[str]) -> TokenizedTexts:
        if not self._parts:
            return self._whole(texts)
        rows, held, odd = self._known.read(texts, self._learn)
        if not odd.any():
            return self._laid(rows, held)
        known, which = len(self._known.rows[0]), np.flatnonzero(odd)
        begins = np.cumsum(held) - held
        rows[begins[which]] = self._keep(self._whole([texts[each] for each in which.tolist()]))
        first = np.zeros(len(rows), bool)
        first[begins[which]] = True
        cut = self._laid(rows[first | ~np.repeat(odd, held)], np.where(odd, 1, held))
        for each in self._known.rows:
            each.shorten(known)
        return cut

    def _whole(self, texts: Sequence[str]) -> TokenizedTexts:
        return align_words(self._cutter.encode(texts), self._finder.find(texts))[0]

    def _learn(self, new: Sequence[str]) -> None:
        """Cut the runs that are new: as those are that they are made of, if they are, else by the tokenizer."""
        known = self._known
        first = len(known.plain)
        made = [split_punctuation(run) if self._at_signs else () for run in new]
        held = np.fromiter(map(len, made), np.int64, len(new))
        parts = np.fromiter((known.numbers[part] for run in made for part in run), np.int64, int(held.sum()))
        more = known.numbers.taken()
        known.grow(len(new) + len(more))
        alone = [run for run, several in zip(new, made, strict=True) if not several] + more
        if alone:
            where = first + np.concatenate([np.flatnonzero(held == 0), len(new) + np.arange(len(more))])
            found, known.plain[where] = self._finder.find_in_runs(alone)
            known.row[where] = self._keep(align_words(self._pieces(alone, known.plain[where]), found)[0])
        if len(parts):
            where, several = first + np.flatnonzero(held), held[held > 0]
            known.row[where] = self._keep(self._laid(known.row[parts], several))
            known.plain[where] = sums(~known.plain[parts], several) == 0

    def _pieces(self, runs: Sequence[str], plain: NDArray[np.bool_]) -> SubwordTokens:
        """Of plain runs, many of which are cut as one text, which is faster; of others, none."""
        which = np.flatnonzero(plain)
        groups = [
            [runs[each] for each in which[start : start + _JOINED].tolist()] for start in range(0, len(which), _JOINED)
        ]
        cut = self._cutter.encode([" ".join(group) for group in groups])
        lengths = np.fromiter((len(run) + 1 for group in groups for run in group), np.int64, len(which))
        text = np.repeat(np.arange(len(groups)), cut.lengths)
        first = np.cumsum(lengths) - lengths  # (N,) of the plain runs, in all texts laid end to end
        begin = first[::_JOINED][text]
        last = begin + np.maximum(cut.ends, 1)  # a blank before a run is the run's
        run = np.searchsorted(first, last, side="right") - 1  # (P,)
        inside = (begin - first[run]).astype(np.int32)
        held = np.zeros(len(runs), np.int64)
        held[which] = np.bincount(run, minlength=len(which))
        return SubwordTokens(cut.ids, np.maximum(cut.starts + inside, 0), cut.ends + inside, held)

    def _keep(self, cut: TokenizedTexts) -> Ints:
        """The numbers of the rows that its texts have from now on."""
        pieces, links, ids, word_links = self._known.rows
        first = len(pieces)
        inside = cut.link_piece - np.repeat(np.cumsum(cut.lengths) - cut.lengths, cut.links)
        pieces.extend(cut.pieces, cut.lengths)
        links.extend(inside, cut.links)
        ids.extend(cut.word_id, cut.words)
        word_links.extend(cut.word_links, cut.words)
        return first + np.arange(len(cut.lengths))

    def _laid(self, rows: Ints, held: Ints) -> TokenizedTexts:
        """Runs end to end; `held` are the runs of each text."""
        (pieces, lengths), (inside, links), (ids, words), (word_links, _) = (
            each.take(rows) for each in self._known.rows
        )
        link_piece = np.asarray(inside + np.repeat(np.cumsum(lengths) - lengths, links), np.int64)
        lengths, links, words = (sums(each, held) for each in (lengths, links, words))
        return TokenizedTexts(pieces, lengths, link_piece, links, word_links.astype(np.int64), ids, words)
