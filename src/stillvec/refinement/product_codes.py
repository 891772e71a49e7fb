"""Product quantisation (Jégou et al. 2011): rows are cut into parts, each part one of a few centres."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.numerics import kmeans, nearest_centres

_TAUGHT = 1 << 16  # rows that k-means looks at
_ROUNDS = 15

Centres = NDArray[np.float32]


@dataclass(frozen=True)
class ProductCodes:
    centres: list[Centres]  # of each part (K, d)
    codes: NDArray[np.uint8]  # (V, parts)

    @classmethod
    def learn(cls, matrix: NDArray[Any], parts: int, size: int, seed: int) -> ProductCodes:
        random = np.random.default_rng(seed)
        taught = np.sort(random.permutation(len(matrix))[:_TAUGHT])
        centres, codes = [], np.empty((len(matrix), parts), np.uint8)
        for part, columns in enumerate(np.array_split(np.arange(matrix.shape[1]), parts)):
            inside = slice(int(columns[0]), int(columns[-1]) + 1)
            found = _learn_centres(np.asarray(matrix[taught, inside], np.float32), size, random)
            codes[:, part] = nearest_centres(matrix[:, inside], found)
            centres.append(found)
        return cls(centres, codes)

    def decode(self) -> NDArray[np.float32]:
        """The table that the codes tell (V, D)."""
        return np.hstack([centres[self.codes[:, part]] for part, centres in enumerate(self.centres)])


def _learn_centres(rows: NDArray[np.float32], size: int, generator: np.random.Generator) -> Centres:
    """k-means from `size` different rows."""
    different = np.unique(rows, axis=0)
    start = different[np.sort(generator.permutation(len(different))[:size])]
    n_rounds = _ROUNDS if len(different) > size else 0
    return kmeans(rows, size, generator, centres=start, n_rounds=n_rounds).centres
