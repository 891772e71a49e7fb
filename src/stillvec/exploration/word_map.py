"""Maps: positions of the most frequent words in a plane, cached under a digest of their vectors, and clusters."""

import threading
import time
import warnings
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import StillvecError, UsageError
from stillvec.files import cache_folder, digest
from stillvec.files.private_files import private_file
from stillvec.numerics import kmeans, principal_plane, top_k, tsne, unit_rows
from stillvec.progress import Progress, drain
from stillvec.registry import require, require_all
from stillvec.vectors import WordVectors
from stillvec.vocabulary.folding import fold
from stillvec.vocabulary.function_words import find_function_words

MAX_WORDS = 50_000
_PERPLEXITY = 20.0
_N_UMAP_NEIGHBOURS = 15
_N_CLUSTERS = 20
_MIN_CLUSTER = 12  # words per cluster, on average
_N_CENTRAL = 8  # candidates for the name of a cluster
_N_NAMES = 3  # words that name it
_N_FREQUENT = 50  # words of a cluster that may name it, or its first tenth
_VERSION = 4  # of this algorithm: maps of another version are not read from the cache
_MAX_KEPT = 24  # maps in memory
_FAILURES = (StillvecError, OSError, MemoryError, ArithmeticError, ValueError, np.linalg.LinAlgError)

Floats = NDArray[np.float32]
Event = Callable[[str, int, int | None, str], Progress]
Steps = Generator[Progress, None, NDArray[Any]]


@dataclass(frozen=True)
class WordMap:
    positions: Floats  # (n, 2), of the first n words, or of the chosen ones
    labels: NDArray[np.int64]  # (n,), the cluster of each word
    central: NDArray[np.int64]  # (clusters, 8), rows of the most central frequent words, -1 where there are fewer
    preservation: float  # the share of a word's 10 nearest neighbours that are among its 10 nearest on the map

    def name_clusters(self, words: tuple[str, ...]) -> list[list[str]]:
        """Up to three central words of each cluster, of which no two begin alike (`animal`, `animals`)."""
        return [_choose_names([words[row] for row in rows if row >= 0]) for rows in self.central.tolist()]


