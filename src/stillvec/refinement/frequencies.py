"""How often each word is met: by the corpus's own counts, or what stands in for them."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.vocabulary import Vocabulary

Frequencies = Literal["counts", "rank", "uniform"]


def frequencies(vocabulary: Vocabulary, kind: Frequencies) -> NDArray[np.float64]:
    """The share of each word (V,): as counted, by Zipf's law for words in order of frequency, or all alike."""
    size = len(vocabulary)
    if kind == "uniform":
        return np.full(size, 1 / max(size, 1))
    if kind == "rank":
        shares = 1 / np.arange(1, size + 1)
        return np.asarray(shares / shares.sum())
    if not vocabulary.counts.any():
        raise UsageError(
            "The corpus's counts were wanted, and these vectors carry none; say frequencies=rank if their words stand "
            "in order of frequency, else frequencies=uniform."
        )
    return vocabulary.frequencies()
