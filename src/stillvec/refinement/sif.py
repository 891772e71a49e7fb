"""Smooth inverse frequency (Arora et al. 2017): each row times `a / (a + p(w))`.

Cosines of words do not change; in the mean of a text, frequent words get low weights.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.registry import check_positive
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

Frequencies = Literal["counts", "rank", "uniform"]


@dataclass(frozen=True)
class Sif:
    SUMMARY: ClassVar[str] = "rows weighted by inverse word frequency"
    PAPERS: ClassVar[tuple[str, ...]] = ("arora-2017",)

    a: float = 1e-3
    frequencies: Frequencies = "counts"

    def __post_init__(self) -> None:
        check_positive(self, "a")

    def __call__(self, vectors: WordVectors) -> WordVectors:
        factors = self.a / (self.a + frequencies(vectors.vocabulary, self.frequencies))  # (V,)
        return vectors.with_matrix(vectors.matrix * factors[:, None].astype(vectors.matrix.dtype))


def weigh_words(vectors: WordVectors, a: float) -> NDArray[np.float32]:
    """SIF weights for the mean of a text (V,), less what the rows contain of them (`WordVectors.sif_weights`).

    Without counts, frequencies are estimated by rank.
    """
    if vectors.vocabulary.counts.any():
        return np.asarray(vectors.sif_weights(a), np.float32)
    return np.asarray(a / (a + frequencies(vectors.vocabulary, "rank")), np.float32)


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
