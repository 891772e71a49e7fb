"""Product quantisation (Jégou et al. 2011): rows are cut into parts, each part one of a few centres."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1 << 13  # rows compared with all centres at once
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
            found = _k_means(np.asarray(matrix[taught, inside], np.float32), size, random)
            codes[:, part] = nearest_centres(matrix[:, inside], found)
            centres.append(found)
        return cls(centres, codes)

    def decode(self) -> NDArray[np.float32]:
        """The table that the codes tell (V, D)."""
        return np.hstack([centres[self.codes[:, part]] for part, centres in enumerate(self.centres)])


def nearest_centres(rows: NDArray[Any], centres: Centres) -> NDArray[np.int64]:
    """Which centre is nearest to each row (V,); of two alike the first."""
    half = (centres * centres).sum(1) / 2
    starts = range(0, len(rows), _BLOCK)
    blocks = (np.asarray(rows[start : start + _BLOCK], np.float32) for start in starts)
    found = [(block @ centres.T - half).argmax(1) for block in blocks]
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _k_means(rows: NDArray[np.float32], size: int, random: np.random.Generator) -> Centres:
    """Lloyd's rounds from `size` different rows; a centre that nobody is near stays where it is."""
    different = np.unique(rows, axis=0)
    centres = different[np.sort(random.permutation(len(different))[:size])]
    for _ in range(_ROUNDS if len(different) > size else 0):
        nearest = nearest_centres(rows, centres)
        held = np.bincount(nearest, minlength=len(centres))
        sums = np.stack([np.bincount(nearest, column, len(centres)) for column in rows.T], 1)
        moved = (sums / np.maximum(held, 1)[:, None]).astype(np.float32)
        centres = np.where(held[:, None] > 0, moved, centres)
    return centres
