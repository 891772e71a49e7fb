"""Optimizers that update only the rows of a table that a batch touches."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

_BLOCK = 1024  # rows that fit a CPU's cache
_EPSILON, _BETAS = 1e-8, (0.9, 0.999)  # of Adam


class RowAdam:
    """Adam (Kingma & Ba 2015) on the rows that a batch touches ("lazy" Adam, torch's SparseAdam).

    With `per_row` each row counts its own steps and epsilon is added after the bias correction, as in torch's Adam.
    With `spare` the tables have one more row in memory, which padded batches point to.
    """

    def __init__(self, table: Tensor, *, per_row: bool = False, spare: bool = False) -> None:
        whole = append_row(table) if spare else table
        self.whole: tuple[Tensor, ...] = (whole, torch.zeros_like(whole), torch.zeros_like(whole))
        self.table, self.mean, self.square = (tensor[: len(table)] for tensor in self.whole)  # (R, ...)
        self.per_row = per_row
        shape = (len(table), *(1 for _ in table.shape[1:]))
        self.steps = torch.zeros(shape, device=table.device) if per_row else torch.zeros((), dtype=torch.int64)

    def update(self, rows: Tensor, gradient: Tensor, lr: float) -> None:
        """One step on `rows`, which are distinct."""
        first, second = _BETAS
        if not self.per_row:
            self.steps += 1
            count = int(self.steps)
            size = lr * math.sqrt(1 - second**count) / (1 - first**count)
        for block, slope in split_rows(rows, gradient):
            mean = self.mean.index_select(0, block).lerp_(slope, 1 - first)
            square = self.square.index_select(0, block).mul_(second).addcmul_(slope, slope, value=1 - second)
            self.mean.index_copy_(0, block, mean)
            self.square.index_copy_(0, block, square)
            if self.per_row:
                steps = self.steps.index_select(0, block).add_(1)
                self.steps.index_copy_(0, block, steps)
                root = (1 - second**steps).sqrt_()
                change = mean.mul_(root / (1 - first**steps)).div_(square.sqrt_().add_(_EPSILON * root))
                self.table.index_add_(0, block, change, alpha=-lr)
            else:
                self.table.index_add_(0, block, mean.div_(square.sqrt_().add_(_EPSILON)), alpha=-size)

    def update_padded(self, rows: Tensor, gradient: Tensor, size: Tensor) -> None:
        """One step on `rows`, which are distinct but for the spare one, whose gradient is 0; `size` is its size."""
        table, means, squares = self.whole
        mean = means.index_select(0, rows).lerp_(gradient, 1 - _BETAS[0])
        square = squares.index_select(0, rows).mul_(_BETAS[1]).addcmul_(gradient, gradient, value=1 - _BETAS[1])
        means.index_copy_(0, rows, mean)
        squares.index_copy_(0, rows, square)
        table.index_add_(0, rows, mean.div_(square.sqrt_().add_(_EPSILON)).mul_(-size))

    def step_sizes(self, rates: Sequence[float]) -> Tensor:
        """The sizes of the next steps (N,), which count as done."""
        counts = int(self.steps) + np.arange(1, len(rates) + 1)
        self.steps += len(rates)
        sizes = np.asarray(rates) * np.sqrt(1 - _BETAS[1] ** counts) / (1 - _BETAS[0] ** counts)
        return torch.from_numpy(sizes).to(self.table)

    def tensors(self) -> dict[str, Tensor]:
        return {"table": self.table, "mean": self.mean, "square": self.square, "steps": self.steps}


class RowAdaGrad:
    """AdaGrad with one sum of squares per row."""

    def __init__(self, table: Tensor, initial: float = 1e-8) -> None:
        self.table = table  # (R, D)
        self.squares = torch.full((len(table), 1), initial)

    def update(self, rows: Tensor, gradient: Tensor, lr: float) -> None:
        """One step on `rows`, which are distinct."""
        for block, slope in split_rows(rows, gradient):
            mean_squares = torch.linalg.vecdot(slope, slope)[:, None] / slope.shape[1]
            squares = self.squares.index_select(0, block).add_(mean_squares)
            self.squares.index_copy_(0, block, squares)
            changed = self.table.index_select(0, block).addcdiv_(slope, squares.sqrt_(), value=-lr)
            self.table.index_copy_(0, block, changed)

    def tensors(self) -> dict[str, Tensor]:
        return {"rows": self.table, "squares": self.squares}


class RowSgd:
    """Plain gradient descent."""

    def __init__(self, table: Tensor, *, spare: bool = False) -> None:
        self.whole: tuple[Tensor, ...] = (append_row(table) if spare else table,)
        self.table = self.whole[0][: len(table)]

    def update(self, rows: Tensor, gradient: Tensor, lr: float) -> None:
        self.table.index_add_(0, rows, gradient, alpha=-lr)

    def update_padded(self, rows: Tensor, gradient: Tensor, size: Tensor) -> None:
        self.whole[0].index_add_(0, rows, gradient * -size)

    def step_sizes(self, rates: Sequence[float]) -> Tensor:
        return torch.tensor(rates).to(self.table)

    def tensors(self) -> dict[str, Tensor]:
        return {"table": self.table}


def append_row(table: Tensor) -> Tensor:
    """The table with a row of zeros after the last."""
    return torch.cat([table, torch.zeros_like(table[:1])])


def random_rows(n_rows: int, dim: int, seed: int) -> Tensor:
    """Initial vectors as in word2vec: uniform in ±0.5 / dim."""
    return torch.from_numpy((np.random.default_rng(seed).random((n_rows, dim), np.float32) - 0.5) / dim)


def split_rows(rows: Tensor, *others: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Blocks of these tensors of equal length: cache-sized on a CPU, everything at once on a GPU."""
    size = max(1, len(rows)) if rows.is_cuda else _BLOCK
    return zip(*(torch.split(tensor, size) for tensor in (rows, *others)), strict=True)


def sum_by_row(rows: Tensor, vectors: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The distinct values of `rows` (N,), and for each the weighted sum of its `vectors` (N, D)."""
    ordered, order = torch.sort(rows, stable=True)
    distinct, counts = torch.unique_consecutive(ordered, return_counts=True)
    return distinct, sum_segments(vectors, order, counts, None if weights is None else weights[order])


def sum_segments(vectors: Tensor, indices: Tensor, counts: Tensor, weights: Tensor | None = None) -> Tensor:
    """For consecutive segments of `indices` (N,) with these lengths (S,), the weighted sum of `vectors[indices]`."""
    starts = torch.cumsum(counts, 0) - counts
    return F.embedding_bag(indices, vectors, starts, mode="sum", per_sample_weights=weights)


def clip_gradients(gradients: Sequence[Tensor], norm: float) -> list[Tensor]:
    """Scale all gradients alike, so that their joint norm is at most `norm`."""
    joint = torch.stack([gradient.norm() for gradient in gradients]).norm()
    return [gradient * (norm / joint.clamp_min(1e-12)).clamp_max(1) for gradient in gradients]
