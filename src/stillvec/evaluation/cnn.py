"""Convolutional sentence classifier of X2Static's evaluation (Gupta & Jaggi 2021; after Kim 2014).

    h_t = ReLU(W_0 x_{t-1} + W_1 x_t + W_2 x_{t+1} + b), 100 filters;   scores = A dropout_{0.5}(max over t of h_t) + c

Adam; the learning rate (1e-4, 3e-4 or 1e-3) and the number of epochs (8 to 16) are selected on development items, then
the network is trained again on training and development items.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from stillvec.evaluation.intervals import Rows
from stillvec.evaluation.sequence_batches import Sequences
from stillvec.evaluation.splits import Round

_FILTERS, _WIDTH, _DROPOUT = 100, 3, 0.5
_BATCH = 50  # Kim's


@dataclass(frozen=True)
class CnnSchedule:
    rates: tuple[float, ...] = (1e-4, 3e-4, 1e-3)
    epochs: tuple[int, int] = (8, 16)


QUICK = CnnSchedule((1e-3,), (3, 6))


class CnnNetwork:
    """The parameters, initialized from a seed; `tuned` also trains the table of vectors."""

    def __init__(self, table: NDArray[np.float32], n_classes: int, seed: int, *, tuned: bool) -> None:
        self.random = torch.Generator().manual_seed(seed)
        dim = table.shape[1]
        self.table = torch.from_numpy(table.copy())
        self.filters = self._draw(dim, _WIDTH * _FILTERS, bound=(_WIDTH * dim) ** -0.5)
        self.bias = self._draw(_FILTERS, bound=(_WIDTH * dim) ** -0.5)
        self.out = self._draw(_FILTERS, n_classes, bound=_FILTERS**-0.5)
        self.out_bias = self._draw(n_classes, bound=_FILTERS**-0.5)
        self.parameters = [self.filters, self.bias, self.out, self.out_bias]
        if tuned:
            self.parameters.append(self.table)
        for tensor in self.parameters:
            tensor.requires_grad_()

    def _draw(self, *shape: int, bound: float) -> torch.Tensor:
        return (2 * torch.rand(*shape, generator=self.random) - 1) * bound

    def scores(self, ids: torch.Tensor, *, training: bool = False) -> torch.Tensor:
        """(B, n_classes) for rows of the table (B, 1 + L + 1)."""
        words, place = torch.unique(ids, return_inverse=True)  # filter a repeated word once
        filtered = functional.embedding(words, self.table, padding_idx=0) @ self.filters  # (w, 3 F)
        parts = functional.embedding(place, filtered).view(*ids.shape, _WIDTH, _FILTERS)
        hidden = parts[:, :-2, 0] + parts[:, 1:-1, 1] + parts[:, 2:, 2] + self.bias  # (B, L, F)
        inside = (ids[:, 1:-1] != 0).unsqueeze(2)
        pooled = (torch.relu(hidden) * inside).amax(dim=1)  # (B, F)
        if training:
            mask = torch.rand(pooled.shape, generator=self.random) >= _DROPOUT
            pooled = pooled * mask / (1 - _DROPOUT)
        return pooled @ self.out + self.out_bias

    def predict(self, sequences: Sequences, chosen: Rows) -> Rows:
        """The label of each chosen text (n,)."""
        labels = np.zeros(len(sequences), np.int64)
        with torch.no_grad():
            for batch in sequences.batches(chosen, 256):
                ids = torch.from_numpy(sequences.pad(batch, border=1))
                labels[batch] = self.scores(ids).argmax(dim=1).numpy()
        return labels[chosen]


@dataclass(frozen=True)
class Convolution:
    """Train networks on the texts of a dataset."""

    sequences: Sequences
    labels: Rows  # (n,)
    table: NDArray[np.float32]
    schedule: CnnSchedule = CnnSchedule()
    tuned: bool = False

    def train(self, rows: Rows, rate: float, n_epochs: int, seed: int) -> Iterator[CnnNetwork]:
        """The network after each epoch."""
        network = CnnNetwork(self.table, int(self.labels.max()) + 1, seed, tuned=self.tuned)
        optimizer = torch.optim.Adam(network.parameters, lr=rate)
        order = np.random.default_rng(seed)
        for _ in range(n_epochs):
            for batch in self.sequences.batches(rows, _BATCH, order):
                ids = torch.from_numpy(self.sequences.pad(batch, border=1))
                scores = network.scores(ids, training=True)
                loss = functional.cross_entropy(scores, torch.from_numpy(self.labels[batch]))
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            yield network

    def run(self, split: Round, n_seeds: int) -> Generator[float, None, Rows]:
        """Labels of the test items (n, seeds); yields the fraction done."""
        first, last = self.schedule.epochs
        steps = last * (len(self.schedule.rates) + n_seeds)
        done, best = 0, (-1.0, 0.0, 0)
        for rate in self.schedule.rates:
            for epoch, network in enumerate(self.train(split.train, rate, last, 0), 1):
                if epoch >= first:
                    right = float((network.predict(self.sequences, split.dev) == self.labels[split.dev]).mean())
                    best = max(best, (right, rate, -epoch))
                done += 1
                yield done / steps
        _, rate, epochs = best
        labels = []
        for seed in range(n_seeds):
            networks = self.train(split.both, rate, -epochs, seed)
            network = next(networks)
            for network in networks:  # noqa: B007 - the last one predicts
                done += 1
                yield done / steps
            labels.append(network.predict(self.sequences, split.test))
        yield 1.0
        return np.stack(labels, axis=1)
