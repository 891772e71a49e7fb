"""Negative sampling for whatever gives a vector to tell a word by; steps on rows of a table.

    sum over targets t with vectors h_t:   l(h_t . u_t) + k sum over w of P(w) l(-h_t . u_w),   l(x) = log(1 + e^-x)

The words w are drawn for a whole batch and shared by its targets, each weighed to be k / K of a target's negatives: the
same in the mean, with less noise, and a matrix product.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

_PIECE = 1024  # rows at a time: what a cache holds
_BEGIN = 1e-8  # of the squares


class SharedNegativeSampler:
    """Words drawn in proportion to their count to a power."""

    def __init__(self, counts: NDArray[np.int64], power: float) -> None:
        weights = np.where(counts > 0, np.maximum(counts, 1).astype(np.float64) ** power, 0.0)
        self._edges = np.cumsum(weights) / weights.sum()

    def draw(self, number: int, choose: np.random.Generator) -> Tensor:
        found = np.searchsorted(self._edges, choose.random(number), side="right")
        return torch.from_numpy(np.minimum(found, len(self._edges) - 1))  # (K,)

    def spread(self, number: int, choose: np.random.Generator) -> NDArray[np.int64]:
        """As many, each from an even share of the proportions, mixed: many at once are drawn faster so (K,)."""
        found = np.searchsorted(self._edges, (np.arange(number) + choose.random(number)) / number, side="right")
        return choose.permutation(np.minimum(found, len(self._edges) - 1))


def keep_probability(counts: NDArray[np.int64], threshold: float) -> NDArray[np.float64]:
    """The share of each word's occurrences that subsampling keeps, sqrt(t/f) + t/f (V,); 0: all of them."""
    if not threshold:
        return np.ones(len(counts))
    ratio = threshold * max(counts.sum(), 1) / np.maximum(counts, 1)
    return np.asarray(np.minimum(1.0, np.sqrt(ratio) + ratio))


class AdaGradTable:
    """Rows, and AdaGrad with one sum of squares a row."""

    def __init__(self, rows: Tensor, begin: float = _BEGIN) -> None:
        self.rows = rows  # (V, D)
        self.squares = torch.full((len(rows), 1), begin)

    def update(self, rows: Tensor, gradient: Tensor, rate: float) -> None:
        """One step on `rows`, which differ."""
        for some, slope in zip(torch.split(rows, _PIECE), torch.split(gradient, _PIECE), strict=True):
            squares = self.squares.index_select(0, some).add_(
                torch.linalg.vecdot(slope, slope)[:, None] / slope.shape[1]
            )
            self.squares.index_copy_(0, some, squares)
            self.rows.index_copy_(
                0, some, self.rows.index_select(0, some).addcdiv_(slope, squares.sqrt_(), value=-rate)
            )


def random_rows(size: int, dim: int, seed: int) -> Tensor:
    """As word2vec begins: even within half a dimension's share."""
    return torch.from_numpy((np.random.default_rng(seed).random((size, dim), np.float32) - 0.5) / dim)


def negative_sampling_loss(
    vectors: Tensor, table: Tensor, targets: Tensor, drawn: Tensor, negatives: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The loss of targets (T,) with these vectors (T, D), its gradient by the vectors, the rows of the table that are
    touched (they differ), its gradient by them."""
    right = table.index_select(0, targets)  # (T, D)
    logits = torch.linalg.vecdot(vectors, right)  # (T,)
    wrong = table.index_select(0, drawn)  # (K, D)
    against = vectors @ wrong.T  # (T, K)
    weight = negatives / max(len(drawn), 1)
    loss = F.softplus(-logits).sum() + weight * F.softplus(against).sum()
    pull = -torch.sigmoid(-logits)  # (T,)
    push = torch.sigmoid(against).mul_(weight)  # (T, K)
    by_vectors = torch.addmm(right.mul_(pull[:, None]), push, wrong)
    held = torch.cat([vectors, push.T @ vectors])  # what a target adds, then what a drawn word does
    weights = torch.cat([pull, torch.ones(len(drawn))])
    rows, by_rows = summed(torch.cat([targets, drawn]), torch.arange(len(held)), held, weights)
    return loss, by_vectors, rows, by_rows


def summed(rows: Tensor, sources: Tensor, vectors: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The different ones of `rows` and, for each, the weighted sum of vectors[sources] where it stands."""
    ordered, order = torch.sort(rows, stable=True)
    own, held = torch.unique_consecutive(ordered, return_counts=True)
    weighed = None if weights is None else weights[order]
    starts = torch.cumsum(held, 0) - held
    return own, F.embedding_bag(sources[order], vectors, starts, mode="sum", per_sample_weights=weighed)
