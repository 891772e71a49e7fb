"""Rows of length one; a zero row stays zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Normalize:
    def __call__(self, vectors: WordVectors) -> WordVectors:
        lengths: Any = np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
        return vectors.with_matrix(vectors.matrix / np.where(lengths > 0, lengths, 1))
