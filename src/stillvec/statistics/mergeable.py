"""Sufficient statistics of a learner: named arrays whose prefix says how two of them merge.

`sum:`     one row per word, added        `max:` `min:`  one row per word, maximum or minimum
`total:`   added as a whole               `ragged:`      concatenated; `ragged:words` are rows of the vocabulary
`sample:`  the rows with the smallest keys per word (`sampling`)
`stored:`  contexts for training: not merged, and not written to folders

Words without a context in the corpus are encoded in isolation. `sum:read` and `sum:alone` count contexts and isolated
readings of a word; the isolated one is dropped if the other side has contexts, so that parts merge into the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.statistics.sampling import WORDS, merge_samples, rows_of
from stillvec.vocabulary import Vocabulary

Array = NDArray[Any]
N_CONTEXTS, N_ISOLATED = "sum:read", "sum:alone"
ROWS = {"sum": (np.add, 0.0), "max": (np.maximum, -np.inf), "min": (np.minimum, np.inf)}
STORED = "stored:"
CONCATENATED = ("ragged", "sample")
_RENAMED = {"bag:": "ragged:"}  # prefixes in files of earlier versions


@dataclass(frozen=True)
class Statistics:
    vocabulary: Vocabulary
    arrays: Mapping[str, Array]

    def __post_init__(self) -> None:
        for old, new in _RENAMED.items():
            if any(name.startswith(old) for name in self.arrays):
                arrays = {
                    new + name.removeprefix(old) if name.startswith(old) else name: self[name] for name in self.arrays
                }
                object.__setattr__(self, "arrays", arrays)

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def on(self, vocabulary: Vocabulary) -> Statistics:
        """The statistics with the rows of another vocabulary; missing words are dropped, new ones are empty.

        Ragged arrays are whole sentences: none of their words can be dropped.
        """
        if vocabulary is self.vocabulary:
            return self
        rows = vocabulary.rows_in(self.vocabulary)
        here, there = np.flatnonzero(rows >= 0), rows[rows >= 0]
        moved = dict(self.arrays)
        for name, array in self.arrays.items():
            kind = name.partition(":")[0]
            if kind in ROWS:
                moved[name] = np.full((len(vocabulary), *array.shape[1:]), _empty(kind, array.dtype), array.dtype)
                moved[name][here] = array[there]
        if "ragged:words" in moved:
            moved["ragged:words"] = self.vocabulary.rows_in(vocabulary)[self["ragged:words"]].astype(np.int32)
            if (moved["ragged:words"] < 0).any():
                word = self.vocabulary.words[self["ragged:words"][moved["ragged:words"] < 0][0]]
                raise UsageError.conflict(f"The vocabulary lacks {word!r}, a word of these statistics")
        if WORDS in moved:
            moved[WORDS] = self.vocabulary.rows_in(vocabulary)[self[WORDS]].astype(np.int32)
            moved |= _keep_samples(moved, moved[WORDS] >= 0)
        return Statistics(vocabulary, moved)


def merge(a: Statistics, b: Statistics, vocabulary: Vocabulary | None = None) -> Statistics:
    """Merge two statistics, on the union of their vocabularies unless a common one is given."""
    if a.arrays.keys() != b.arrays.keys():
        name = min(a.arrays.keys() ^ b.arrays.keys())
        raise UsageError.conflict(f"Results of different methods or settings cannot be merged: only one has {name!r}")
    if any(name.startswith(STORED) for name in a.arrays):
        raise UsageError.conflict(
            "Results of methods that train cannot be merged", cure="train on both corpora at once"
        )
    vocabulary = a.vocabulary.union(b.vocabulary) if vocabulary is None else vocabulary
    a, b = a.on(vocabulary), b.on(vocabulary)
    a, b = _drop_superseded(a, b), _drop_superseded(b, a)
    merged: dict[str, Array] = {}
    for name, one in a.arrays.items():
        other, kind = b.arrays[name], name.partition(":")[0]
        first = 1 if kind in CONCATENATED else 0  # may differ in length
        if one.shape[first:] != other.shape[first:]:
            raise UsageError.conflict(
                f"Results of different teachers cannot be merged: {name!r} has the shapes {one.shape} and {other.shape}"
            )
        merged[name] = (
            np.concatenate([one, other]) if kind in CONCATENATED else ROWS.get(kind, ROWS["sum"])[0](one, other)
        )
    if WORDS in merged:
        merged |= merge_samples(merged)
    return Statistics(vocabulary, merged)


def _drop_superseded(own: Statistics, other: Statistics) -> Statistics:
    """Drop words that were only read in isolation here if the other side has contexts of them."""
    if N_ISOLATED not in own.arrays:
        return own
    superseded = (own[N_ISOLATED] > 0) & (other[N_CONTEXTS] > 0)
    if not superseded.any():
        return own
    arrays = dict(own.arrays)
    for name, array in own.arrays.items():
        kind = name.partition(":")[0]
        if kind in ROWS:
            arrays[name] = np.where(superseded.reshape(-1, *[1] * (array.ndim - 1)), _empty(kind, array.dtype), array)
            arrays[name] = arrays[name].astype(array.dtype, copy=False)
    if "ragged:words" in arrays:  # an isolated word is a sentence of its own
        sentence = np.repeat(np.arange(len(own["ragged:lengths"])), own["ragged:lengths"])
        mask = np.ones(len(own["ragged:lengths"]), bool)
        mask[sentence[superseded[own["ragged:words"]]]] = False
        ragged = [name for name in arrays if name.startswith("ragged:") and name != "ragged:lengths"]
        arrays |= {name: own[name][mask[sentence]] for name in ragged} | {"ragged:lengths": own["ragged:lengths"][mask]}
    if WORDS in arrays:
        arrays |= _keep_samples(arrays, ~superseded[own[WORDS]])
    return Statistics(own.vocabulary, arrays)


def _keep_samples(arrays: Mapping[str, Array], mask: NDArray[np.bool_]) -> dict[str, Array]:
    """The sampled rows in the mask; no copy if these are all, since samples are large."""
    return {} if mask.all() else rows_of(arrays, mask)


def _empty(kind: str, dtype: np.dtype[Any]) -> float | int:
    """The neutral value of a row."""
    if dtype.kind == "f" or kind == "sum":
        return ROWS[kind][1]
    return int(np.iinfo(dtype).min if kind == "max" else np.iinfo(dtype).max)
