"""Antonyms pushed apart: the nearer they are, the harder, and not at all beyond a margin (as Mrkšić et al. 2016 ask).

A word is drawn to the opposite of its antonyms, `q_i <- (b x_i - |q'_i| Σ_k r_ik q_k/|q_k|) / (b + Σ_k r_ik)`, with the
strength `r_ik = repel w_ik max(0, cos(q_i, q_k) - margin)`; x_i is where it would go without them and b the weight of
that. To push words that are far from each other already, or without regard to how near they are, would cost them what
they share with words that are merely related.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from stillvec.vectors import WordVectors

_BLOCK = 1 << 14  # edges measured at once


@dataclass(frozen=True)
class Push:
    """The antonyms of some words, and how they are pushed."""

    words: NDArray[np.int64]  # (W,) rows of the table that have antonyms or are some
    own: NDArray[np.int64]  # (A,) which of these have them
    at: NDArray[np.int64]  # (A,) their places among the moved rows
    edges: Any  # csr (A, W), the weights of the antonyms times repel
    lengths: NDArray[Any]  # (A, 1) of the words before refining
    base: NDArray[Any]  # (A, 1) the weight of where a word would go; zero: nothing is divided
    margin: float

    @classmethod
    def of(cls, vectors: WordVectors, apart: Any, moved: NDArray[np.int64], base: NDArray[Any], margin: float) -> Push:
        """`apart` is csr (V, V), `base` (V,); every word that has antonyms is among the moved rows."""
        having = np.flatnonzero(np.diff(apart.indptr))
        words = np.union1d(having, apart.indices)
        kind = np.result_type(vectors.matrix.dtype, np.float32)
        lengths = np.linalg.norm(np.asarray(vectors.matrix[having], np.float64), axis=1)[:, None].astype(kind)
        return cls(
            words,
            np.searchsorted(words, having),
            np.searchsorted(moved, having),
            apart[having][:, words].tocsr().astype(kind),
            lengths,
            base[having, None].astype(kind),
            margin,
        )

    def __call__(self, drawn: NDArray[Any], table: NDArray[Any]) -> None:
        """Changes where the moved rows go (M, D), seen from where all are (V, D)."""
        unit = table[self.words]  # (W, D)
        here = unit[self.own]  # (A, D)
        norms = np.linalg.norm(unit, axis=1, keepdims=True)
        np.divide(unit, norms, out=unit, where=norms > 0)
        strength = self._strength(unit)
        there = drawn[self.at]
        pushed = (strength @ unit) * self.lengths
        if self.base.any():
            there = (there * self.base - pushed) / (self.base + np.asarray(strength.sum(1)))
        else:
            there -= pushed
        drawn[self.at] = here + self._pace * (there - here)

    @cached_property
    def _pace(self) -> NDArray[Any]:
        """The share of the way that a word goes at once (A, 1): two that flee from each other would overshoot."""
        weight = np.where(self.base > 0, self.base, 1)
        return np.asarray(1 / (1 + np.asarray(self.edges.sum(1)) / weight))

    def _strength(self, unit: NDArray[Any]) -> Any:
        """r (A, W)."""
        edges = self.edges
        rows = np.repeat(self.own, np.diff(edges.indptr))
        cosines = np.empty(edges.nnz, unit.dtype)
        for start in range(0, edges.nnz, _BLOCK):
            some = slice(start, start + _BLOCK)
            cosines[some] = np.einsum("ed,ed->e", unit[rows[some]], unit[edges.indices[some]])
        data = edges.data * np.maximum(cosines - unit.dtype.type(self.margin), 0)
        return sparse.csr_matrix((data, edges.indices, edges.indptr), shape=edges.shape)
