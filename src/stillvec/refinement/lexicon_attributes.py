"""Vectors from what a lexicon says of a word (after Zhang et al. 2020, who add vectors of sememes to those of words).

`min over X, T of sum_w ‖A_w X + N_w T - (v_w - m)‖² + ridge (‖X‖² + ‖T‖²)`: A_w are the shares of the attributes of a
word, N_w those of its character n-grams (`spelling`), m is the mean vector. A known word becomes
`v_w + weight (A_w X)`; a word without attributes stays. With `extend`, words of the lexicon that have no vector get
`m + A_w X + N_w T`, and the count 0.

Of WordNet, the attributes of a word are its synsets, those above them, their categories, the words of their glosses and
those of the same derivation; of a file, those after the tab. A lexicon says much about the pairs of some similarity
datasets. `without` takes these out: of two paired words, neither gets what a synset of the other says, nor the other as
a word of its gloss or derivation.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.lexicons import as_pair, read_evaluation_pairs
from stillvec.lexicons.word_attributes import Descriptions, read_descriptions
from stillvec.refinement.subword import count_buckets, design, fit_table
from stillvec.registry import check_least, check_positive
from stillvec.subwords import Ngrams
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary
from stillvec.vocabulary.folding import fold

_MINN, _MAXN = 2, 5  # of n-grams, as in `subword`
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class LexiconAttributes:
    SUMMARY: ClassVar[str] = "words described by the attributes of a lexicon"
    PAPERS: ClassVar[tuple[str, ...]] = ("zhang-2020",)

    lexicon: tuple[str, ...] = ("wordnet",)  # "wordnet", its folder, or files: a word, a tab and attributes per line
    weight: float = 1.0  # of what the attributes of a known word say
    extend: bool = False  # add the words of the lexicon that have no vector
    spelling: bool = True  # fit character n-grams beside the attributes
    ridge: float = 0.02
    sweeps: int = 20
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_least(self, weight=0, sweeps=1)
        check_positive(self, "ridge")
        if not self.lexicon:
            raise UsageError.expected("at least one lexicon", "none", where="lexicon of attributes")

    def __call__(self, vectors: WordVectors) -> WordVectors:
        excluded = {as_pair(*pair) for place in self.without for pair in read_evaluation_pairs(place)}
        lexicon = read_descriptions([Path() if name == "wordnet" else Path(name) for name in self.lexicon], excluded)
        names = [fold(word, True) for word in vectors.words]
        matrix = np.array(vectors.matrix, np.result_type(vectors.matrix.dtype, np.float32))
        described = np.array([bool(lexicon.get(name)) for name in names]) & matrix.any(axis=1)
        rows = np.flatnonzero(described)
        if not len(rows):
            return vectors.with_matrix(matrix)
        mean = matrix[rows].mean(axis=0, dtype=np.float64).astype(np.float32)
        model = _Model.fit(self, lexicon, [names[row] for row in rows], matrix[rows].astype(np.float32) - mean)
        matrix[rows] += self.weight * model.from_attributes([names[row] for row in rows])
        if not self.extend:
            return vectors.with_matrix(matrix)
        new = sorted(
            word for word in lexicon if " " not in word and lexicon[word] and vectors.vocabulary.row(word) is None
        )
        vocabulary = Vocabulary(
            [*vectors.words, *new],
            [*vectors.vocabulary.counts.tolist(), *[0] * len(new)],
            lowercase=vectors.vocabulary.lowercase,
        )
        added = (mean + model.predict(new)).astype(matrix.dtype)
        return WordVectors(vocabulary, np.concatenate([matrix, added]), provenance=vectors.provenance)


@dataclass(frozen=True)
class _Model:
    lexicon: Descriptions
    columns: dict[str, int]  # attribute: row of the table
    ngrams: Ngrams | None
    table: Floats  # (attributes + buckets, D)

    @classmethod
    def fit(cls, settings: LexiconAttributes, lexicon: Descriptions, words: list[str], targets: Floats) -> _Model:
        columns = {name: at for at, name in enumerate(sorted({name for word in words for name in lexicon[word]}))}
        ngrams = Ngrams(count_buckets(len(words)), _MINN, _MAXN, 1) if settings.spelling else None
        model = cls(lexicon, columns, ngrams, np.zeros((0, 0), np.float32))
        equal = np.ones(len(words))
        table = fit_table(model.design(words), targets, equal, settings.ridge, settings.sweeps)
        return cls(lexicon, columns, ngrams, table)

    def design(self, words: list[str]) -> Any:
        """Shares of attributes and n-grams, sparse (n, attributes + buckets)."""
        from scipy.sparse import hstack

        parts = [self._share(words)] + ([design(self.ngrams, words)] if self.ngrams is not None else [])
        return hstack(parts).tocsr()

    def from_attributes(self, words: list[str]) -> Floats:
        return np.asarray(self._share(words) @ self.table[: len(self.columns)])

    def predict(self, words: list[str]) -> Floats:
        return np.asarray(self.design(words) @ self.table)

    def _share(self, words: list[str]) -> Any:
        """The shares of the attributes of each word, sparse (n, attributes); unfitted ones count too."""
        from scipy.sparse import csr_array

        rows, columns, shares = [], [], []
        for row, word in enumerate(words):
            total = sum(self.lexicon[word].values())
            for name, weight in self.lexicon[word].items():
                if name in self.columns:
                    rows.append(row)
                    columns.append(self.columns[name])
                    shares.append(weight / total)
        values = np.array(shares, np.float32)
        return csr_array((values, (rows, columns)), shape=(len(words), len(self.columns)))
