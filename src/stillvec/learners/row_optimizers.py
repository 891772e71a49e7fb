"""Steps on some rows of a table, and what is drawn for them: optimisers, negatives, subsampling."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


class RowAdam:
    """Adam on the rows that a batch touches, and on no other (torch's SparseAdam; "lazy" Adam)."""

    def __init__(self, table: Tensor, betas: tuple[float, float] = (0.9, 0.999)) -> None:
        self.table = table
        self.mean = torch.zeros_like(table)
        self.square = torch.zeros_like(table)
        self.steps = torch.zeros((), dtype=torch.int64)
        self.betas = betas

    def update(self, rows: Tensor, gradient: Tensor, rate: float) -> None:
        """One step on `rows`, which differ."""
        self.steps += 1
        count, (first, second) = int(self.steps), self.betas
        size = rate * math.sqrt(1 - second**count) / (1 - first**count)
        step = max(1, len(rows)) if rows.is_cuda else 1024  # what a cache holds
        for some, slope in zip(torch.split(rows, step), torch.split(gradient, step), strict=True):
            mean = self.mean.index_select(0, some).lerp_(slope, 1 - first)
            square = self.square.index_select(0, some).mul_(second).addcmul_(slope, slope, value=1 - second)
            self.mean.index_copy_(0, some, mean)
            self.square.index_copy_(0, some, square)
            self.table.index_add_(0, some, mean.div_(square.sqrt_().add_(1e-8)), alpha=-size)

    def tensors(self) -> dict[str, Tensor]:
        return {"table": self.table, "mean": self.mean, "square": self.square, "steps": self.steps}


class RowSgd:
    """Plain steps against the gradient."""

    def __init__(self, table: Tensor) -> None:
        self.table = table

    def update(self, rows: Tensor, gradient: Tensor, rate: float) -> None:
        self.table.index_add_(0, rows, gradient, alpha=-rate)

    def tensors(self) -> dict[str, Tensor]:
        return {"table": self.table}


def clip_gradient(gradients: Sequence[Tensor], norm: float) -> list[Tensor]:
    """All of them scaled alike, so that their norm, taken together, is no more than that."""
    whole = torch.stack([each.norm() for each in gradients]).norm()
    return [each * (norm / whole.clamp_min(1e-12)).clamp_max(1) for each in gradients]


class NegativeSampler:
    """Words drawn in proportion to their count to a power."""

    def __init__(self, counts: Tensor, power: float) -> None:
        weights = counts.double().pow(power) * (counts > 0)
        self.shares = (weights / weights.sum().clamp_min(1e-30)).float()
        self._edges = torch.cumsum(weights, 0) / weights.sum().clamp_min(1e-30)

    def draw(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        points = torch.rand(shape, dtype=torch.float64, device=self._edges.device, generator=generator)
        return torch.searchsorted(self._edges, points, right=True).clamp_max(len(self._edges) - 1)


def keep_probability(counts: Tensor, threshold: float) -> Tensor:
    """The share of each word's targets that subsampling keeps (V,)."""
    frequency = (counts / counts.sum().clamp_min(1)).clamp_min(1e-30)
    return (torch.sqrt(threshold / frequency) + threshold / frequency).clamp_max(1).float()
