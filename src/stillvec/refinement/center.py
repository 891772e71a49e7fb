"""Subtract the mean over the vocabulary from every row."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Center:
    SUMMARY: ClassVar[str] = "the mean vector subtracted"

    def __call__(self, vectors: WordVectors) -> WordVectors:
        mean = vectors.matrix.mean(0, dtype=np.float64).astype(np.float32)
        return vectors.with_matrix(vectors.matrix - mean)
