"""Product quantisation (Jégou et al. 2011): each part of a row is replaced by one of a few centres."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.numerics import kmeans, nearest_centres

_TRAINING_ROWS = 1 << 16  # at most, for k-means
_ROUNDS = 15

Centres = NDArray[np.float32]


@dataclass(frozen=True)
class ProductCodes:
    centres: list[Centres]  # (K, d) per part
    codes: NDArray[np.uint8]  # (V, parts)

    @classmethod
    def learn(cls, matrix: NDArray[Any], parts: int, size: int, seed: int) -> ProductCodes:
        random = np.random.default_rng(seed)
        training = np.sort(random.permutation(len(matrix))[:_TRAINING_ROWS])
        centres, codes = [], np.empty((len(matrix), parts), np.uint8)
        for part, columns in enumerate(np.array_split(np.arange(matrix.shape[1]), parts)):
            inside = slice(int(columns[0]), int(columns[-1]) + 1)
            learnt = _learn_centres(np.asarray(matrix[training, inside], np.float32), size, random)
            codes[:, part] = nearest_centres(matrix[:, inside], learnt)
            centres.append(learnt)
        return cls(centres, codes)

    def decode(self) -> NDArray[np.float32]:
        """The table reconstructed from the codes (V, D)."""
        return np.hstack([centres[self.codes[:, part]] for part, centres in enumerate(self.centres)])


def _learn_centres(rows: NDArray[np.float32], size: int, generator: np.random.Generator) -> Centres:
    """k-means started from `size` distinct rows."""
    distinct = np.unique(rows, axis=0)
    start = distinct[np.sort(generator.permutation(len(distinct))[:size])]
    n_rounds = _ROUNDS if len(distinct) > size else 0
    return kmeans(rows, size, generator, centres=start, n_rounds=n_rounds).centres
