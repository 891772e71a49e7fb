"""Magnitude pruning of a teacher (Gordon, Duh & Andrews 2020): the smallest weights of its matrices become zero.

The matrices are the word embeddings and all linear layers: attention, feed-forward, pooler. Biases, norms, positions
and segments stay, and so do heads that a teacher does not run. `sparsity` is the share of zeros: of each matrix, of
each of its rows, or of all matrices together with one threshold. Random pruning is the control.

Zeros stay zero if a later step trains the model; `zeros=free` lets it change them (information deletion: the weights
are lost, the capacity is not).
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.adaptation.adaptation_steps import AdaptationResources, Facts
from stillvec.adaptation.model_folder import copy_rest, list_pruned, list_tensors, read_weights, write_weights
from stillvec.errors import TeacherError, UsageError
from stillvec.progress import Progress
from stillvec.refinement.prune import find_smallest
from stillvec.teachers.matrices import find_matrices

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class WeightPruning:
    SUMMARY: ClassVar[str] = "small weights set to zero"
    PAPERS: ClassVar[tuple[str, ...]] = ("gordon-2020",)

    sparsity: float = 0.3  # share of zeros
    scope: Literal["matrix", "row", "global"] = "matrix"  # what has this share: each matrix, each row, or all together
    by: Literal["magnitude", "chance"] = "magnitude"  # the smallest weights, or random ones
    embeddings: bool = True  # prune the word embeddings, too
    zeros: Literal["keep", "free"] = "keep"  # in later training; free: information deletion
    seed: int = 0  # of chance

    def __post_init__(self) -> None:
        if not 0 <= self.sparsity <= 1:
            raise UsageError.expected("0 to 1", self.sparsity, where="sparsity")

    def steps(self, source: Path, target: Path, resources: AdaptationResources) -> Generator[Progress, None, Facts]:
        start = time.perf_counter()
        matrices = find_matrices(source, list_tensors(source), embeddings=self.embeddings)
        copy_rest(source, target)
        edge = self._find_edge(source, matrices) if self.scope == "global" else None
        pruned: dict[str, float] = {}
        n_zeros = n_values = 0
        for name, tensors, metadata in read_weights(source):
            for label in sorted(matrices & {*tensors}):
                tensors[label] = tensor = self._prune(label, tensors[label], edge)
                pruned[label] = float((tensor == 0).double().mean())
                n_zeros, n_values = n_zeros + int((tensor == 0).sum()), n_values + tensor.numel()
                yield Progress("prune", len(pruned), len(matrices), "matrices", time.perf_counter() - start)
            write_weights(target, name, tensors, metadata)
        if not pruned:
            raise TeacherError.expected("the matrices of its configuration", "none of these names", path=source)
        kept = {*list_pruned(source)} | ({*pruned} if self.zeros == "keep" and self.sparsity else set())
        kept -= {*pruned} if self.zeros == "free" else set()
        return {
            "pruned": sorted(kept),
            "facts": {"matrices": len(pruned), "values": n_values, "zeros": n_zeros / n_values},
        }

    def _sizes(self, label: str, tensor: Tensor) -> NDArray[Any]:
        """What decides which values go, the smallest first."""
        if self.by == "magnitude":
            return np.asarray(tensor.detach().float().abs().numpy())
        seed = [self.seed, *label.encode()]  # the same for a matrix whatever else is pruned
        return np.random.default_rng(seed).random(tuple(tensor.shape), np.float32)

    def _prune(self, label: str, tensor: Tensor, edge: float | None) -> Tensor:
        if not self.sparsity:
            return tensor
        import torch

        sizes = self._sizes(label, tensor)
        if edge is not None:
            removed = sizes <= edge
        elif self.scope == "row":
            removed = np.zeros(sizes.shape, bool)
            smallest = np.argsort(sizes, axis=1, kind="stable")[:, : round(self.sparsity * sizes.shape[1])]
            np.put_along_axis(removed, smallest, True, 1)
        else:
            removed = find_smallest(sizes.reshape(-1), self.sparsity).reshape(sizes.shape)
        return tensor.masked_fill(torch.from_numpy(removed), 0)

    def _find_edge(self, source: Path, matrices: set[str]) -> float:
        """The largest size that is pruned, over all matrices together."""
        parts = [
            self._sizes(label, tensors[label]).reshape(-1)
            for _, tensors, _ in read_weights(source)
            for label in sorted(matrices & {*tensors})
        ]
        sizes = np.concatenate(parts) if parts else np.zeros(0, np.float32)
        n_zeros = round(self.sparsity * len(sizes))
        return float(np.partition(sizes, n_zeros - 1)[n_zeros - 1]) if n_zeros else -1.0
