"""Antonym repulsion: stronger for closer pairs, zero once their cosine is below a margin (after Mrkšić et al. 2016).

A word moves towards the opposite of its antonyms, `q_i <- (b x_i - |q'_i| Σ_k r_ik q_k/|q_k|) / (b + Σ_k r_ik)`,
with the strength `r_ik = repel w_ik max(0, cos(q_i, q_k) - margin)`; x_i is its target without them and b the weight of
that target. Pushing pairs that are already far apart would damage the similarity to words that are merely related.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from stillvec.vectors import WordVectors

_BLOCK = 1 << 14  # edges per block


@dataclass(frozen=True)
class Push:
    """Antonym edges and the strength of their repulsion."""

    words: NDArray[np.int64]  # (W,) rows that have antonyms or are antonyms
    own: NDArray[np.int64]  # (A,) which of these have antonyms
    at: NDArray[np.int64]  # (A,) their positions among the moved rows
    edges: Any  # csr (A, W), the weights of the antonyms times repel
    lengths: NDArray[Any]  # (A, 1) norms before refining
    base: NDArray[Any]  # (A, 1) weight of the target without antonyms; 0: no division
    margin: float

    @classmethod
    def of(cls, vectors: WordVectors, apart: Any, moved: NDArray[np.int64], base: NDArray[Any], margin: float) -> Push:
        """`apart` is csr (V, V), `base` (V,); `moved` contains every word that has antonyms."""
        with_antonyms = np.flatnonzero(np.diff(apart.indptr))
        words = np.union1d(with_antonyms, apart.indices)
        kind = np.result_type(vectors.matrix.dtype, np.float32)
        lengths = np.linalg.norm(np.asarray(vectors.matrix[with_antonyms], np.float64), axis=1)[:, None].astype(kind)
        return cls(
            words,
            np.searchsorted(words, with_antonyms),
            np.searchsorted(moved, with_antonyms),
            apart[with_antonyms][:, words].tocsr().astype(kind),
            lengths,
            base[with_antonyms, None].astype(kind),
            margin,
        )

    def __call__(self, targets: NDArray[Any], table: NDArray[Any]) -> None:
        """Update the targets of the moved rows (M, D) in place, given the present table (V, D)."""
        unit = table[self.words]  # (W, D)
        current = unit[self.own]  # (A, D)
        norms = np.linalg.norm(unit, axis=1, keepdims=True)
        np.divide(unit, norms, out=unit, where=norms > 0)
        strength = self._strength(unit)
        target = targets[self.at]
        pushed = (strength @ unit) * self.lengths
        if self.base.any():
            target = (target * self.base - pushed) / (self.base + np.asarray(strength.sum(1)))
        else:
            target -= pushed
        targets[self.at] = current + self._pace * (target - current)

    @cached_property
    def _pace(self) -> NDArray[Any]:
        """Step size (A, 1): two words that repel each other would overshoot with a full step."""
        weight = np.where(self.base > 0, self.base, 1)
        return np.asarray(1 / (1 + np.asarray(self.edges.sum(1)) / weight))

    def _strength(self, unit: NDArray[Any]) -> Any:
        """r (A, W)."""
        edges = self.edges
        rows = np.repeat(self.own, np.diff(edges.indptr))
        cosines = np.empty(edges.nnz, unit.dtype)
        for start in range(0, edges.nnz, _BLOCK):
            block = slice(start, start + _BLOCK)
            cosines[block] = np.einsum("ed,ed->e", unit[rows[block]], unit[edges.indices[block]])
        data = edges.data * np.maximum(cosines - unit.dtype.type(self.margin), 0)
        return sparse.csr_matrix((data, edges.indices, edges.indptr), shape=edges.shape)
