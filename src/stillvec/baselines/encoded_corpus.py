"""A corpus as baselines read it: the known words of its sentences as row numbers, on disk."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stillvec.corpus import Corpus
from stillvec.corpus.conllu import Parse
from stillvec.errors import CorpusError
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary, WordMatcher
from stillvec.vocabulary.folding import fold

Rows = NDArray[np.int32]  # of the vocabulary, sentence after sentence
Ends = NDArray[np.int64]  # of the sentences in them
_SENTENCES = 4096  # matched at once
_JOINER = "\u00a0"  # within a term, in a file that separates words by spaces: no word of a vocabulary contains it


@dataclass(frozen=True)
class EncodedCorpus:
    """The rows of known words, sentence after sentence; sentences with fewer than two are left out."""

    vocabulary: Vocabulary  # with counts; words that the corpus lacks have 0
    corpus: Corpus
    folder: Path
    n_words: int  # of all sentences
    n_sentences: int
    parsed: Corpus | None = None  # CoNLL-U of its sentences, if the corpus itself is plain text

    def parses(self) -> Iterator[Parse]:
        """The dependency parses of the corpus."""
        return (self.parsed or self.corpus).parses()

    def rows_of(self, parse: Parse) -> list[int]:
        """The row of each word of a parse, -1 for an unknown word; `Mr.`, one word for parsers, is our `mr`."""
        forms = [fold(form, self.vocabulary.lowercase) for form in parse.forms]
        index = self.vocabulary.index
        return [index[form] if form in index else index.get(form.rstrip("."), -1) for form in forms]

    @cached_property
    def rows(self) -> Rows:
        return np.memmap(self.folder / "rows", np.int32, "r", shape=(self.n_words,))  # (W,)

    @cached_property
    def ends(self) -> Ends:
        return np.memmap(self.folder / "ends", np.int64, "r", shape=(self.n_sentences,))  # (S,)

    @cached_property
    def known(self) -> Vocabulary:
        """The words that occur in the sentences, in the order of the vocabulary."""
        return self._select(self._occurs)

    @cached_property
    def _occurs(self) -> NDArray[np.bool_]:
        occurs = np.zeros(len(self.vocabulary), bool)
        for rows, _ in self.blocks(1 << 20):
            occurs[rows] = True
        return occurs

    def _select(self, chosen: NDArray[np.bool_]) -> Vocabulary:
        if chosen.all():
            return self.vocabulary
        words = [word for word, selected in zip(self.vocabulary, chosen.tolist(), strict=True) if selected]
        return self.vocabulary.like(words, self.vocabulary.counts[chosen])

    def vectors(
        self,
        matrix: NDArray[np.float32],
        trained: NDArray[np.bool_] | None = None,
        contexts: NDArray[np.float32] | None = None,
    ) -> WordVectors:
        """The rows of tables (V, D) whose words were trained; by default the words of the sentences."""
        trained = self._occurs if trained is None else trained
        chosen = slice(None) if trained.all() else trained
        context_rows = None if contexts is None else contexts[chosen]
        return WordVectors(self._select(trained), matrix[chosen], contexts=context_rows)

    def blocks(self, size: int) -> Iterator[tuple[Rows, Ends]]:
        """(rows, sentence ends in them) of about `size` words in whole sentences, in corpus order."""
        return (self.block(*sentences) for sentences in pairwise(self.cuts(size)))

    def cuts(self, size: int) -> list[int]:
        """Where the sentences of these blocks begin, and their number."""
        edges = np.arange(size, self.n_words, size)
        return [*np.unique([0, *(np.searchsorted(self.ends, edges) + 1), self.n_sentences]).tolist()]

    def block(self, first: int, last: int) -> tuple[Rows, Ends]:
        """(rows, sentence ends in them) of some sentences."""
        begin = int(self.ends[first - 1]) if first else 0
        ends = np.asarray(self.ends[first:last]) - begin
        return np.asarray(self.rows[begin : begin + int(ends[-1])]), ends

    @cached_property
    def lines(self) -> Path:
        """A text file with one sentence per line, words separated by spaces."""
        path = self.folder / "lines.txt"
        tokens = [as_token(word) for word in self.vocabulary]
        with open(path, "w", encoding="utf-8", errors="replace", newline="\n") as stream:
            for rows, ends in self.blocks(1 << 18):
                text = [tokens[row] for row in rows.tolist()]
                stream.writelines(" ".join(text[a:b]) + "\n" for a, b in pairwise([0, *ends.tolist()]))
        return path


def as_token(word: str) -> str:
    """A word or multiword term without spaces."""
    return word.replace(" ", _JOINER)


def encode_corpus(corpus: Corpus, vocabulary: Vocabulary, folder: Path) -> Generator[int, None, EncodedCorpus]:
    """Write the rows of a corpus to a folder; yields the number of words read."""
    matcher = WordMatcher(vocabulary)
    source = corpus.sentences()
    n_read = n_words = n_sentences = 0
    with open(folder / "rows", "wb") as rows_file, open(folder / "ends", "wb") as ends_file:
        while block := [*islice(source, _SENTENCES)]:
            rows, sentence = matcher.match_rows(block)
            n_read += len(rows)
            known = rows >= 0
            lengths = np.bincount(sentence[known], minlength=len(block))
            long_enough = lengths >= 2
            rows_file.write(rows[known & long_enough[sentence]].tobytes())
            ends_file.write((n_words + np.cumsum(lengths[long_enough])).astype(np.int64).tobytes())
            n_words += int(lengths[long_enough].sum())
            n_sentences += int(long_enough.sum())
            yield n_read
    if not n_words:
        message = f"No sentence of the corpus has two known words (the vocabulary has {len(vocabulary):,})"
        raise CorpusError(f"{message}; give more text or a lower --min-count.", code="no-sentences")
    return EncodedCorpus(vocabulary, corpus, folder, n_words, n_sentences)
