"""Graph-based post-retrofitting (Context-to-Vec, Zheng et al. 2022): closer neighbours have more weight.

From `Σ_i α |q_i - q'_i|² + β Σ_j γ_ij |q_i - q_j|²` with Student's
`γ_ij = C_ν (1 + d_ij²/(σν))^-(ν+1)`, `C_ν = 2π (Γ((ν+1)/2) / (√(νπ) Γ(ν/2)))²`, d the distance before refining:

- normalized (default): `q_i <- (α q'_i + β Σ_j γ_ij q_j / Σ_j γ_ij) / (α + β)`, no row shrinks.
- printed: `q_i <- α q'_i + β (Σ_j γ_ij q_j) / m` with m neighbours, as in the paper.

Antonyms repel each other while they are close (`AntonymPush`); the negative term of the paper is unbounded. A pair in
both lexicons is treated as antonyms. `repel` and `margin` were chosen on RG-65, WordSim-353 and SimLex-999.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.refinement.graph import Csr, LexiconGraph, Part, Rows, shares, sweep, without_edges
from stillvec.registry import check_least, check_positive
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

_BLOCK = 1 << 14  # edges per block


@dataclass(frozen=True)
class GraphRetrofit:
    SUMMARY: ClassVar[str] = "words moved towards their neighbours in a lexicon, weighted by distance"
    PAPERS: ClassVar[tuple[str, ...]] = ("zheng-2022",)

    lexicon: tuple[str, ...]  # files, WordNet folders, "wordnet"
    antonyms: tuple[str, ...] = ()  # likewise; only the relation antonym where relations are named
    sweeps: int = 20
    alpha: float = 0.5
    beta: float = 0.5
    repel: float = 0.3
    margin: float = 0.1  # no repulsion below this cosine; lower values hurt relatedness
    nu: float = 1.0
    sigma: float | None = None  # None: the mean squared length of the edges
    form: Literal["normalized", "printed"] = "normalized"
    relations: tuple[str, ...] = ("synonym",)
    parts: tuple[Part, ...] = ()
    directed: bool = False
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_positive(self, "alpha", "nu", "sigma")
        check_least(self, sweeps=0, beta=0, repel=0)
        if not -1 <= self.margin <= 1:
            raise UsageError.expected("a cosine, -1 to 1", self.margin, where="margin")

    def __call__(self, vectors: WordVectors) -> WordVectors:
        near, apart = self._graphs(vectors.vocabulary)
        pull = self.beta * self._edge_weights(vectors, near)
        home = np.full(len(vectors), self.alpha)
        base = np.zeros(len(vectors))
        if self.form == "normalized":  # words without neighbours keep their full weight
            base = home + self.beta * _has_edges(near)
            home, pull = home / base, sparse.diags(1 / base) @ pull
        moved = np.flatnonzero(_has_edges(near) | _has_edges(apart))
        push = AntonymPush.of(vectors, self.repel * apart, moved, base, self.margin) if apart.nnz else None
        return sweep(vectors, home, pull, moved, self.sweeps, push)

    def _graphs(self, vocabulary: Vocabulary) -> tuple[Csr, Csr]:
        near = LexiconGraph(self.lexicon, self.relations, self.parts, self.directed, self.without).over(vocabulary)
        if not self.antonyms:
            return near, sparse.csr_matrix(near.shape)
        apart = LexiconGraph(self.antonyms, ("antonym",), self.parts, self.directed, self.without).over(vocabulary)
        return without_edges(near, apart), apart

    def _edge_weights(self, vectors: WordVectors, graph: Csr) -> Csr:
        """Edge weights times γ, divided by their sum per row or by the number of neighbours."""
        graph, squares = graph.copy(), _squares(vectors, graph)
        sigma = self.sigma or (float(squares.mean()) if len(squares) else 0.0) or 1.0
        logs = log_gamma_weights(squares, self.nu, sigma) + np.log(graph.data)
        degrees = np.diff(graph.indptr)
        rows = np.flatnonzero(degrees)
        if self.form == "printed":
            graph.data = np.exp(logs) / np.repeat(degrees, degrees)
            return graph
        if len(rows):  # scaled to a maximum of one per row, so that nothing underflows
            logs -= np.repeat(np.maximum.reduceat(logs, graph.indptr[rows]), degrees[rows])
        graph.data = np.exp(logs)
        return shares(graph)


def _has_edges(graph: Csr) -> NDArray[np.bool_]:
    return np.asarray(np.diff(graph.indptr) > 0)


def log_gamma_weights(squares: NDArray[np.float64], nu: float, sigma: float) -> NDArray[np.float64]:
    """ln γ, by log-gamma: Γ overflows from ν = 343."""
    ratio = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - 0.5 * math.log(nu * math.pi)
    return np.asarray(math.log(2 * math.pi) + 2 * ratio - (nu + 1) * np.log1p(squares / (sigma * nu)))


def _squares(vectors: WordVectors, graph: Csr) -> NDArray[np.float64]:
    """Squared length of every edge (E,)."""
    rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    squares = np.empty(graph.nnz)
    for start in range(0, graph.nnz, _BLOCK):
        block = slice(start, start + _BLOCK)
        offsets = np.asarray(vectors.matrix[rows[block]], np.float32) - vectors.matrix[graph.indices[block]]
        squares[block] = np.einsum("ed,ed->e", offsets, offsets, dtype=np.float64)
    return squares


@dataclass(frozen=True)
class AntonymPush:
    """Antonym repulsion: stronger for closer pairs, zero below a cosine of `margin` (after Mrkšić et al. 2016).

    A word moves towards the opposite of its antonyms, `q_i <- (b x_i - |q'_i| Σ_k r_ik q_k/|q_k|) / (b + Σ_k r_ik)`,
    with the strength `r_ik = repel w_ik max(0, cos(q_i, q_k) - margin)`; x_i is its target without them and b the
    weight of that target. Pushing pairs that are far apart would damage the similarity to words that are related.
    """

    words: Rows  # (W,) rows that have antonyms or are antonyms
    own: Rows  # (A,) which of these have antonyms
    at: Rows  # (A,) their positions among the moved rows
    edges: Any  # csr (A, W), the weights of the antonyms times repel
    lengths: NDArray[Any]  # (A, 1) norms before refining
    base: NDArray[Any]  # (A, 1) weight of the target without antonyms; 0: no division
    margin: float

    @classmethod
    def of(cls, vectors: WordVectors, apart: Csr, moved: Rows, base: NDArray[Any], margin: float) -> AntonymPush:
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
