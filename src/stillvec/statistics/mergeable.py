"""What a learner keeps of the pass, as plain arrays whose names say how two of them become one.

`sum:`    a row a word, added            `max:` `min:`  a row a word, the larger or smaller
`total:`  added as a whole               `bag:`         laid end to end; `bag:words` are rows of the vocabulary
`stored:`   contexts that are trained on: they do not merge, and are not written beside the vectors
`sample:` the rows with the smallest keys of each word, of both (`sampling`)

Words that a corpus lacks are read alone. `sum:read` and `sum:alone` count both readings of a word; what was read alone
gives way when the other side has met the word in its corpus, so that the parts of a corpus merge into the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.statistics.sampling import WORDS, rows_of, sampled
from stillvec.vocabulary import Vocabulary

Array = NDArray[Any]
N_CONTEXTS, N_ISOLATED = "sum:read", "sum:alone"
ROWS = {"sum": (np.add, 0.0), "max": (np.maximum, -np.inf), "min": (np.minimum, np.inf)}
STORED = "stored:"
CONCATENATED = ("bag", "sample")  # end to end


@dataclass(frozen=True)
class Statistics:
    vocabulary: Vocabulary
    arrays: Mapping[str, Array]

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def on(self, vocabulary: Vocabulary) -> Statistics:
        """The same, with the rows of another vocabulary; words that it lacks are dropped, new ones are empty.

        Bags are whole sentences: none of their words can be dropped.
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
        if "bag:words" in moved:
            moved["bag:words"] = self.vocabulary.rows_in(vocabulary)[self["bag:words"]].astype(np.int32)
            if (moved["bag:words"] < 0).any():
                word = self.vocabulary.words[self["bag:words"][moved["bag:words"] < 0][0]]
                raise UsageError(f"A vocabulary for these statistics must hold their words, and it lacks {word!r}.")
        if WORDS in moved:
            moved[WORDS] = self.vocabulary.rows_in(vocabulary)[self[WORDS]].astype(np.int32)
            moved |= _staying(moved, moved[WORDS] >= 0)
        return Statistics(vocabulary, moved)


def merge(a: Statistics, b: Statistics, vocabulary: Vocabulary | None = None) -> Statistics:
    """One from two, on the union of their words unless a vocabulary is given that holds both."""
    if a.arrays.keys() != b.arrays.keys():
        odd = sorted(a.arrays.keys() ^ b.arrays.keys())
        raise UsageError(f"Results of different methods or settings do not merge: only one of them has {odd[0]!r}.")
    if any(name.startswith(STORED) for name in a.arrays):
        raise UsageError(
            "Results of methods that train do not merge: they keep no sums; train on both corpora at once."
        )
    vocabulary = a.vocabulary.union(b.vocabulary) if vocabulary is None else vocabulary
    a, b = a.on(vocabulary), b.on(vocabulary)
    a, b = _drop_superseded(a, b), _drop_superseded(b, a)
    merged: dict[str, Array] = {}
    for name, one in a.arrays.items():
        other, kind = b.arrays[name], name.partition(":")[0]
        first = 1 if kind in CONCATENATED else 0  # these may differ in length
        if one.shape[first:] != other.shape[first:]:
            raise UsageError(
                f"Results of different teachers do not merge: {name!r} has the shape {one.shape} in one of them, "
                f"{other.shape} in the other."
            )
        merged[name] = (
            np.concatenate([one, other]) if kind in CONCATENATED else ROWS.get(kind, ROWS["sum"])[0](one, other)
        )
    if WORDS in merged:
        merged |= sampled(merged)
    return Statistics(vocabulary, merged)


def _drop_superseded(kept: Statistics, other: Statistics) -> Statistics:
    """Without the words that were only read alone here, and in contexts there."""
    if N_ISOLATED not in kept.arrays:
        return kept
    gone = (kept[N_ISOLATED] > 0) & (other[N_CONTEXTS] > 0)
    if not gone.any():
        return kept
    arrays = dict(kept.arrays)
    for name, array in kept.arrays.items():
        kind = name.partition(":")[0]
        if kind in ROWS:
            arrays[name] = np.where(gone.reshape(-1, *[1] * (array.ndim - 1)), _empty(kind, array.dtype), array)
            arrays[name] = arrays[name].astype(array.dtype, copy=False)
    if "bag:words" in arrays:  # a word alone is a sentence of its own
        sentence = np.repeat(np.arange(len(kept["bag:lengths"])), kept["bag:lengths"])
        stay = np.ones(len(kept["bag:lengths"]), bool)
        stay[sentence[gone[kept["bag:words"]]]] = False
        bags = [name for name in arrays if name.startswith("bag:") and name != "bag:lengths"]
        arrays |= {name: kept[name][stay[sentence]] for name in bags} | {"bag:lengths": kept["bag:lengths"][stay]}
    if WORDS in arrays:
        arrays |= _staying(arrays, ~gone[kept[WORDS]])
    return Statistics(kept.vocabulary, arrays)


def _staying(arrays: Mapping[str, Array], stay: NDArray[np.bool_]) -> dict[str, Array]:
    """The rows of a sample that stay; where all do, none is copied, since samples are large."""
    return {} if stay.all() else rows_of(arrays, stay)


def _empty(kind: str, dtype: np.dtype[Any]) -> float | int:
    """What a word has of which nothing is known."""
    if dtype.kind == "f" or kind == "sum":
        return ROWS[kind][1]
    return int(np.iinfo(dtype).min if kind == "max" else np.iinfo(dtype).max)
