"""Forms of a word moved apart, so that they do not fill each other's lists of nearest words.

Words are a family if they begin alike (at least four letters, and 60% of the shorter one) and one is among the 50
nearest words of the other. With x the rows as they are and y the new ones, all of length one, this is minimized by
gradient descent with momentum, from y = x:

    strength * sum over pairs of a family of max(0, y_i·y_j - m_ij)^2
        + sum over near pairs of other words of (y_i·y_j - x_i·x_j)^2
        + everywhere * (D / V) * |Y Yᵀ - X Xᵀ|^2

m_ij is the cosine of the tenth nearest word outside the family, of the two words the smaller one: below it, neither is
among the ten nearest words of the other. Near pairs are those of a word and its 20 nearest words outside the family.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stillvec.numerics import iterate_blocks, nearest_rows, unit_rows
from stillvec.registry import check_least
from stillvec.vectors import WordVectors
from stillvec.vocabulary.inflections import count_common

_LEAST_LETTERS = 4
_LEAST_SHARE = 0.6  # of the shorter word
_NEAREST = 50  # words among which a family is looked for
_LISTED = 10  # nearest words outside the family, below which its members are to be
_KEPT = 20  # nearest words outside the family, whose cosines are to stay
_RATE = 0.05
_MOMENTUM = 0.8
_LONGEST = 0.2  # step of a row
_BLOCK = 1 << 15  # pairs at once

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


class RowPairs(NamedTuple):
    """Two rows each, and the cosine that is wanted."""

    left: Rows  # (n,)
    right: Rows  # (n,)
    goal: Floats  # (n,)

    def cosines(self, units: Floats) -> Floats:
        blocks = [slice(start, start + _BLOCK) for start in range(0, len(self.left), _BLOCK)]
        parts = [np.einsum("nd,nd->n", units[self.left[block]], units[self.right[block]]) for block in blocks]
        return np.concatenate([np.zeros(0, np.float32), *parts])


@dataclass(frozen=True)
class SeparateInflections:
    SUMMARY: ClassVar[str] = "forms of a word moved apart"

    strength: float = 2.0  # weight of the pairs of a family
    everywhere: float = 0.1  # weight of the cosines of all pairs, which are to stay
    steps: int = 16  # of gradient descent

    def __post_init__(self) -> None:
        check_least(self, strength=0, everywhere=0, steps=0)

    def __call__(self, vectors: WordVectors) -> WordVectors:
        matrix = np.asarray(vectors.matrix, np.float32)
        units = unit_rows(matrix)
        family, near = find_pairs(units, vectors.vocabulary.words)
        if not len(family.left):
            return vectors.with_matrix(matrix)
        rows, speed = units, np.zeros_like(units)
        rate = _RATE / max(1, self.strength / 4, self.everywhere / 4)
        for _ in range(self.steps):
            step = rate * self.gradient(rows, units, family, near)
            lengths = np.linalg.norm(step, axis=1, keepdims=True)
            speed = _MOMENTUM * speed - step * (_LONGEST / np.maximum(lengths, _LONGEST))
            rows = unit_rows(rows + speed)
        return vectors.with_matrix(rows * np.linalg.norm(matrix, axis=1, keepdims=True))

    def gradient(self, rows: Floats, units: Floats, family: RowPairs, near: RowPairs) -> Floats:
        """Of the objective, along the sphere (V, D)."""
        from scipy.sparse import csr_array

        above = np.maximum(family.cosines(rows) - family.goal, 0)
        apart = near.cosines(rows) - near.goal
        weights = np.concatenate([2 * self.strength * above, 2 * apart])
        left, right = np.r_[family.left, near.left], np.r_[family.right, near.right]
        pairs = csr_array((weights, (left, right)), shape=(len(rows), len(rows)))
        gradient = pairs @ rows + pairs.T @ rows
        scale = np.float32(4 * self.everywhere * rows.shape[1] / len(rows))
        gradient += scale * (rows @ (rows.T @ rows) - units @ (units.T @ rows))
        return np.asarray(gradient - (gradient * rows).sum(axis=1, keepdims=True) * rows, np.float32)


def find_pairs(units: Floats, words: Any) -> tuple[RowPairs, RowPairs]:
    """Pairs of a family with their largest cosine, and near pairs of other words with theirs."""
    nearest = nearest_rows(units, _NEAREST)  # (V, k)
    lower = [word.lower() for word in words]
    kin = np.array(
        [[are_kin(word, lower[at]) for at in row] for word, row in zip(lower, nearest.tolist(), strict=True)]
    )
    kin = kin.reshape(nearest.shape)
    cosines = np.concatenate(
        [
            np.einsum("nkd,nd->nk", units[nearest[rows]], block)
            for rows, block in iterate_blocks(units, np.float32, 2048)
        ]
    )
    place = np.cumsum(~kin, axis=1)  # among those outside the family, from 1
    last = np.where(kin | (place > _LISTED), np.inf, cosines).min(axis=1, initial=np.inf)
    last = np.where(np.isfinite(last), last, cosines.min(axis=1, initial=1))  # only a family near it
    family, near = (_join(nearest, chosen) for chosen in (kin, ~kin & (place <= _KEPT)))
    limits = np.minimum(last[family[0]], last[family[1]]).astype(np.float32)
    others = RowPairs(*near, np.zeros(len(near[0]), np.float32))
    return RowPairs(*family, limits), others._replace(goal=others.cosines(units))


def are_kin(a: str, b: str) -> bool:
    """Whether two words begin alike."""
    if a[:_LEAST_LETTERS] != b[:_LEAST_LETTERS] or len(a) < _LEAST_LETTERS:
        return False
    return count_common(a, b) >= _LEAST_SHARE * min(len(a), len(b))


def _join(nearest: Rows, chosen: NDArray[np.bool_]) -> tuple[Rows, Rows]:
    """Each chosen pair once, the smaller row first."""
    rows, columns = np.nonzero(chosen)
    others = nearest[rows, columns]
    pairs = np.unique(np.stack([np.minimum(rows, others), np.maximum(rows, others)]), axis=1)
    return pairs[0], pairs[1]
