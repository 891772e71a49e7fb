"""Smooth inverse frequency (Arora et al. 2017): each row times `a / (a + p(w))`.

Cosines of words do not change; in the mean of a text, frequent words get low weights.
"""

from dataclasses import dataclass
from typing import ClassVar

from stillvec.errors import UsageError
from stillvec.refinement.frequencies import Frequencies, frequencies
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Sif:
    SUMMARY: ClassVar[str] = "rows weighted by inverse word frequency"
    PAPERS: ClassVar[tuple[str, ...]] = ("arora-2017",)

    a: float = 1e-3
    frequencies: Frequencies = "counts"

    def __post_init__(self) -> None:
        if not self.a > 0:
            raise UsageError.expected("a number above 0", self.a, where="a")

    def __call__(self, vectors: WordVectors) -> WordVectors:
        factors = self.a / (self.a + frequencies(vectors.vocabulary, self.frequencies))  # (V,)
        return vectors.with_matrix(vectors.matrix * factors[:, None].astype(vectors.matrix.dtype))
