"""A word as the mean of whitened rows: what `whitened_context` and `whitened_window` share. Finishing needs no torch.

    u_w = sum over the rows c of w of W^T (c - m) / (n_w + prior),   W = S^-a

m and S are the mean and the covariance, with a ridge, of the rows that whiten; n_w is the number of rows of w. All sums
are linear in the rows, so the statistics of two runs add up; the mean is subtracted at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stillvec.learners.accumulators import remove_directions, to_numpy
from stillvec.learners.table_memory import word_table
from stillvec.numerics import iterate_blocks, principal_axes, raise_to_power
from stillvec.result import Result
from stillvec.statistics import Array, Statistics
from stillvec.vectors import WordVectors

if TYPE_CHECKING:  # merging needs no torch
    from torch import Tensor

    from stillvec.teachers import Teacher


class RowSums:
    """Each word's sum of rows and their number; the number, sum and second moments of the rows that whiten."""

    state_fields = ("sums", "n_contexts", "count", "total", "gram")

    def __init__(self, layers: tuple[int, ...], teacher: Teacher, n_words: int) -> None:
        import torch

        self.layers = layers
        device = teacher.device
        self.sums = word_table(n_words, teacher.dim, device)
        self.n_contexts = torch.zeros(n_words, dtype=torch.int64, device=device)
        self.count = torch.zeros(1, dtype=torch.float64, device=device)
        self.total = torch.zeros(teacher.dim, dtype=torch.float64, device=device)
        self.gram = torch.zeros(teacher.dim, teacher.dim, dtype=torch.float64, device=device)

    def add_moments(self, rows: Tensor) -> None:
        import torch

        self.count += len(rows)
        self.total += rows.sum(0, dtype=torch.float64)
        self.gram += rows.T @ rows

    def add_words(self, ids: Tensor, sums: Tensor, n_rows: Tensor) -> None:
        """Add, for words (N,), the sums (N, D) of so many rows (N,)."""
        self.sums.index_add_(0, ids, sums)
        self.n_contexts.index_add_(0, ids, n_rows)

    def arrays(self) -> dict[str, Array]:
        return {"sum:context": to_numpy(self.sums), "sum:contexts": to_numpy(self.n_contexts)} | self.totals()

    def totals(self) -> dict[str, Array]:
        """The arrays that belong to no word."""
        totals = {"sentences": self.count, "context": self.total, "gram": self.gram}
        return {f"total:{name}": to_numpy(tensor) for name, tensor in totals.items()}


@dataclass(frozen=True)
class WhitenedMeans:
    """The vectors from the statistics of `RowSums`."""

    power: float
    ridge: float
    prior: float
    directions: int
    dim: int | None = None

    def __call__(self, statistics: Statistics) -> Result:
        n_rows = max(float(statistics["total:sentences"][0]), 1.0)
        mean = statistics["total:context"] / n_rows
        covariance = statistics["total:gram"] / n_rows - np.outer(mean, mean)
        matrix = whitening_matrix(covariance, self.ridge, self.power, self.dim)
        sums, n_contexts = statistics["sum:context"], statistics["sum:contexts"]
        vectors = np.empty((len(sums), matrix.shape[1]), np.float32)
        for words, block in iterate_blocks(sums):
            n = n_contexts[words, None]
            vectors[words] = (block - n * mean) @ matrix / np.maximum(n + self.prior, 1e-12)
        vocabulary = statistics.vocabulary
        return Result(WordVectors(vocabulary, remove_directions(vectors, vocabulary, self.directions)))


def whitening_matrix(covariance: Array, ridge: float, power: float = 0.5, dim: int | None = None) -> Array:
    """S^-power (D, D), S with a ridge in units of its mean eigenvalue; or its `dim` columns of most variance."""
    values, axes = principal_axes(covariance)
    values = np.maximum(values, 0) + ridge * max(float(values.mean()), 1e-12)
    scaled = axes * raise_to_power(values, -power)
    if dim is None or dim >= len(values):  # rotated back, so that no direction is special
        return np.asarray(scaled @ axes.T)
    return np.asarray(scaled[:, :dim])
