"""Whitening: rows without their mean and with the same variance in all directions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from stillvec.learners.accumulators import to_numpy
from stillvec.learners.context_blocks import ContextBlock
from stillvec.learners.whitened_means import whitening_matrix


@dataclass(frozen=True)
class Whitening:
    mean: Tensor  # (D,)
    matrix: Tensor  # (D, dim)
    is_identity: bool = False

    def __call__(self, rows: Tensor) -> Tensor:
        return rows.float() if self.is_identity else (rows.float() - self.mean) @ self.matrix

    @classmethod
    def identity(cls, dim: int, device: torch.device) -> Whitening:
        return cls(torch.zeros(dim, device=device), torch.eye(dim, device=device), is_identity=True)


class Moments:
    """The number, sum and second moments of rows that come in parts."""

    def __init__(self, device: torch.device) -> None:
        self.count = 0
        self.total = self.gram = torch.zeros((), dtype=torch.float64, device=device)

    def add(self, rows: Tensor) -> None:
        self.count += len(rows)
        self.total = self.total + rows.sum(0, dtype=torch.float64)
        self.gram = self.gram + rows.T @ rows

    def whitening(self, ridge: float, dim: int | None = None) -> Whitening:
        """With a ridge in units of the mean eigenvalue, into the `dim` directions of most variance or all of them."""
        mean = self.total / max(self.count, 1)
        covariance = self.gram.double() / max(self.count, 1) - torch.outer(mean, mean)
        matrix = torch.from_numpy(whitening_matrix(to_numpy(covariance), ridge, dim=dim))
        return Whitening(mean.float(), matrix.float().to(mean.device))


def whiten_contexts(
    blocks: Iterable[ContextBlock], n_words: int, ridge: float, device: torch.device
) -> tuple[Whitening, Tensor, Tensor]:
    """The whitening of all sentences' contexts; each word's sum of whitened contexts (V, D) and their number (V,)."""
    moments = Moments(device)
    sums, counts = torch.zeros(()), torch.zeros(n_words, device=device)
    for block in blocks:
        moments.add(block.contexts)
        if not sums.ndim:
            sums = torch.zeros(n_words, block.contexts.shape[1], device=device)
        known = block.words >= 0
        number = torch.arange(len(block.lengths), device=device)
        sentence = torch.repeat_interleave(number, block.lengths)[known]
        sums.index_add_(0, block.words[known], block.contexts[sentence])
        counts.index_add_(0, block.words[known], torch.ones(1, device=device).expand(len(sentence)))
    whitening = moments.whitening(ridge)
    return whitening, (sums - counts[:, None] * whitening.mean) @ whitening.matrix, counts
