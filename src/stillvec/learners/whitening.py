"""Whitening: contexts without mean and with the same variance in all directions, and the means of words in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from stillvec.learners.accumulators import to_numpy
from stillvec.learners.context_blocks import ContextBlock
from stillvec.refinement.all_but_the_top import AllButTheTop
from stillvec.statistics.mergeable import Array
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary


@dataclass(frozen=True)
class Whitening:
    mean: Tensor  # (D,)
    matrix: Tensor  # (D, dim)

    @property
    def dim(self) -> int:
        return self.matrix.shape[1]

    def __call__(self, rows: Tensor) -> Tensor:
        return (rows.float() - self.mean) @ self.matrix

    @classmethod
    def identity(cls, dim: int, device: torch.device) -> Whitening:
        return cls(torch.zeros(dim, device=device), torch.eye(dim, device=device))

    @classmethod
    def of(
        cls, parts: Iterable[ContextBlock], words: int, ridge: float, device: torch.device
    ) -> tuple[Whitening, Tensor, Tensor]:
        """Of the contexts of all sentences; beside it, each word's sum of whitened contexts and their count."""
        sums = Sums(device)
        table, heard = torch.zeros(()), torch.zeros(words, device=device)
        for shard in parts:
            sums.add(shard.contexts)
            if not table.ndim:
                table = torch.zeros(words, shard.contexts.shape[1], device=device)
            known = shard.words >= 0
            number = torch.arange(len(shard.lengths), device=device)
            sentence = torch.repeat_interleave(number, shard.lengths)[known]
            table.index_add_(0, shard.words[known], shard.contexts[sentence])
            heard.index_add_(0, shard.words[known], torch.ones(1, device=device).expand(len(sentence)))
        made = sums.whitening(ridge)
        return made, (table - heard[:, None] * made.mean) @ made.matrix, heard


class Sums:
    """Of rows that come in parts: how many, their sum, the sum of their products."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.count = 0
        self.total = self.gram = torch.zeros((), dtype=torch.float64, device=device)

    def add(self, rows: Tensor) -> None:
        self.count += len(rows)
        self.total = self.total + rows.sum(0, dtype=torch.float64)
        self.gram = self.gram + rows.T @ rows

    def whitening(self, ridge: float, dim: int | None = None) -> Whitening:
        """With a ridge, in mean eigenvalues; into the `dim` directions of most variance, or all of them."""
        mean = self.total / max(self.count, 1)
        values, vectors = torch.linalg.eigh(self.gram.double() / max(self.count, 1) - torch.outer(mean, mean))
        values = values.clamp_min(0) + ridge * max(float(values.mean()), 1e-12)
        if dim is None or dim >= len(values):  # turned back, so that no direction is special
            matrix = (vectors * values**-0.5) @ vectors.T
        else:
            matrix = (vectors * values**-0.5)[:, -dim:].flip(1)
        return Whitening(mean.float(), matrix.float())


def tidied(vectors: Tensor, vocabulary: Vocabulary, directions: int) -> Array:
    """As numpy, without the mean and the first principal directions if asked; too few words stay as they are."""
    matrix = np.ascontiguousarray(to_numpy(vectors.detach()), np.float32)
    directions = min(directions, matrix.shape[1] - 1, len(matrix) - 2)
    if directions <= 0:
        return matrix
    return np.asarray(AllButTheTop(directions)(WordVectors(vocabulary, matrix)).matrix)
