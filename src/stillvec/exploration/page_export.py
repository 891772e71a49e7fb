"""What a page without a server holds: the most frequent words, vectors as bytes, maps, and all that a card tells."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from stillvec.errors import UsageError
from stillvec.exploration.explorer import PER_LAYER, Explorer
from stillvec.exploration.word_map import WordMap, mapping
from stillvec.progress import Progress
from stillvec.report.html_markup import plain
from stillvec.vectors import WordVectors

PER_WORD = 3  # sentences
_COMPARED = 200  # words whose cosines are compared before and after rounding


def exporting(explorer: Explorer, most: int = 5000, map_too: bool = True) -> Iterator[Progress | dict[str, Any]]:
    """Signs of life, then the data of a page."""
    if most < 10:
        raise UsageError(f"At least 10 words are written, and {most} were asked for.")
    data = explorer.about() | {"data": [], "maps": {}, "relations": {}, "parts": {}}
    for (name, vectors), told in zip(explorer.sets.items(), data["sets"], strict=True):
        words = [plain(word) for word in vectors.words[:most]]
        told["whole"], told["words"] = told["words"], len(words)
        packed, told["off"] = _packed(vectors, words)
        data["data"].append(packed)
        for state in mapping(vectors, most) if map_too else ():
            if isinstance(state, WordMap):
                data["maps"][name] = explorer.packed_map(name, state) | {"words": None}  # the words of the set
            else:
                yield state
        if explorer.relations is not None:
            data["relations"] |= {word: found for word in words if (found := explorer.related(word))}
            data["parts"] |= {word: part for word in words if (part := explorer.relations.part(word))}
    every = [*dict.fromkeys(word for each in data["data"] for word in each["words"])]
    data["layers"] = {name: _near(vectors, every) for name, vectors in explorer.layers.items()}
    yield from _sentences(explorer, every, data)
    yield data


def _sentences(explorer: Explorer, words: list[str], data: dict[str, Any]) -> Iterator[Progress]:
    if explorer.reader is None:
        return
    begun = time.perf_counter()
    lowercase = next(iter(explorer.sets.values())).vocabulary.lowercase
    for seen in explorer.reader.of_many(words, lowercase, PER_WORD):
        data["sentences"], data["read"], data["ended"] = seen.found, seen.read, seen.ended
        yield Progress("finding sentences", seen.read, None, "sentences", time.perf_counter() - begun)


def _near(vectors: WordVectors, words: list[str]) -> dict[str, list[str]]:
    """The neighbours of each word that the vectors of a layer have."""
    known = [word for word in words if word in vectors]
    found = vectors.nearest_batch(known, PER_LAYER)
    return {word: [plain(other) for other, _ in near] for word, near in zip(known, found, strict=True)}


def _packed(vectors: WordVectors, words: list[str]) -> tuple[dict[str, Any], float]:
    """Rows as bytes, each scaled to its largest number: lengths do not matter to a cosine, and are told apart.

    And how far a cosine is off by it, at most, among those of some words with all.
    """
    rows = np.asarray(vectors.matrix[: len(words)], np.float32)
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0)
    quantised = np.round(rows / np.where(largest > 0, largest, 1) * 127).astype(np.int8)
    norms = np.linalg.norm(rows, axis=1).astype("<f4")
    encoded = {name: base64.b64encode(array.tobytes()).decode() for name, array in (("q", quantised), ("n", norms))}
    counts = vectors.vocabulary.counts[: len(words)].tolist()
    before, after = (_units(each.astype(np.float32)) for each in (rows, quantised))
    some = np.random.default_rng(0).permutation(len(rows))[:_COMPARED]
    off = float(np.abs(before[some] @ before.T - after[some] @ after.T).max())
    return {"words": words, "counts": counts, "lowercase": vectors.vocabulary.lowercase, **encoded}, off


def _units(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1))
