"""A corpus as baselines take it: sentences of known words, written once, on disk, read as often as wanted."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stillvec.corpus import Corpus
from stillvec.corpus.parses import Parse
from stillvec.errors import CorpusError
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary, WordMatcher
from stillvec.vocabulary.folding import fold

_SENTENCES = 4096  # found at once
_BLANK = "\u00a0"  # inside a term, in a file whose words are parted by spaces: no word of a vocabulary has one


@dataclass(frozen=True)
class EncodedCorpus:
    """The rows of known words, one sentence after the other; sentences with fewer than two are left out."""

    vocabulary: Vocabulary  # with counts; words that the corpus lacks have 0
    corpus: Corpus
    folder: Path
    words: int  # of all sentences
    sentences: int
    parsed: Corpus | None = None  # CoNLL-U of its sentences, where the corpus itself is none

    def parses(self) -> Iterator[Parse]:
        """The dependency parses of the corpus."""
        return (self.parsed or self.corpus).parses()

    def rows_of(self, parse: Parse) -> list[int]:
        """The row of each word of a parse, -1 where there is none; `Mr.`, one word to parsers, is our `mr`."""
        forms = [fold(form, self.vocabulary.lowercase) for form in parse.forms]
        index = self.vocabulary.index
        return [index[form] if form in index else index.get(form.rstrip("."), -1) for form in forms]

    @cached_property
    def rows(self) -> NDArray[np.int32]:
        return np.memmap(self.folder / "rows", np.int32, "r", shape=(self.words,))  # (W,)

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        return np.memmap(self.folder / "ends", np.int64, "r", shape=(self.sentences,))  # (S,)

    @cached_property
    def known(self) -> Vocabulary:
        """The words that the sentences have, in their order."""
        return self._chosen(self._met)

    @cached_property
    def _met(self) -> NDArray[np.bool_]:
        met = np.zeros(len(self.vocabulary), bool)
        for rows, _ in self.blocks(1 << 20):
            met[rows] = True
        return met

    def _chosen(self, chosen: NDArray[np.bool_]) -> Vocabulary:
        if chosen.all():
            return self.vocabulary
        words = [word for word, stays in zip(self.vocabulary, chosen.tolist(), strict=True) if stays]
        return Vocabulary(words, self.vocabulary.counts[chosen], lowercase=self.vocabulary.lowercase)

    def learnt(self, matrix: NDArray[np.float32], met: NDArray[np.bool_] | None = None) -> WordVectors:
        """Of a table with a row a word, the rows of words that were met: by default those of the sentences."""
        met = self._met if met is None else met
        return WordVectors(self._chosen(met), matrix if met.all() else matrix[met])

    def blocks(self, words: int) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int64]]]:
        """(rows, ends in them) of whole sentences, about so many words at a time, in their order."""
        edges = np.arange(words, self.words, words)
        cuts = np.unique(np.concatenate([[0], np.searchsorted(self.ends, edges) + 1, [self.sentences]]))
        for first, last in pairwise(cuts.tolist()):
            begin = int(self.ends[first - 1]) if first else 0
            ends = np.asarray(self.ends[first:last]) - begin
            yield np.asarray(self.rows[begin : begin + int(ends[-1])]), ends

    @cached_property
    def lines(self) -> Path:
        """A file with a sentence a line, words parted by spaces."""
        path = self.folder / "lines.txt"
        names = [as_token(word) for word in self.vocabulary]
        with open(path, "w", encoding="utf-8", errors="replace", newline="\n") as stream:
            for rows, ends in self.blocks(1 << 18):
                tokens = [names[row] for row in rows.tolist()]
                stream.writelines(" ".join(tokens[a:b]) + "\n" for a, b in pairwise([0, *ends.tolist()]))
        return path


def as_token(word: str) -> str:
    """A word or term without spaces."""
    return word.replace(" ", _BLANK)


def write_text(corpus: Corpus, vocabulary: Vocabulary, folder: Path) -> Generator[int, None, EncodedCorpus]:
    """Read the corpus into a folder; yields the number of words that have gone by."""
    finder = WordMatcher(vocabulary)
    source = corpus.sentences()
    passed = words = sentences = 0
    with open(folder / "rows", "wb") as rows_file, open(folder / "ends", "wb") as ends_file:
        while held := [*islice(source, _SENTENCES)]:
            rows, sentence = finder.rows(held)
            passed += len(rows)
            known = rows >= 0
            lengths = np.bincount(sentence[known], minlength=len(held))
            stay = lengths >= 2
            rows_file.write(rows[known & stay[sentence]].tobytes())
            ends_file.write((words + np.cumsum(lengths[stay])).astype(np.int64).tobytes())
            words += int(lengths[stay].sum())
            sentences += int(stay.sum())
            yield passed
    if not words:
        raise CorpusError(
            f"Training takes sentences with two known words or more, and the corpus has none "
            f"({len(vocabulary):,} words are known); give more text, or lower --min-count."
        )
    return EncodedCorpus(vocabulary, corpus, folder, words, sentences)
