"""GloVe (Pennington et al. 2014): products of vectors are the logarithms of how often words stand together.

    J = sum over pairs (i, j) of f(X_ij) (w_i . c_j + b_i + b'_j - log X_ij)²,   f(x) = min(1, (x / x_max)^alpha)

X counts pairs within the window, 1/distance each, in both orders. AdaGrad, as in the paper, but with the exact gradient
of a random share of the pairs at a time instead of one pair's: three sparse products, which are fast without a compiled
extension. Biases are a column of each table, beside a column of ones for the other's.
"""

from __future__ import annotations

import math
import tempfile
import warnings
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from stillvec.baselines.cooccurrence import Run, count_pairs, dealt
from stillvec.baselines.text import Text
from stillvec.baselines.threads import torch_threads
from stillvec.baselines.training import Learnt, Means, TrainingStep, check_settings, diverged

Table = NDArray[np.float32]
_ROWS = 256
_BEGIN = 1e-6  # of the sums of squares: a first step is about the rate, in all columns
_LEAST = 1 << 17  # pairs of a share; a step costs as much as about that many


@dataclass(frozen=True)
class Glove:
    resumes: ClassVar[bool] = True
    PRESETS: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "pennington-2014": {"epochs": 100, "x_max": 100.0, "rate": 0.05},
    }
    settings: str = "stillvec"
    dim: int = 300
    epochs: int = 25
    window: int = 10
    x_max: float = 10.0  # the paper's 100 is for a thousand times as much text
    alpha: float = 0.75
    rate: float = 0.05
    share: int = 16  # pairs of a step, at the least, for each word of the vocabulary
    add_contexts: bool = True  # a word's vector as a context added to its own
    seed: int = 0

    def __post_init__(self) -> None:
        above = {"dim": self.dim, "epochs": self.epochs, "window": self.window, "x_max": self.x_max, "rate": self.rate}
        check_settings(self, {**above, "share": self.share}, {"alpha": self.alpha, "seed": self.seed})

    def steps(self, text: Text, means: Means) -> Generator[TrainingStep, None, Learnt]:
        total = self.epochs * text.words
        with tempfile.TemporaryDirectory(dir=text.folder) as name, torch_threads(means.threads):
            counting = count_pairs(text, self.window, Path(name))
            runs: list[Run] = []
            while True:
                try:
                    passed = next(counting)
                except StopIteration as end:
                    runs = end.value
                    break
                yield TrainingStep(0, total, f"{passed:,} words counted")
            pairs = sum(len(run.counts) for run in runs)
            shares = max(1, pairs // max(_LEAST, self.share * len(text.vocabulary)))
            model = Factors(self, len(text.vocabulary), means.threads)
            loss = yield from self._train(model, dealt(runs, shares, Path(name), self.seed), text.words, means)
        if not np.isfinite(model.words).all() or not np.isfinite(model.contexts).all():
            raise diverged(self.rate)
        notes = {"loss": loss} if math.isfinite(loss) else {}
        return Learnt(text.learnt(model.result()), {**notes, "pairs": pairs, "shares": shares})

    def _train(
        self, model: Factors, shares: list[Run], words: int, means: Means
    ) -> Generator[TrainingStep, None, float]:
        total = self.epochs * words
        begun = means.checkpoint.restore(model) if means.checkpoint is not None else 0
        pairs = sum(len(share.counts) for share in shares)
        loss = math.nan
        for epoch in range(begun, self.epochs):
            order = np.random.default_rng([self.seed, epoch]).permutation(len(shares))
            sums = seen = 0.0
            for number in order.tolist():
                sums += model.step(shares[number])
                seen += len(shares[number].counts)
                if not math.isfinite(sums):
                    raise diverged(self.rate)
                yield TrainingStep(int(words * (epoch + seen / pairs)), total, f"loss {sums / seen:.4f}")
            loss = sums / seen
            if means.checkpoint is not None:
                means.checkpoint.write(model, epoch + 1)
        return loss


class Factors:
    """The tables: a row a word, then its bias and a one; as a context, then a one and its bias."""

    def __init__(self, settings: Glove, size: int, threads: int = 1) -> None:
        self.settings = settings
        self.threads = threads
        choose = np.random.default_rng(settings.seed)
        dim = settings.dim
        self.words, self.contexts = (
            ((choose.random((size, dim + 2), np.float32) - 0.5) / dim).astype(np.float32) for _ in range(2)
        )  # (V, D + 2)
        self.words[:, dim + 1] = self.contexts[:, dim] = 1
        self.squares = [np.full((size, dim + 2), _BEGIN, np.float32) for _ in range(2)]

    def tensors(self) -> dict[str, torch.Tensor]:
        arrays = {"words": self.words, "contexts": self.contexts}
        arrays |= {"word_squares": self.squares[0], "context_squares": self.squares[1]}
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def result(self) -> Table:
        dim = self.settings.dim
        vectors = self.words[:, :dim] + self.contexts[:, :dim] if self.settings.add_contexts else self.words[:, :dim]
        return np.ascontiguousarray(vectors)

    def errors(self, share: Run) -> tuple[sparse.csr_matrix, float]:
        """f(X) (w . c + b + b' - log X) of each pair, a sparse (V, V), and the sum of f(X) times its square."""
        counts = np.asarray(share.counts)
        weight = np.minimum(1, (counts / np.float32(self.settings.x_max)) ** np.float32(self.settings.alpha))
        distance = _products(share, self.words, self.contexts) - np.log(counts)
        errors = weight * distance
        loss = float(np.dot(errors.astype(np.float64), distance))
        size = len(self.words)
        return sparse.csr_matrix((errors, np.asarray(share.columns), share.starts), (size, size)), loss

    def gradients(self, share: Run) -> tuple[Table, Table, float]:
        """Half the derivatives of the loss by both tables, and the loss."""
        errors, loss = self.errors(share)
        across = errors.tocsc()  # its arrays are the rows of the transpose
        across = sparse.csr_matrix((across.data, across.indices, across.indptr), errors.shape)
        jobs = [(errors, self.contexts), (across, self.words)]
        with ThreadPoolExecutor(self.threads) as pool:  # the products leave Python's lock alone
            pieces = [[pool.submit(_product, job, *cut) for cut in _cuts(job[0], self.threads)] for job in jobs]
            by_words, by_contexts = (np.concatenate([piece.result() for piece in each]) for each in pieces)
        by_words[:, self.settings.dim + 1] = 0
        by_contexts[:, self.settings.dim] = 0
        return by_words, by_contexts, loss

    def step(self, share: Run) -> float:
        """One step on a share; gives its loss before."""
        *gradients, loss = self.gradients(share)
        tables = (self.words, self.contexts)
        with ThreadPoolExecutor(min(2, self.threads)) as pool:
            [*pool.map(_adagrad, tables, self.squares, gradients, [self.settings.rate] * 2)]
        return loss


def _adagrad(table: Table, squares: Table, gradient: Table, rate: float) -> None:
    """A step against the gradient, which is used up; a piece at a time, what a cache holds."""
    for first in range(0, len(table), _ROWS):
        here = slice(first, first + _ROWS)
        slope = gradient[here]
        squares[here] += slope * slope
        slope /= np.sqrt(squares[here])
        slope *= np.float32(rate)
        table[here] -= slope


def _products(share: Run, left: Table, right: Table) -> NDArray[np.float32]:
    """left_i . right_j for each pair (i, j) of the share."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that such tensors are young
        starts, columns = torch.from_numpy(share.starts), torch.from_numpy(np.array(share.columns)).long()
        none = torch.zeros(len(columns))
        pattern = torch.sparse_csr_tensor(starts, columns, none, (len(left), len(right)), check_invariants=False)
        found = torch.sparse.sampled_addmm(pattern, torch.from_numpy(left), torch.from_numpy(right).t(), beta=0.0)
    return np.asarray(found.values().numpy())


def _cuts(matrix: sparse.csr_matrix, threads: int) -> list[tuple[int, int]]:
    """Ranges of rows with about as many entries each."""
    edges = np.searchsorted(matrix.indptr, np.linspace(0, matrix.nnz, threads + 1)[1:-1])
    cuts = [0, *edges.tolist(), matrix.shape[0]]
    return [(first, last) for first, last in pairwise(cuts) if first < last]


def _product(job: tuple[sparse.csr_matrix, Table], first: int, last: int) -> Any:
    return job[0][first:last] @ job[1]
