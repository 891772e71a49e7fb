"""Sets of vectors by name, each with exact search and, once its index is built, approximate search."""

import difflib
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from itertools import islice
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.heads.fitted_head import Head
from stillvec.heads.predictions import describe_predictions
from stillvec.search import SearchIndex
from stillvec.search.approximate_search import ApproximateIndex
from stillvec.service.http_errors import RequestError
from stillvec.service.schemas import Search
from stillvec.vectors import ORDERED, WordVectors
from stillvec.vocabulary.inflections import NeighbourGroups

ScoredWords = list[tuple[str, float]]
LARGE = 200_000  # words from which approximate search is the default
_MAX_CANDIDATES = 2000  # words that a misspelt one is compared with
_MAX_SHOWN = 60  # characters of a name in a message


class ServedModel:
    """One set of vectors and its searches."""

    def __init__(self, name: str, vectors: WordVectors, notify: Callable[[str], None]) -> None:
        self.name = name
        self.vectors = vectors
        self.loaded_at = int(time.time())
        self.index: ApproximateIndex | None = None  # set once it is complete
        self._notify = notify
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()

    @property
    def default_search(self) -> Search:
        return "approximate" if len(self.vectors) >= LARGE else "exact"

    @property
    def recall(self) -> float | None:
        return None if self.index is None else self.index.recall

    @cached_property
    def ordered(self) -> bool:
        """Whether a quarter of the dimensions has most of the variance that it could have."""
        return self.vectors.measure_order(max(1, self.vectors.dim // 4)) >= ORDERED

    def prepare(self) -> None:
        """Do now what would delay the first request; a large set starts to build its index."""
        self.vectors.encode(["ready"])
        _ = self.ordered
        self.vectors.nearest(np.zeros(self.vectors.dim, np.float32), 1)
        if self.default_search == "approximate":
            self.start_index()

    def start_index(self) -> None:
        """Build the index in a thread, once."""
        with self._lock:
            if self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(target=self._build, name=f"index of {self.name}", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def resolve_word(self, word: str, param: str) -> str:
        """A word as the vocabulary writes it; an unseen one unchanged if the vectors have n-grams, else an error."""
        row = self.vectors.vocabulary.row(word)
        if row is not None:
            return self.vectors.words[row]
        if word and self.vectors.subwords is not None:
            return word
        message = f"{_shorten(word)!r} is not in the vocabulary of {self.name!r}; {self._suggest(word)}"
        raise RequestError(404, message, param=param, code="word_not_found")

    def nearest(
        self, query: NDArray[np.float32], k: int, word: str | None, exact: bool | None
    ) -> tuple[Search, ScoredWords]:
        """The search that was used and the nearest words, without `word`; exact while the index is not complete."""
        approximate = self.default_search == "approximate" if exact is None else not exact
        if approximate:
            self.start_index()
        index, vectors = self.index, self.vectors
        if not approximate or index is None or not query.any():
            return "exact", vectors.nearest(query, k, exclude=[] if word is None else [word])
        row = None if word is None else vectors.vocabulary.row(word)
        exclude = frozenset() if row is None else frozenset([row])
        return "approximate", [(vectors.words[row], cosine) for row, cosine in index.nearest(query, k, exclude)]

    def nearest_groups(
        self, query: NDArray[np.float32], k: int, word: str | None, exact: bool | None
    ) -> tuple[Search, NeighbourGroups]:
        """The same with one entry per word, and its inflections."""
        searches: list[Search] = []

        def find(n_neighbours: int) -> ScoredWords:
            search, found = self.nearest(query, min(n_neighbours, len(self.vectors)), word, exact)
            searches.append(search)
            return found

        groups = self.vectors.inflections.group(find, k, [] if word is None else [word])
        return searches[-1], groups

    def _build(self) -> None:
        start = time.perf_counter()
        index = ApproximateIndex(self.vectors.matrix)
        if index.build(self._stopped.is_set):
            self.index = index
            facts = f"{len(self.vectors):,} words in {time.perf_counter() - start:.1f} s"
            self._notify(f"{self.name}: built the index for approximate search, {facts}, recall@10 {index.recall:.3f}")

    def _suggest(self, word: str) -> str:
        """The nearest spelling among a bounded number of words: anyone may ask for words that do not exist."""
        key = word.lower()
        if other_case := [
            form for form in (key, key.capitalize(), key.upper()) if form in self.vectors.vocabulary.index
        ]:
            return f"did you mean {other_case[0]!r}?"
        similar = (
            known
            for known in self.vectors.words[: 50 * _MAX_CANDIDATES]
            if known[:1] == key[:1] and abs(len(known) - len(word)) < 3
        )
        candidates = [*islice(similar, _MAX_CANDIDATES)] if len(word) <= _MAX_SHOWN else []
        close = difflib.get_close_matches(key, candidates, n=5)
        if not close:
            return "try another spelling."
        best = max(close, key=lambda known: (_similarity(known, key), -candidates.index(known)))  # ties: by frequency
        return f"did you mean {best!r}?"


class ServedHead:
    """A head, which predicts labels with vectors of its own."""

    def __init__(self, name: str, head: Head) -> None:
        self.name = name
        self.head = head
        self.vectors = head.vectors
        self.loaded_at = int(time.time())

    def prepare(self) -> None:
        """Do now what would delay the first request."""
        describe_predictions(self.head, [self.head.example])
        describe_predictions(self.head, [self.head.example], explain=True)


class ServedModels(dict[str, ServedModel]):
    """Everything that is served: sets of vectors, and heads. A request that names none uses the first."""

    def __init__(
        self,
        vectors: Mapping[str, WordVectors],
        notify: Callable[[str], None] = lambda _: None,
        index: SearchIndex | None = None,
        heads: Mapping[str, Head] | None = None,
    ) -> None:
        self.heads = {name: ServedHead(name, head) for name, head in (heads or {}).items()}
        if not vectors and not self.heads:
            raise UsageError.expected("at least one set of vectors or head", "none")
        super().__init__({name: ServedModel(name, table, notify) for name, table in vectors.items()})
        self.index = index  # of documents, for /v1/search

    def find(self, name: str | None, *, any_name: bool = False) -> ServedModel:
        """The model of this name; with `any_name`, a single model has every name."""
        if name is None or (any_name and len(self) == 1):
            return next(iter(self.values()))
        return self[name] if name in self else _refuse_name(name, "a set of vectors", self, self.heads)

    def find_head(self, name: str | None) -> ServedHead:
        """The head of this name; None: the first."""
        name = next(iter(self.heads)) if name is None else name
        return self.heads[name] if name in self.heads else _refuse_name(name, "a head", self.heads, self)

    def describe(self, name: str) -> ServedModel | ServedHead:
        """Vectors or a head."""
        models = self.list_all()
        return models[name] if name in models else _refuse_name(name, "a model", models, {})

    def list_all(self) -> "dict[str, ServedModel | ServedHead]":
        """Vectors, then heads."""
        return {**self, **self.heads}

    def dims(self) -> list[int]:
        return sorted({model.vectors.dim for model in self.values()})


def _refuse_name(name: str, kind: str, names: Iterable[str], others: Collection[str]) -> NoReturn:
    known = f"expected one of {', '.join(map(repr, names))}"
    message = f"{name!r} is not {kind}; {known}." if name in others else f"Unknown model {_shorten(name)!r}; {known}."
    raise RequestError(404, message, param="model", code="model_not_found")


def _similarity(a: str, b: str) -> float:
    return difflib.SequenceMatcher(None, a, b).ratio()


def _shorten(name: str) -> str:
    return name if len(name) <= _MAX_SHOWN else name[: _MAX_SHOWN - 3] + "..."
