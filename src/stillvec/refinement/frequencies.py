"""Relative word frequencies: from corpus counts, from ranks, or uniform."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.vocabulary import Vocabulary

Frequencies = Literal["counts", "rank", "uniform"]


def frequencies(vocabulary: Vocabulary, kind: Frequencies) -> NDArray[np.float64]:
    """Relative frequency of each word (V,): from counts, by Zipf's law from the rank of the word, or uniform."""
    size = len(vocabulary)
    if kind == "uniform":
        return np.full(size, 1 / max(size, 1))
    if kind == "rank":
        shares = 1 / np.arange(1, size + 1)
        return np.asarray(shares / shares.sum())
    if not vocabulary.counts.any():
        cure = "use frequencies=rank if the words are in order of frequency, else frequencies=uniform"
        raise UsageError.expected("vectors with word counts", "none", where="frequencies=counts", cure=cure)
    return vocabulary.frequencies()
