"""Bottom-k samples (Cohen & Kaplan 2007): of each word, the few rows with the smallest keys.

A key is a hash of what is sampled. So the sample is the same in whatever order, batches or parts the rows came, and the
sample of two samples is the sample of the whole. A key that comes twice is the same thing seen twice, and is kept once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

WORDS, KEYS, SIZE = "sample:words", "sample:keys", "sample:size"  # rows of the vocabulary, hashes, at most so many


def smallest(words: NDArray[Any], keys: NDArray[Any], size: int) -> NDArray[np.int64]:
    """Where the `size` smallest different keys of each word stand, ordered by word and key."""
    order = np.lexsort((keys, words))
    words, keys = words[order], keys[order]
    again = np.zeros(len(order), bool)
    again[1:] = (words[1:] == words[:-1]) & (keys[1:] == keys[:-1])
    order, words = order[~again], words[~again]
    return np.asarray(order[places(words) < size])


def places(words: NDArray[Any]) -> NDArray[np.int64]:
    """0, 1, 2, … within each run of equal words."""
    every = np.arange(len(words))
    begins = np.ones(len(words), bool)
    begins[1:] = words[1:] != words[:-1]
    return np.asarray(every - np.maximum.accumulate(np.where(begins, every, 0)))


def sampled(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The samples of two results, laid end to end, as one; of two sizes the smaller, which both can give."""
    size = arrays[SIZE].min(keepdims=True)
    best = smallest(arrays[WORDS], arrays[KEYS], int(size[0]))
    return rows_of(arrays, best) | {SIZE: size}


def rows_of(arrays: Mapping[str, NDArray[Any]], chosen: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Some of the rows of a sample."""
    return {name: array[chosen] for name, array in arrays.items() if name.startswith("sample:") and name != SIZE}
