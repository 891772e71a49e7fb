"""gensim's names on `WordVectors`: thin methods with the results of gensim's `KeyedVectors`."""

from __future__ import annotations

import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar, overload

import numpy as np

from stillvec.errors import UsageError, VocabularyError
from stillvec.input_checks import check_arguments, check_count, describe
from stillvec.numerics import unit_rows
from stillvec.numerics.array_types import Floats32 as Floats
from stillvec.numerics.array_types import Matrix
from stillvec.vocabulary import Vocabulary
from stillvec.vocabulary.inflections import Inflections, NeighbourGroups

Neighbours = list[tuple[str, float]]
Key = str | int | Matrix
Query = Key | tuple[Key, float]
D = TypeVar("D")


class GensimNames(ABC):
    """The names that users of gensim know, for classes with a vocabulary and a matrix."""

    vocabulary: Vocabulary
    matrix: Matrix

    @property
    def vectors(self) -> Matrix:
        """The matrix (V, dim), as `matrix`."""
        return self.matrix

    @property
    def vector_size(self) -> int:
        """The number of dimensions, as `dim`."""
        return int(self.matrix.shape[1])

    @property
    def index_to_key(self) -> tuple[str, ...]:
        """The words in the order of their rows, as `words`."""
        return self.vocabulary.words

    @property
    def key_to_index(self) -> Mapping[str, int]:
        """The row of each word."""
        return self.vocabulary.index

    def get_vector(self, word: str | int, norm: bool = False) -> Floats:
        """The vector of a word (dim,).

        Parameters
        ----------
        word: the word, or its row.
        norm: scale the vector to length one (default: False).
        """
        check_arguments(GensimNames.get_vector, locals())
        vector = self[word]
        return unit_rows(vector) if norm else vector

    def get(self, word: str, default: D | None = None) -> Floats | D | None:
        """The vector of a word (dim,), or `default` if there is none.

        Parameters
        ----------
        word: the word.
        default: returned for a word without a vector (default: None).
        """
        try:
            return self[word]
        except VocabularyError:
            return default

    @overload
    def most_similar(
        self,
        positive: Query | Iterable[Query] = (),
        negative: Query | Iterable[Query] = (),
        topn: int = 10,
        *,
        restrict_vocab: int | None = None,
        group: Literal[False] = False,
    ) -> Neighbours: ...
    @overload
    def most_similar(
        self,
        positive: Query | Iterable[Query] = (),
        negative: Query | Iterable[Query] = (),
        topn: int = 10,
        *,
        restrict_vocab: int | None = None,
        group: Literal[True],
    ) -> NeighbourGroups: ...
    def most_similar(
        self,
        positive: Query | Iterable[Query] = (),
        negative: Query | Iterable[Query] = (),
        topn: int = 10,
        *,
        restrict_vocab: int | None = None,
        group: bool = False,
    ) -> Neighbours | NeighbourGroups:
        """The words of highest cosine with a weighted mean of words and vectors, without the words of the query.

        >>> vectors.most_similar(positive=["king", "woman"], negative=["man"], topn=1)  # doctest: +SKIP

        As in gensim, words count with length one and arrays with their own length.

        Parameters
        ----------
        positive: a word, a row, an array (dim,), or a list of these, each alone or as (word, weight) (default: none).
        negative: the same, with the weight -1; a weight that is given replaces it (default: none).
        topn: number of words to return (default: 10).
        restrict_vocab: search only the first words of the vocabulary, the most frequent ones (default: all).
        group: one entry per word, with its inflections, as in `nearest`; gensim has no such option (default: False).
        """
        check_arguments(GensimNames.most_similar, {"group": group})
        queries = [*_split_weights(positive, 1.0, "positive"), *_split_weights(negative, -1.0, "negative")]
        if not queries:
            raise UsageError.expected("at least one word or vector", "none", where="positive")
        rows = {self._row_or_oov(key) for key, _ in queries if not isinstance(key, np.ndarray)}
        weights = np.array([weight for _, weight in queries])
        scores = self._cosines(weights @ np.stack([self._direction(key) for key, _ in queries]))
        if restrict_vocab is not None:
            scores = scores[: check_count(restrict_vocab, "restrict_vocab")]
        topn = check_count(topn, "topn")
        if group:
            names = [key for key, _ in queries if isinstance(key, str)]
            return self.inflections.group(lambda n: self._best(scores, n, rows), topn, names)
        return self._best(scores, topn, rows)

    def similar_by_word(self, word: str | int, topn: int = 10, restrict_vocab: int | None = None) -> Neighbours:
        """The words of highest cosine with a word; see `most_similar` for the parameters."""
        return self.most_similar(word, topn=topn, restrict_vocab=restrict_vocab)

    def similar_by_vector(
        self, vector: Matrix | Sequence[float], topn: int = 10, restrict_vocab: int | None = None
    ) -> Neighbours:
        """The words of highest cosine with a vector (dim,); see `most_similar` for the parameters."""
        return self.most_similar([self._check_vector(vector)], topn=topn, restrict_vocab=restrict_vocab)

    def doesnt_match(self, words: Iterable[str]) -> str:
        """The word that is farthest from the mean of the words, each of length one.

        >>> vectors.doesnt_match(["breakfast", "cereal", "dinner", "lunch"])  # doctest: +SKIP

        Parameters
        ----------
        words: at least one word; an unknown word is an error, where gensim leaves it out.
        """
        names = _check_words(words, "words")
        units = unit_rows(self[names])  # (n, dim)
        return min(zip((units @ unit_rows(units.mean(axis=0))).tolist(), names, strict=True))[1]

    def distance(self, a: str, b: str) -> float:
        """The cosine distance of two words, `1 - similarity(a, b)`."""
        return float(self.distances(a, [b])[0])

    def distances(self, word: str | int | Matrix, other_words: Iterable[str] = ()) -> Floats:
        """The cosine distances of a word or vector from other words (n,).

        Parameters
        ----------
        word: the word, its row, or an array (dim,).
        other_words: the other words (default: all words of the vocabulary).
        """
        vector = self[word] if isinstance(word, str | int | np.integer) else self._check_vector(word)
        check_arguments(GensimNames.distances, {"other_words": other_words})
        if names := [*other_words]:
            return np.asarray(1 - unit_rows(self[names]) @ unit_rows(vector), np.float32)
        return np.asarray(1 - self._cosines(vector), np.float32)

    def n_similarity(self, words_a: Iterable[str], words_b: Iterable[str]) -> float:
        """The cosine of the mean vectors of two lists of words.

        Parameters
        ----------
        words_a: at least one word.
        words_b: at least one word.
        """
        lists = (_check_words(words_a, "words_a"), _check_words(words_b, "words_b"))
        a, b = (unit_rows(self[words].mean(axis=0), np.float64) for words in lists)
        return float(a @ b)

    def closer_than(self, a: str, b: str) -> list[str]:
        """All words that are closer to the word `a` than the word `b` is, in the order of the vocabulary."""
        cosines = self._cosines(self[a])
        own, other = self._row_or_oov(a), self._row_or_oov(b)
        least = cosines[other] if other >= 0 else np.float32(unit_rows(self[a]) @ unit_rows(self[b]))
        return [self.vocabulary.words[row] for row in np.flatnonzero(cosines > least).tolist() if row != own]

    def rank(self, a: str, b: str) -> int:
        """The rank of the word `b` among the neighbours of the word `a`, from 1."""
        return len(self.closer_than(a, b)) + 1

    def save(self, path: str | os.PathLike[str], *, format: str | None = None, force: bool = False) -> None:
        """Write the vectors, as `stillvec.save`.

        Parameters
        ----------
        path: the folder or file; .gz, .bz2 and .xz compress a file.
        format: a name in `stillvec.formats.FORMATS` (default: by the suffix of `path`; without one, a stillvec folder).
        force: replace files of the same names in a folder that stillvec did not write (default: False).
        """
        package = importlib.import_module(__package__)  # formats are in a layer above this one
        package.save(self, path, format=format, force=force)

    def push_to_hub(
        self,
        name: str,
        *,
        private: bool | None = None,
        token: str | None = None,
        commit_message: str | None = None,
        revision: str | None = None,
        license: str | None = None,
        language: str | Sequence[str] | None = None,
    ) -> str:
        """Upload the vectors to the Hugging Face Hub; `stillvec.push_to_hub` has more options.

        Parameters
        ----------
        name: the repository, OWNER/NAME.
        private: whether a new repository is private (default: as the owner's settings say).
        token: the token to write with (default: the stored one).
        commit_message: the message of the commit (default: one that names the vectors).
        revision: the branch to write to (default: main).
        license: the license of the vectors, for the model card (default: none).
        language: their language or languages, for the model card (default: none).
        """
        push = importlib.import_module(__package__).push_to_hub
        options = {"private": private, "token": token, "commit_message": commit_message, "revision": revision}
        address: str = push(self, name, license=license, language=language, **options)
        return address

    def _direction(self, key: Key) -> Floats:
        return self._check_vector(key) if isinstance(key, np.ndarray) else unit_rows(self[key])

    @abstractmethod
    def __getitem__(self, word: str | int | Sequence[str | int]) -> Floats:
        """Vectors of words or rows."""

    @property
    @abstractmethod
    def inflections(self) -> Inflections:
        """Which words are forms of one word."""

    @abstractmethod
    def _row_or_oov(self, word: str | int) -> int:
        """The row of a word; -1 for an OOV word that has a vector."""

    @abstractmethod
    def _check_vector(self, vector: Any) -> Floats:
        """A query vector (dim,)."""

    @abstractmethod
    def _cosines(self, vector: Matrix) -> Floats:
        """The cosine of each word with a vector (V,)."""

    @abstractmethod
    def _best(self, scores: Floats, k: int, excluded: set[int]) -> Neighbours:
        """The words of the highest scores."""


def _split_weights(queries: Any, weight: float, where: str) -> Iterator[tuple[Key, float]]:
    """Each word, row or vector with its weight."""
    if queries is None:
        return
    if isinstance(queries, str | int | np.integer) or (isinstance(queries, np.ndarray) and queries.ndim == 1):
        queries = [queries]
    if not isinstance(queries, Iterable):
        raise UsageError.expected("words or vectors", describe(queries), where=where)
    for query in queries:
        key, own = query if isinstance(query, tuple) and len(query) == 2 else (query, weight)
        if not isinstance(key, str | int | np.integer | np.ndarray):
            raise UsageError.expected("a word, a row or an array", describe(key), where=where)
        if isinstance(own, bool) or not isinstance(own, int | float | np.number) or not np.isfinite(own):
            raise UsageError.expected("a finite weight", describe(own), where=where)
        yield key if isinstance(key, str | np.ndarray) else int(key), float(own)


def _check_words(words: Any, where: str) -> list[str]:
    names = [*words] if isinstance(words, Iterable) and not isinstance(words, str) else []
    if not names:
        raise UsageError.expected("a list of at least one word", describe(words), where=where)
    return names
