"""The map: the most frequent words in a plane, once, kept under a digest of their vectors; and their clusters."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.exploration import tsne_layout
from stillvec.files import atomic_file, cache_folder, digest
from stillvec.progress import Progress
from stillvec.vectors import WordVectors

MOST_WORDS = 50_000
_PERPLEXITY = 20.0
_CLUSTERS = 20
_NAMED_BY = 3  # words
_FREQUENT = 50  # words of a cluster, or the first tenth of them, that may name it
_VERSION = 2  # of what is below: another number, and old maps are not found


@dataclass(frozen=True)
class WordMap:
    places: NDArray[np.float32]  # (n, 2) of the first n words
    cluster: NDArray[np.int32]  # (n,)
    central: NDArray[np.int32]  # (clusters, 3) rows of their most central frequent words, -1 where a cluster has fewer
    kept: float  # of the ten nearest of a word, the share that is among its ten nearest here


def mapping(vectors: WordVectors, most: int = MOST_WORDS) -> Iterator[Progress | WordMap]:
    """Signs of life, then the map; one that was laid before comes at once."""
    start = time.perf_counter()
    unit = _unit(vectors, most)
    place = cache_folder() / "maps" / f"{_name(unit)}.npz"
    before = _laid_before(place, len(unit))
    if before is not None:
        yield before
        return

    def step(stage: str, done: int, total: int, unit_: str) -> Progress:
        return Progress(stage, done, total, unit_, time.perf_counter() - start)

    yield step("finding neighbours", 0, len(unit), "words")
    cluster, central = clusters(unit, _CLUSTERS)
    points = tsne_layout.components(unit)
    places = np.zeros((len(unit), 2), np.float32)
    k, kept = min(int(3 * _PERPLEXITY), len(unit) - 1), 1.0
    if k > 3:
        near, far, done = np.zeros((len(unit), k), np.int64), np.zeros((len(unit), k), np.float32), 0
        for rows, found, distances in tsne_layout.neighbours(unit, k):
            near[rows], far[rows], done = found, distances, done + len(rows)
            yield step("finding neighbours", done, len(unit), "words")
        joined = tsne_layout.shares(near, far, min(_PERPLEXITY, k / 3))
        start = time.perf_counter()
        for done, now in enumerate(tsne_layout.optimise(points, joined, tsne_layout.STEPS), 1):
            places = now
            yield step("laying the map", done, tsne_layout.STEPS, "steps")
        kept = tsne_layout.neighbour_preservation(near, far, places)
    else:  # too few to have a neighbourhood
        places[:, : points.shape[1]] = points[:, :2]
    laid = WordMap(_fitted(places), cluster, central, kept)
    with atomic_file(place) as part, open(part, "wb") as stream:
        np.savez(stream, places=laid.places, cluster=laid.cluster, central=laid.central, kept=laid.kept)
    yield laid


def clusters(unit: NDArray[np.float32], count: int, rounds: int = 25) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Spherical k-means (Dhillon & Modha 2001) from one seed: the cluster of each row (n,), and its central rows."""
    count = min(count, len(unit))
    draw = np.random.default_rng(0)
    centres = unit[_apart(unit, count, draw)]  # (c, d)
    for _ in range(rounds):
        member = (unit @ centres.T).argmax(axis=1)
        sums = np.zeros_like(centres)
        np.add.at(sums, member, unit)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.where(lengths > 0, sums / np.maximum(lengths, 1e-12), centres)
    near = unit @ centres.T
    member = near.argmax(axis=1)
    central = np.full((count, _NAMED_BY), -1, np.int32)
    for each in range(count):
        inside = np.flatnonzero(member == each)  # in order of frequency: a rare word is no good name
        inside = inside[: max(_FREQUENT, len(inside) // 10)]
        best = inside[np.argsort(-near[inside, each], kind="stable")[:_NAMED_BY]]
        central[each, : len(best)] = best
    return member.astype(np.int32), central


def _apart(unit: NDArray[np.float32], count: int, draw: np.random.Generator) -> list[int]:
    """k-means++ (Arthur & Vassilvitskii 2007): a start is drawn the likelier, the farther it is from those drawn."""
    chosen = [0]
    far = np.maximum(1 - unit @ unit[0], 0).astype(np.float64)
    for _ in range(count - 1):
        total = far.sum()
        at = int(draw.choice(len(unit), p=far / total)) if total > 0 else len(chosen) % len(unit)
        chosen.append(at)
        far = np.minimum(far, np.maximum(1 - unit @ unit[at], 0))
    return chosen


def _unit(vectors: WordVectors, most: int) -> NDArray[np.float32]:
    rows = np.array(vectors.matrix[:most], np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1))


def _name(unit: NDArray[np.float32]) -> str:
    facts = f"map {_VERSION} {unit.shape} {_PERPLEXITY} {_CLUSTERS} {tsne_layout.STEPS}"
    return digest(iter([facts.encode(), np.ascontiguousarray(unit).tobytes()]))


def _laid_before(place: Path, words: int) -> WordMap | None:
    """What was laid before; a file that cannot be read is laid anew."""
    try:
        with open(place, "rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            found = WordMap(arrays["places"], arrays["cluster"], arrays["central"], float(arrays["kept"]))
    except Exception:  # a damaged archive fails in as many ways as it has bytes, and only costs time
        return None
    return found if found.places.shape == (words, 2) else None


def _fitted(places: NDArray[Any]) -> NDArray[np.float32]:
    """Into a square of side two around zero, both directions on one scale."""
    low, high = places.min(axis=0), places.max(axis=0)
    half = max(float((high - low).max()) / 2, np.finfo(np.float32).tiny)
    return np.asarray((places - (low + high) / 2) / half, np.float32)
