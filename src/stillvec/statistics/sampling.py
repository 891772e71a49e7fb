"""Bottom-k samples (Cohen & Kaplan 2007): the rows with the smallest keys per word.

A key is a hash of the sampled item. The sample does not depend on the order, batches or parts of the rows, and samples
of parts merge into the sample of the whole. Duplicate keys are the same item and are used once.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

WORDS, KEYS, SIZE = "sample:words", "sample:keys", "sample:size"  # rows of the vocabulary, hashes, maximum per word


def smallest(words: NDArray[Any], keys: NDArray[Any], size: int) -> NDArray[np.int64]:
    """Indices of the `size` smallest distinct keys of each word, ordered by word and key."""
    order = np.lexsort((keys, words))
    words, keys = words[order], keys[order]
    duplicate = np.zeros(len(order), bool)
    duplicate[1:] = (words[1:] == words[:-1]) & (keys[1:] == keys[:-1])
    order, words = order[~duplicate], words[~duplicate]
    return np.asarray(order[places(words) < size])


def places(words: NDArray[Any]) -> NDArray[np.int64]:
    """0, 1, 2, … within each run of equal words."""
    indices = np.arange(len(words))
    begins = np.ones(len(words), bool)
    begins[1:] = words[1:] != words[:-1]
    return np.asarray(indices - np.maximum.accumulate(np.where(begins, indices, 0)))


def merge_samples(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The sample of two concatenated samples; of two sizes the smaller."""
    size = arrays[SIZE].min(keepdims=True)
    best = smallest(arrays[WORDS], arrays[KEYS], int(size[0]))
    return rows_of(arrays, best) | {SIZE: size}


def rows_of(arrays: Mapping[str, NDArray[Any]], chosen: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The chosen rows of a sample."""
    return {name: array[chosen] for name, array in arrays.items() if name.startswith("sample:") and name != SIZE}
