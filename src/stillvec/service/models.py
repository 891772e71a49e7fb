"""Sets of vectors by name, each with its exact search and, once it is built, an approximate one."""

from __future__ import annotations

import difflib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.service.approximate_search import Approximate
from stillvec.service.http_errors import Refusal
from stillvec.vectors import WordVectors

Search = Literal["exact", "approximate"]
Found = list[tuple[str, float]]
LARGE = 200_000  # words from which on the approximate search is the usual one
_ALIKE = 2000  # words that a misspelt one is compared with, at most


class Served:
    """One set of vectors under its name."""

    def __init__(self, name: str, vectors: WordVectors, tell: Callable[[str], None]) -> None:
        self.name = name
        self.vectors = vectors
        self.made = int(time.time())
        self.approximate: Approximate | None = None  # there once it is whole
        self._tell = tell
        self._asked = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()

    @property
    def usual(self) -> Search:
        return "approximate" if len(self.vectors) >= LARGE else "exact"

    @property
    def recall(self) -> float | None:
        return None if self.approximate is None else self.approximate.recall

    def prepare(self) -> None:
        """Do now what would make the first request wait; a large set begins to build its index."""
        self.vectors.encode(["ready"])
        self.vectors.nearest(np.zeros(self.vectors.dim, np.float32), 1)
        if self.usual == "approximate":
            self.begin()

    def begin(self) -> None:
        """Build the index in a thread, once."""
        with self._asked:
            if self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(target=self._build, name=f"index of {self.name}", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def known(self, word: str, param: str) -> str:
        """A word as the vocabulary writes it, an unseen one as it is if it has n-grams, or a refusal."""
        row = self.vectors.vocabulary.row(word)
        if row is None and word and self.vectors.subwords is not None:
            return word
        if row is None:
            shown = word if len(word) <= 60 else word[:57] + "..."
            message = f"The vectors {self.name!r} have no word {shown!r}; {self._hint(word)}"
            raise Refusal(404, message, param=param, code="word_not_found")
        return self.vectors.words[row]

    def nearest(
        self, query: NDArray[np.float32], k: int, itself: str | None, exact: bool | None
    ) -> tuple[Search, Found]:
        """Which search was used, and the words nearest to a vector; while an index is being built, the exact one is."""
        approximate = self.usual == "approximate" if exact is None else not exact
        if approximate:
            self.begin()
        index, vectors = self.approximate, self.vectors
        if not approximate or index is None or not query.any():
            return "exact", vectors.nearest(query, k, exclude=[] if itself is None else [itself])
        row = None if itself is None else vectors.vocabulary.row(itself)
        left_out = frozenset() if row is None else frozenset([row])
        return "approximate", [(vectors.words[row], cosine) for row, cosine in index.nearest(query, k, left_out)]

    def _build(self) -> None:
        begun = time.perf_counter()
        index = Approximate(self.vectors)
        if index.build(self._stopped.is_set):
            self.approximate = index
            seconds = time.perf_counter() - begun
            told = f"{len(self.vectors):,} words in {seconds:.1f} s, recall@10 {index.recall:.3f}"
            self._tell(f"approximate search of {self.name}: {told}")

    def _hint(self, word: str) -> str:
        """Bounded, unlike a search of the whole vocabulary: anybody may ask for words that do not exist."""
        asked = word.lower()
        near = (w for w in self.vectors.words[: 50 * _ALIKE] if w[:1] == asked[:1] and abs(len(w) - len(word)) < 3)
        alike = [*islice(near, _ALIKE)] if len(word) <= 60 else []
        close = difflib.get_close_matches(asked, alike, n=5)
        if not close:
            return "try another spelling."
        # of those equally alike the most frequent
        best = max(close, key=lambda w: (difflib.SequenceMatcher(None, w, asked).ratio(), -alike.index(w)))
        return f"did you mean {best!r}?"


class Sets(Mapping[str, Served]):
    """All that is served; the first is the one that is meant where none is named."""

    def __init__(self, given: Mapping[str, WordVectors], tell: Callable[[str], None] = lambda told: None) -> None:
        if not given:
            raise UsageError("At least one set of vectors is to be served, and none came.")
        self._sets = {name: Served(name, vectors, tell) for name, vectors in given.items()}

    def __getitem__(self, name: str) -> Served:
        return self._sets[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sets)

    def __len__(self) -> int:
        return len(self._sets)

    def named(self, name: str | None) -> Served:
        if name is None:
            return next(iter(self._sets.values()))
        if name not in self._sets:
            shown = name if len(name) <= 60 else name[:57] + "..."
            message = f"There are no vectors {shown!r} here; there are {', '.join(map(repr, self._sets))}."
            raise Refusal(404, message, param="model", code="model_not_found")
        return self._sets[name]

    def dims(self) -> list[int]:
        return sorted({served.vectors.dim for served in self._sets.values()})
