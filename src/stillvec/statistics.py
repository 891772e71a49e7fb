"""Sufficient statistics of a learner: named arrays whose prefix says how two of them merge.

`sum:`     one row per word, added        `max:` `min:`  one row per word, maximum or minimum
`total:`   added as a whole               `ragged:`      concatenated; `ragged:words` are rows of the vocabulary
`sample:`  the rows with the smallest keys per word
`stored:`  contexts for training: not merged, and not written to folders

Words without a context in the corpus are encoded in isolation. `sum:read` and `sum:alone` count contexts and isolated
readings of a word; the isolated one is dropped if the other side has contexts, so that parts merge into the whole.

`sample:` arrays are bottom-k samples (Cohen & Kaplan 2007): a key is a hash of the sampled item, so a sample does not
depend on the order, batches or parts of the rows, and samples of parts merge into the sample of the whole. Duplicate
keys are the same item and are used once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.vocabulary import Vocabulary

Array = NDArray[Any]
N_CONTEXTS, N_ISOLATED = "sum:read", "sum:alone"
ROWS = {"sum": (np.add, 0.0), "max": (np.maximum, -np.inf), "min": (np.minimum, np.inf)}
STORED = "stored:"
WORDS, KEYS, SIZE = "sample:words", "sample:keys", "sample:size"  # rows of the vocabulary, hashes, maximum per word
CONCATENATED = ("ragged", "sample")


@dataclass(frozen=True)
class Statistics:
    vocabulary: Vocabulary
    arrays: Mapping[str, Array]

    def __post_init__(self) -> None:
        if any(name.startswith("bag:") for name in self.arrays):  # the prefix in files of earlier versions
            arrays = {re.sub("^bag:", "ragged:", name): array for name, array in self.arrays.items()}
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
        message, cure = "Results of methods that train cannot be merged", "train on both corpora at once"
        raise UsageError.conflict(message, cure=cure)
    vocabulary = a.vocabulary.union(b.vocabulary) if vocabulary is None else vocabulary
    a, b = a.on(vocabulary), b.on(vocabulary)
    a, b = _drop_superseded(a, b), _drop_superseded(b, a)
    merged: dict[str, Array] = {}
    for name, one in a.arrays.items():
        other, kind = b.arrays[name], name.partition(":")[0]
        first = 1 if kind in CONCATENATED else 0  # may differ in length
        if one.shape[first:] != other.shape[first:]:
            shapes = f"{name!r} has the shapes {one.shape} and {other.shape}"
            raise UsageError.conflict(f"Results of different teachers cannot be merged: {shapes}")
        add = ROWS.get(kind, ROWS["sum"])[0]
        merged[name] = np.concatenate([one, other]) if kind in CONCATENATED else add(one, other)
    if WORDS in merged:
        merged |= _merge_samples(merged)
    return Statistics(vocabulary, merged)


def _drop_superseded(own: Statistics, other: Statistics) -> Statistics:
    """Drop words that were only read in isolation here if the other side has contexts of them."""
    if N_ISOLATED not in own.arrays:
        return own
    return _drop_words(own, (own[N_ISOLATED] > 0) & (other[N_CONTEXTS] > 0))


def drop_isolated(own: Statistics) -> Statistics:
    """Drop what was only read in isolation, unless that is all."""
    isolated = own[N_ISOLATED] > 0
    alone = isolated[own["ragged:words"]]
    return own if alone.all() or not alone.any() else _drop_words(own, isolated)


def _drop_words(own: Statistics, chosen: NDArray[np.bool_]) -> Statistics:
    """Drop words that were only read in isolation."""
    if not chosen.any():
        return own
    arrays = dict(own.arrays)
    for name, array in own.arrays.items():
        kind = name.partition(":")[0]
        if kind in ROWS:
            arrays[name] = np.where(chosen.reshape(-1, *[1] * (array.ndim - 1)), _empty(kind, array.dtype), array)
            arrays[name] = arrays[name].astype(array.dtype, copy=False)
    if "ragged:words" in arrays:  # an isolated word is a sentence of its own
        sentence = np.repeat(np.arange(len(own["ragged:lengths"])), own["ragged:lengths"])
        mask = np.ones(len(own["ragged:lengths"]), bool)
        mask[sentence[chosen[own["ragged:words"]]]] = False
        ragged = [name for name in arrays if name.startswith("ragged:") and name != "ragged:lengths"]
        arrays |= {name: own[name][mask[sentence]] for name in ragged} | {"ragged:lengths": own["ragged:lengths"][mask]}
    if WORDS in arrays:
        arrays |= _keep_samples(arrays, ~chosen[own[WORDS]])
    return Statistics(own.vocabulary, arrays)


def _keep_samples(arrays: Mapping[str, Array], mask: NDArray[np.bool_]) -> dict[str, Array]:
    """The sampled rows in the mask; no copy if these are all, since samples are large."""
    return {} if mask.all() else _rows_of(arrays, mask)


def _empty(kind: str, dtype: np.dtype[Any]) -> float | int:
    """The neutral value of a row."""
    if dtype.kind == "f" or kind == "sum":
        return ROWS[kind][1]
    return int(np.iinfo(dtype).min if kind == "max" else np.iinfo(dtype).max)


def smallest(words: Array, keys: Array, size: int) -> NDArray[np.int64]:
    """Indices of the `size` smallest distinct keys of each word, ordered by word and key."""
    order = np.lexsort((keys, words))
    words, keys = words[order], keys[order]
    duplicate = np.zeros(len(order), bool)
    duplicate[1:] = (words[1:] == words[:-1]) & (keys[1:] == keys[:-1])
    order, words = order[~duplicate], words[~duplicate]
    return np.asarray(order[places(words) < size])


def places(words: Array) -> NDArray[np.int64]:
    """0, 1, 2, … within each run of equal words."""
    indices = np.arange(len(words))
    begins = np.ones(len(words), bool)
    begins[1:] = words[1:] != words[:-1]
    return np.asarray(indices - np.maximum.accumulate(np.where(begins, indices, 0)))


def _merge_samples(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The sample of two concatenated samples; of two sizes the smaller."""
    size = arrays[SIZE].min(keepdims=True)
    best = smallest(arrays[WORDS], arrays[KEYS], int(size[0]))
    return _rows_of(arrays, best) | {SIZE: size}


def _rows_of(arrays: Mapping[str, Array], chosen: Array) -> dict[str, Array]:
    return {name: array[chosen] for name, array in arrays.items() if name.startswith("sample:") and name != SIZE}
