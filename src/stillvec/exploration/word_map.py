"""The map: positions of the most frequent words in a plane, cached under a digest of their vectors, and clusters."""

import threading
import time
from collections.abc import Generator
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
from stillvec.vectors import WordVectors

MAX_WORDS = 50_000
_PERPLEXITY = 20.0
_N_CLUSTERS = 20
_N_CENTRAL = 3  # words that name a cluster
_N_FREQUENT = 50  # words of a cluster that may name it, or its first tenth
_VERSION = 3  # of this algorithm: maps of another version are not read from the cache
_FAILURES = (StillvecError, OSError, MemoryError, ArithmeticError, ValueError, np.linalg.LinAlgError)


@dataclass(frozen=True)
class WordMap:
    positions: NDArray[np.float32]  # (n, 2), of the first n words
    labels: NDArray[np.int64]  # (n,), the cluster of each word
    central: NDArray[np.int64]  # (clusters, 3), rows of the most central frequent words, -1 where there are fewer
    preservation: float  # the share of a word's 10 nearest neighbours that are among its 10 nearest on the map


def compute_map(vectors: WordVectors, max_words: int = MAX_WORDS) -> Generator[Progress, None, WordMap]:
    """The map of the most frequent words, from the cache if it was computed before."""
    start = time.perf_counter()
    unit = unit_rows(vectors.matrix[:max_words], np.float32)
    facts = f"map {_VERSION} {unit.shape} {_PERPLEXITY} {_N_CLUSTERS} {tsne.N_STEPS}"
    key = digest(iter([facts.encode(), np.ascontiguousarray(unit).tobytes()]))
    path = cache_folder() / "maps" / f"{key}.npz"
    cached = _read_cache(path, len(unit))
    if cached is not None:
        return cached

    def event(stage: str, done: int, total: int, counted: str) -> Progress:
        return Progress(stage, done, total, counted, time.perf_counter() - start)

    yield event("finding neighbours", 0, len(unit), "words")
    labels, central = find_clusters(unit, _N_CLUSTERS)
    positions = principal_plane(unit).astype(np.float32)
    k, preservation = min(int(3 * _PERPLEXITY), len(unit) - 1), 1.0
    if k > 3:  # fewer words have no neighbourhood
        near, distances = np.zeros((len(unit), k), np.int64), np.zeros((len(unit), k), np.float32)
        for rows, near[rows], distances[rows] in tsne.find_neighbours(unit, k):
            yield event("finding neighbours", rows.stop, len(unit), "words")
        probabilities = tsne.joint_probabilities(near, distances, min(_PERPLEXITY, k / 3))
        start = time.perf_counter()
        for step, latest in enumerate(tsne.optimise(unit, probabilities, tsne.N_STEPS), 1):
            positions = latest
            yield event("computing the map", step, tsne.N_STEPS, "steps")
        preservation = tsne.neighbour_preservation(near, positions)
    result = WordMap(_fit_square(positions), labels, central, preservation)
    with private_file(path) as part, open(part, "wb") as stream:
        np.savez(stream, **vars(result))
    return result


def find_clusters(unit: NDArray[np.float32], n_clusters: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Spherical k-means of unit rows: the cluster of each row (n,), and the central rows of each cluster (c, 3)."""
    n_clusters = min(n_clusters, len(unit))
    labels, centres, _ = kmeans(unit, n_clusters, np.random.default_rng(0), n_rounds=25, spherical=True)
    central = np.full((n_clusters, _N_CENTRAL), -1, np.int64)
    for cluster in range(n_clusters):
        members = np.flatnonzero(labels == cluster)  # by frequency: a rare word is no good name
        members = members[: max(_N_FREQUENT, len(members) // 10)]
        best = members[top_k(unit[members] @ centres[cluster], _N_CENTRAL)]
        central[cluster, : len(best)] = best
    return labels, central


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


@dataclass(frozen=True)
class MapCache:
    """The maps of several sets, each computed once, in a background thread and one at a time."""

    maps: dict[str, Progress | WordMap | Exception] = field(default_factory=dict)
    _starting: threading.Lock = field(default_factory=threading.Lock)
    _computing: threading.Lock = field(default_factory=threading.Lock)

    def get(self, name: str, vectors: WordVectors) -> Progress | WordMap:
        """The map of a set, or the progress of computing it, which the first call starts."""
        with self._starting:
            if name not in self.maps:
                self.maps[name] = Progress("waiting for another map", 0, None, "", 0.0)
                threading.Thread(target=self._compute, args=(name, vectors), daemon=True).start()
            state = self.maps[name]
        if isinstance(state, Exception):
            raise UsageError(f"Cannot compute the map of {name}: {state}", code="map-failed")
        return state

    def _compute(self, name: str, vectors: WordVectors) -> None:
        with self._computing:
            try:
                self.maps[name] = drain(compute_map(vectors), lambda event: self.maps.update({name: event}))
            except _FAILURES as error:
                self.maps[name] = error
