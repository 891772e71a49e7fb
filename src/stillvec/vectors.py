"""`WordVectors`: a vocabulary and a matrix. It knows no files, no teacher, no test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import CallError, VocabularyError
from stillvec.registry import nearest_known
from stillvec.vocabulary import Vocabulary, WordFinder

Matrix = NDArray[Any]
_BLOCK = 1 << 16  # rows scored at once, so that a memory-mapped matrix is never copied whole


class WordVectors:
    """One vector a word. Immutable: whoever wants other vectors makes new ones.

    >>> vectors = WordVectors(Vocabulary(["ice", "snow", "fire"]), [[1, 0], [0.9, 0.1], [-1, 0.2]])
    >>> vectors.nearest("ice", k=1)[0][0]
    'snow'
    """

    def __init__(self, vocabulary: Vocabulary | Iterable[str], matrix: Any) -> None:
        self.vocabulary = vocabulary if isinstance(vocabulary, Vocabulary) else Vocabulary(vocabulary)
        rows = np.asanyarray(matrix)
        if rows.dtype.kind != "f":
            rows = rows.astype(np.float32)
        if rows.ndim != 2 or len(rows) != len(self.vocabulary):
            raise CallError(
                f"{len(self.vocabulary)} words need a matrix of as many rows, and one of shape {rows.shape} came."
            )
        rows = rows.view()
        rows.setflags(write=False)
        self.matrix: Matrix = rows

    @property
    def words(self) -> tuple[str, ...]:
        return self.vocabulary.words

    @property
    def dim(self) -> int:
        return int(self.matrix.shape[1])

    def __len__(self) -> int:
        return len(self.vocabulary)

    def __iter__(self) -> Iterator[str]:
        return iter(self.vocabulary)

    def __contains__(self, word: object) -> bool:
        return word in self.vocabulary

    def __repr__(self) -> str:
        return f"WordVectors({len(self):,} words x {self.dim})"

    @overload
    def __getitem__(self, word: str) -> NDArray[np.float32]: ...
    @overload
    def __getitem__(self, word: Sequence[str]) -> NDArray[np.float32]: ...
    def __getitem__(self, word: str | Sequence[str]) -> NDArray[np.float32]:
        """The vector of a word (dim,), or of several (n, dim)."""
        if isinstance(word, str):
            return np.array(self.matrix[self._row(word)], np.float32)
        return np.array(self.matrix[[self._row(each) for each in word]], np.float32).reshape(-1, self.dim)

    def similarity(self, a: str, b: str) -> float:
        """Cosine of two words; 0 where one of them is the zero vector."""
        x, y = self[a].astype(np.float64), self[b].astype(np.float64)
        length = float(np.linalg.norm(x) * np.linalg.norm(y))
        return float(x @ y) / length if length else 0.0

    def nearest(
        self, query: str | NDArray[Any], k: int = 10, *, exclude: Iterable[str] = ()
    ) -> list[tuple[str, float]]:
        """The `k` words of highest cosine with a word or a vector; the word itself is not among them."""
        left_out = {row for word in exclude if (row := self.vocabulary.row(word)) is not None}
        if isinstance(query, str):
            left_out.add(self._row(query))
            query = self[query]
        return self._best(self._cosines(query), k, left_out)

    def analogy(self, a: str, b: str, c: str, k: int = 1, *, method: str = "3cosadd") -> list[tuple[str, float]]:
        """What is to `c` as `b` is to `a`; Mikolov's 3CosAdd or Levy and Goldberg's 3CosMul."""
        cos_a, cos_b, cos_c = (self._cosines(self[word]) for word in (a, b, c))
        if method == "3cosadd":
            # the unit sum would only divide all scores by one number
            scores = cos_b - cos_a + cos_c
        elif method == "3cosmul":
            scores = (1 + cos_b) * (1 + cos_c) / ((1 + cos_a) + 2e-3) / 2
        else:
            raise CallError(f"There is no analogy method {method!r}; {nearest_known(method, ('3cosadd', '3cosmul'))}")
        return self._best(scores, k, {self._row(word) for word in (a, b, c)})

    def encode(self, texts: str | Sequence[str]) -> NDArray[np.float32]:
        """The mean vector of the known words of each text (n, dim), zero where it has none; one text gives (dim,)."""
        if isinstance(texts, str):
            return np.asarray(self.encode([texts])[0])
        rows, text = self._finder.rows(texts)
        known = rows >= 0
        rows, text = rows[known], text[known]
        sums = np.zeros((len(texts), self.dim), np.float32)
        held = np.bincount(text, minlength=len(texts))
        filled = np.flatnonzero(held)  # reduceat repeats a row for an empty segment
        if len(filled):
            starts = np.cumsum(held)[filled] - held[filled]
            for first in range(0, len(filled), 4096):
                some = filled[first : first + 4096]
                begin, end = starts[first], starts[first] + held[some].sum()
                block = np.asarray(self.matrix[rows[begin:end]], np.float32)
                sums[some] = np.add.reduceat(block, starts[first : first + 4096] - begin, axis=0)
        sums /= np.maximum(held, 1)[:, None].astype(np.float32)
        return sums

    def subset(self, words: Iterable[str]) -> WordVectors:
        """The same vectors for some of the words, in the order given."""
        rows = [self._row(word) for word in words]
        counts = self.vocabulary.counts[rows].tolist()
        names = [self.words[row] for row in rows]
        return WordVectors(Vocabulary(names, counts, lowercase=self.vocabulary.lowercase), self.matrix[rows])

    def _row(self, word: str) -> int:
        row = self.vocabulary.row(word)
        if row is None:
            raise VocabularyError(f"The vectors have no word {word!r}; {self._hint(word)}")
        return row

    def _hint(self, word: str) -> str:
        alike = [w for w in self.words[:200_000] if w[:2] == word[:2].lower() and abs(len(w) - len(word)) < 3]
        return nearest_known(word, alike) if alike else "try another spelling, or distil with --keep to have it."

    @cached_property
    def _finder(self) -> WordFinder:
        return WordFinder(self.vocabulary)

    @cached_property
    def _norms(self) -> NDArray[np.float32]:
        blocks = (np.asarray(self.matrix[i : i + _BLOCK], np.float32) for i in self._starts())
        norms = np.concatenate([np.linalg.norm(block, axis=1) for block in blocks])
        return np.where(norms > 0, norms, np.inf).astype(np.float32)

    def _starts(self) -> range:
        """Where blocks of rows begin: one, even where there are no rows, as numpy joins no empty list."""
        return range(0, max(1, len(self)), _BLOCK)

    def _cosines(self, vector: NDArray[Any]) -> NDArray[np.float32]:
        wanted = np.asarray(vector, np.float32)
        if wanted.shape != (self.dim,):
            raise CallError(f"A query vector of {self.dim} numbers is wanted, and one of shape {wanted.shape} came.")
        length = float(np.linalg.norm(wanted))
        if length:
            wanted = wanted / length
        dots = [np.asarray(self.matrix[i : i + _BLOCK], np.float32) @ wanted for i in self._starts()]
        return np.asarray(np.concatenate(dots) / self._norms)

    def _best(self, scores: NDArray[np.float32], k: int, left_out: set[int]) -> list[tuple[str, float]]:
        if k < 1:
            raise CallError(f"At least one neighbour must be asked for, and k is {k}.")
        if not len(scores):
            return []
        wanted = min(k + len(left_out), len(scores))
        top = np.argpartition(-scores, wanted - 1)[:wanted]
        top = top[np.lexsort((top, -scores[top]))]
        return [(self.words[row], float(scores[row])) for row in top.tolist() if row not in left_out][:k]
