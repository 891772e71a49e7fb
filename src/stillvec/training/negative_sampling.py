"""Negative sampling (Mikolov et al. 2013), and subsampling of frequent words.

    sum over targets t with vectors h_t:   l(h_t . u_t) + k sum over w of P(w) l(-h_t . u_w),   l(x) = log(1 + e^-x)

Where the K negatives w are drawn once per batch and shared by its targets, each counts k / K: the same on average, with
less noise, and a matrix product.
"""

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from stillvec.training.optimizers import sum_by_row


class NegativeSampler:
    """Draws words in proportion to their count raised to a power; words without a count are never drawn."""

    def __init__(self, counts: Tensor | NDArray[np.int64], power: float) -> None:
        counts = _as_tensor(counts)
        weights = counts.clamp_min(1).double().pow(power) * (counts > 0)
        total = weights.sum().clamp_min(1e-30)
        self.probabilities = (weights / total).float()  # (V,)
        self._edges = torch.cumsum(weights, 0) / total

    def draw(self, shape: tuple[int, ...], generator: torch.Generator | np.random.Generator) -> Tensor:
        if isinstance(generator, torch.Generator):
            points = torch.rand(shape, dtype=torch.float64, device=self._edges.device, generator=generator)
        else:
            points = torch.from_numpy(generator.random(shape))
        return self._find(points)

    def draw_stratified(self, number: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw from even strata and shuffle (K,): faster for many at once, since neighbouring draws are sorted."""
        points = torch.from_numpy((np.arange(number) + generator.random(number)) / number)
        return generator.permutation(self._find(points).numpy())

    def _find(self, points: Tensor) -> Tensor:
        return torch.searchsorted(self._edges, points, right=True).clamp_max(len(self._edges) - 1)


def keep_probability(counts: Tensor | NDArray[np.int64], threshold: float) -> Tensor:
    """The probability sqrt(t/f) + t/f that subsampling keeps an occurrence of each word (V,); t = 0 keeps all."""
    counts = _as_tensor(counts)
    if not threshold:
        return torch.ones(len(counts), dtype=torch.float64, device=counts.device)
    ratio = threshold * counts.sum().clamp_min(1).double() / counts.clamp_min(1)
    return (torch.sqrt(ratio) + ratio).clamp_max(1)


def _as_tensor(counts: Tensor | NDArray[np.int64]) -> Tensor:
    return counts if isinstance(counts, Tensor) else torch.from_numpy(np.array(counts))  # a copy: counts are read-only


def negative_sampling_loss(
    vectors: Tensor, table: Tensor, targets: Tensor, negatives: Tensor, per_target: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The summed loss of targets (T,) with these vectors (T, D), and its gradients.

    `negatives` (K,) are shared and count as `per_target` of each target. Returns the loss, its gradient by the vectors,
    the distinct rows of the table that it depends on, and its gradient by them.
    """
    right = table.index_select(0, targets)  # (T, D)
    logits = torch.linalg.vecdot(vectors, right)  # (T,)
    wrong = table.index_select(0, negatives)  # (K, D)
    against = vectors @ wrong.T  # (T, K)
    weight = per_target / max(len(negatives), 1)
    loss = F.softplus(-logits).sum() + weight * F.softplus(against).sum()
    pull = -torch.sigmoid(-logits)  # (T,)
    push = torch.sigmoid(against).mul_(weight)  # (T, K)
    by_vectors = torch.addmm(right.mul_(pull[:, None]), push, wrong)
    terms = torch.cat([vectors, push.T @ vectors])  # what targets add, then what negatives add
    weights = torch.cat([pull, torch.ones(len(negatives))])
    rows, by_rows = sum_by_row(torch.cat([targets, negatives]), terms, weights)
    return loss, by_vectors, rows, by_rows
