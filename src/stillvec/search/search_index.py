"""`SearchIndex`: the best passages of documents for a query, by sentence vectors, BM25 or both."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError, MissingExtra, UsageError
from stillvec.files import atomic_folder, reserve_output
from stillvec.formats.format import verify_file
from stillvec.input_checks import check_arguments
from stillvec.numerics import top_k
from stillvec.search.approximate_search import ApproximateIndex
from stillvec.search.index_folder import GRAPH, LAYOUT, IndexContent, read_index
from stillvec.search.snippets import SnippetMaker
from stillvec.search.text_encoder import TextEncoder
from stillvec.vocabulary.word_numbering import WordNumbering

Method = Literal["hybrid", "vectors", "bm25"]
Scored = list[tuple[int, float]]  # passage and score
METHODS: tuple[Method, ...] = get_args(Method)
_COSINE_SHARE = 2 / 3  # of a hybrid score, chosen on development queries (benchmarks/search.py)
_DECIMALS = 6  # of a cosine in single precision
_MIN_CANDIDATES = 100  # that each ranking contributes to a hybrid one


@dataclass(frozen=True)
class Hit:
    """A passage that was found.

    `score` is the cosine for the method "vectors", the BM25 score for "bm25", and for "hybrid"
    `(2 cosine + bm25 / best bm25) / 3`. `position` counts the passages of the document from 0. `snippet` is the part of
    the text nearest to the query, and `highlights` the (start, end) of the query's words in it.
    """

    score: float
    id: str
    position: int
    text: str
    snippet: str
    highlights: tuple[tuple[int, int], ...]


class SearchIndex:
    """Passages of documents with their vectors and words; made by `stillvec.index`, read with `SearchIndex.load`.

    >>> index = stillvec.index({"a": "Ice melts.", "b": "Fire burns."}, vectors)  # doctest: +SKIP
    >>> index.search("melting snow", k=1)[0].id  # doctest: +SKIP
    'a'
    """

    def __init__(self, folder: Path, content: IndexContent, *, owned: Any = None) -> None:
        self.folder = folder
        self._content = content
        self._owned = owned  # keeps a temporary folder
        self._encoder = TextEncoder(content.vectors)
        self._lock = threading.Lock()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SearchIndex:
        """Open the folder of an index; its arrays are memory-mapped.

        Parameters
        ----------
        path: the folder.
        """
        check_arguments(SearchIndex.load, locals())
        return cls(Path(path), read_index(Path(path)))

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write a copy of the index to another folder.

        Parameters
        ----------
        path: the folder to write.
        force: replace what exists (default: False).
        """
        check_arguments(SearchIndex.save, locals())
        if os.path.realpath(path) == os.path.realpath(self.folder):
            raise UsageError.conflict(f"{path} is the folder of this index", cure="choose another name", path=path)
        with reserve_output(path, LAYOUT, force=force), atomic_folder(path, LAYOUT) as part:
            for name in LAYOUT.names:
                if (self.folder / name).is_file():
                    (part / name).parent.mkdir(exist_ok=True)
                    shutil.copyfile(self.folder / name, part / name)

    def __len__(self) -> int:
        """The number of passages."""
        return len(self._content.texts)

    @property
    def n_documents(self) -> int:
        return len(self._content.ids)

    @property
    def content(self) -> IndexContent:
        """The arrays, settings and word vectors of the index."""
        return self._content

    @property
    def ids(self) -> Iterator[str]:
        """The ids of the documents, in the order in which they were added."""
        return iter(self._content.ids)

    @property
    def recall(self) -> float | None:
        """Recall@10 of the approximate search, measured when it was built; None if the search is exact."""
        return None if self._graph is None else self._graph.recall

    def __repr__(self) -> str:
        dim = self._content.vectors.dim
        return f"SearchIndex({self.n_documents:,} documents, {len(self):,} passages x {dim})"

    def search(
        self, query: str, k: int = 10, *, method: Method = "hybrid", unique: bool = False, exact: bool = False
    ) -> list[Hit]:
        """The `k` best passages for a query, best first; fewer if fewer have anything in common with it.

        Parameters
        ----------
        query: a text: words, a question or a whole passage.
        k: the number of hits (default: 10).
        method: "vectors" (cosine of sentence vectors), "bm25" (the same words) or "hybrid", both (default: hybrid).
        unique: only the best passage of each document (default: False).
        exact: compare with every passage even if the index has a graph for approximate search (default: False).
        """
        check_arguments(SearchIndex.search, locals())
        if method not in METHODS:
            raise UsageError.unknown("method", method, METHODS)
        if not isinstance(query, str):
            raise UsageError.expected("a text", type(query).__name__, where="query")
        if k < 1:
            raise UsageError.expected("at least 1", k, where="k")
        words = self._split(query)
        maker = SnippetMaker(query, words, self._encoder)
        return [self._make_hit(row, score, maker) for row, score in self._find(query, words, k, method, unique, exact)]

    def _find(self, query: str, words: list[str], k: int, method: Method, unique: bool, exact: bool) -> Scored:
        n_best = k
        while True:
            scored = self._rank(query, words, min(n_best, len(self)), method, exact)
            first: dict[int, tuple[int, float]] = {}
            for row, score in scored:
                first.setdefault(int(self._content.documents[row]), (row, score))
            if not unique:
                return scored[:k]
            if len(first) >= k or len(scored) < n_best:
                return [*first.values()][:k]
            n_best *= 4

    def _rank(self, query: str, words: list[str], n_best: int, method: Method, exact: bool) -> Scored:
        """Up to `n_best` passages with a score above 0."""
        if not n_best:
            return []
        bm25 = self._content.postings.score(words) if method != "vectors" else np.zeros(len(self), np.float32)
        if method == "bm25":
            return _select(bm25, np.arange(len(self)), n_best)
        vector = self._encoder.encode([query])[0]  # (D,)
        graph = None if exact or not vector.any() else self._graph
        if graph is None:
            rows: NDArray[np.int64] = np.arange(len(self))
            cosines = self._compare(self._content.matrix, vector)  # memory-mapped, not copied
        else:
            n_candidates = max(n_best, _MIN_CANDIDATES)
            near = [row for row, _ in graph.nearest(vector, n_candidates, frozenset())]
            by_words = top_k(bm25, n_candidates) if method == "hybrid" else np.zeros(0, np.int64)
            rows = np.unique(np.concatenate([np.array(near, np.int64), by_words]))
            cosines = self._compare(self._content.matrix[rows], vector)
        best = float(bm25.max(initial=0))
        if method == "hybrid":
            cosines = _COSINE_SHARE * cosines + (1 - _COSINE_SHARE) * bm25[rows] / (best or 1)
        return _select(cosines, rows, n_best)

    @staticmethod
    def _compare(matrix: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Cosines (N,) of unit rows, rounded: equal passages have equal scores, whichever block of BLAS they are in."""
        with np.errstate(over="ignore", invalid="ignore"):  # a damaged file may have any numbers
            cosines: NDArray[np.float32] = np.round(np.clip(matrix @ vector, -1, 1), _DECIMALS)
        return cosines

    @cached_property
    def _graph(self) -> ApproximateIndex | None:
        """The graph for approximate search, if there is one and usearch is installed; verified first."""
        file, manifest = self.folder / GRAPH, self._content.manifest
        if not file.is_file():
            return None
        checksums, recall = manifest.get("checksums"), manifest.get("recall_at_10")
        verify_file(self.folder, GRAPH, checksums if isinstance(checksums, dict) else {})
        try:
            return ApproximateIndex.load(file, self._content.matrix, recall if isinstance(recall, float) else None)
        except MissingExtra:
            return None

    def _split(self, text: str) -> list[str]:
        """The folded words of a text."""
        numbering = WordNumbering.like(self._content.vectors.vocabulary)
        numbers, _ = numbering.number([_replace_surrogates(text)])
        words = numbering.pop_new()
        return [words[number] for number in numbers.tolist()]

    def _make_hit(self, row: int, score: float, maker: SnippetMaker) -> Hit:
        if not np.isfinite(score):
            raise FormatError.expected("finite numbers", "NaN or infinity", path=self.folder, code="not-finite")
        content = self._content
        document = int(content.documents[row])
        first = int(np.searchsorted(content.documents, document))
        text = content.texts[row]
        snippet, highlights = maker.make(text)
        return Hit(score, content.ids[document], row - first, text, snippet, tuple(highlights))


def _select(scores: NDArray[np.float32], rows: NDArray[np.int64], n_best: int) -> Scored:
    best = top_k(scores, n_best)
    return [(int(rows[at]), float(scores[at])) for at in best.tolist() if not scores[at] <= 0]  # NaN is reported


def _replace_surrogates(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