def compute_map(
    vectors: WordVectors, max_words: int = MAX_WORDS, *, method: str = "tsne", rows: NDArray[np.int64] | None = None
) -> Generator[Progress, None, WordMap]:
    """The map of the most frequent words, or of some rows; from the cache if it was computed before."""
    start = time.perf_counter()
    project = find_projection(method)
    rows = np.arange(min(max_words, len(vectors))) if rows is None else rows
    unit = unit_rows(vectors.matrix[rows], np.float32)
    nameable = find_content_words(vectors)[rows]
    facts = f"map {_VERSION} {method} {unit.shape} {_PERPLEXITY} {_N_UMAP_NEIGHBOURS} {_N_CLUSTERS} {tsne.N_STEPS}"
    key = digest(iter([facts.encode(), np.packbits(nameable).tobytes(), np.ascontiguousarray(unit).tobytes()]))
    path = cache_folder() / "maps" / f"{key}.npz"
    cached = _read_cache(path, len(unit))
    if cached is not None:
        return cached

    def event(stage: str, done: int, total: int | None, counted: str) -> Progress:
        return Progress(stage, done, total, counted, time.perf_counter() - start)

    yield event("computing the map", 0, None, "")
    n_clusters = int(np.clip(len(unit) // _MIN_CLUSTER, 1, _N_CLUSTERS))
    labels, central = find_clusters(unit, n_clusters, nameable)
    few = len(unit) < 5  # have no neighbourhood
    positions = principal_plane(unit) if few else (yield from project(unit, event))
    preservation = 1.0 if few else tsne.neighbour_preservation(unit, positions)
    result = WordMap(_fit_square(positions), labels, central, preservation)
    with private_file(path) as part, open(part, "wb") as stream:
        np.savez(stream, **vars(result))
    return result


def _project_tsne(unit: Floats, event: Event) -> Steps:
    k = min(int(3 * _PERPLEXITY), len(unit) - 1)
    near, distances = np.zeros((len(unit), k), np.int64), np.zeros((len(unit), k), np.float32)
    yield event("finding neighbours", 0, len(unit), "words")
    for rows, near[rows], distances[rows] in tsne.find_neighbours(unit, k):
        yield event("finding neighbours", rows.stop, len(unit), "words")
    probabilities = tsne.joint_probabilities(near, distances, min(_PERPLEXITY, k / 3))
    positions: NDArray[Any] = np.zeros((len(unit), 2))
    for step, latest in enumerate(tsne.optimise(unit, probabilities, tsne.N_STEPS), 1):
        positions = latest
        yield event("computing the map", step, tsne.N_STEPS, "steps")
    return positions


def _project_pca(unit: Floats, event: Event) -> Steps:
    yield event("computing the map", 0, None, "")
    return principal_plane(unit)


def _project_umap(unit: Floats, event: Event) -> Steps:
    """UMAP (McInnes et al. 2018) by umap-learn; distances of unit rows order neighbours as their cosines do."""
    umap = require("umap", "umap", "A UMAP map")
    yield event("computing the map", 0, None, "")
    n_near = min(_N_UMAP_NEIGHBOURS, len(unit) - 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numba, and that a seed needs one thread
        reducer = umap.UMAP(n_neighbors=n_near, init=principal_plane(unit).astype(np.float32), random_state=0, n_jobs=1)
        return np.asarray(reducer.fit_transform(unit))


PROJECTIONS: Mapping[str, Callable[[Floats, Event], Steps]] = {
    "tsne": _project_tsne,
    "umap": _project_umap,
    "pca": _project_pca,
}
DEFAULT_PROJECTIONS = ("tsne", "pca")  # that need no further package


def find_projection(method: str) -> Callable[[Floats, Event], Steps]:
    """The function of a projection, whose packages are checked before the work."""
    if method not in PROJECTIONS:
        raise UsageError.unknown("projection", method, PROJECTIONS)
    if method == "umap":
        require_all({"umap": "umap"}, "A UMAP map")
    return PROJECTIONS[method]


def find_content_words(vectors: WordVectors) -> NDArray[np.bool_]:
    """Whether each word may name a cluster: letters, three or more, and no function word."""
    function_words = find_function_words(vectors.words)
    return np.array([len(w) > 2 and w.isalpha() and fold(w, True) not in function_words for w in vectors.words], bool)


def find_clusters(
    unit: Floats, n_clusters: int, nameable: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Spherical k-means of unit rows: the cluster of each row (n,), and the central rows of each cluster (c, 8)."""
    n_clusters = min(n_clusters, len(unit))
    labels, centres, _ = kmeans(unit, n_clusters, np.random.default_rng(0), n_rounds=25, spherical=True)
    central = np.full((n_clusters, _N_CENTRAL), -1, np.int64)
    for cluster in range(n_clusters):
        members = np.flatnonzero(labels == cluster)  # by frequency: a rare word is no good name
        content = members if nameable is None else members[nameable[members]]
        members = content if 3 * len(content) >= len(members) else members  # a cluster of numbers is named by numbers
        members = members[: max(_N_FREQUENT, len(members) // 10)]
        best = members[top_k(unit[members] @ centres[cluster], _N_CENTRAL)]
        central[cluster, : len(best)] = best
    return labels, central


def _choose_names(words: list[str]) -> list[str]:
    names: list[str] = []
    for word in words:
        if not any(_begin_alike(word, name) for name in names):
            names.append(word)
    return names[:_N_NAMES]


def _begin_alike(a: str, b: str) -> bool:
    n_same = next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return n_same >= max(3, 0.6 * min(len(a), len(b)))


def _read_cache(path: Path, n_words: int) -> WordMap | None:
    """A cached map; None if there is none or the file cannot be read."""
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            table = {name: arrays[name] for name in ("positions", "labels", "central")}
            cached = WordMap(**table, preservation=float(arrays["preservation"]))
    except Exception:  # a damaged archive fails in many ways, and only costs time
        return None
    return cached if cached.positions.shape == (n_words, 2) else None


def _fit_square(positions: NDArray[Any]) -> NDArray[np.float32]:
    """Scale both directions alike into [-1, 1]²."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    half = max(float((high - low).max()) / 2, np.finfo(np.float32).tiny)
    return np.asarray((positions - (low + high) / 2) / half, np.float32)


Key = tuple[str, str, str]  # set, projection, and the chosen rows as text


@dataclass(frozen=True)
class MapCache:
    """Maps, each computed once, in a background thread and one at a time."""

    maps: dict[Key, Progress | WordMap | Exception] = field(default_factory=dict)
    _starting: threading.Lock = field(default_factory=threading.Lock)
    _computing: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: Key, vectors: WordVectors, rows: NDArray[np.int64] | None = None) -> Progress | WordMap:
        """A map, or the progress of computing it, which the first call starts."""
        find_projection(key[1])
        with self._starting:
            if key not in self.maps:
                self._drop_oldest()
                self.maps[key] = Progress("waiting for another map", 0, None, "", 0.0)
                threading.Thread(target=self._compute, args=(key, vectors, rows), daemon=True).start()
            state = self.maps[key]
        if isinstance(state, Exception):
            raise UsageError(f"Cannot compute the map of {key[0]}: {state}", code="map-failed")
        return state

    def _drop_oldest(self) -> None:
        done = [key for key, state in self.maps.items() if key[2] and not isinstance(state, Progress)]
        for key in done[: max(0, len(self.maps) + 1 - _MAX_KEPT)]:
            del self.maps[key]  # it is on the disk

    def _compute(self, key: Key, vectors: WordVectors, rows: NDArray[np.int64] | None) -> None:
        with self._computing:
            try:
                steps = compute_map(vectors, method=key[1], rows=rows)
                self.maps[key] = drain(steps, lambda event: self.maps.update({key: event}))
            except _FAILURES as error:
                self.maps[key] = error
