"""The sentence classifier of X2Static's evaluation (Gupta & Jaggi 2021; after Kim 2014).

    h_t = ReLU(W_0 x_{t-1} + W_1 x_t + W_2 x_{t+1} + b), 100 filters;   scores = A dropout_{0.5}(max over t of h_t) + c

Adam; the rate of 1e-4, 3e-4 or 1e-3 and 8 to 16 epochs are those that do best on development items, and with them it
learns again, from training and development items.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from stillvec.evaluation.sequence_batches import Sequences
from stillvec.evaluation.splits import Round, Rows

_FILTERS, _WIDTH, _DROPPED = 100, 3, 0.5
_BATCH = 50  # Kim's


@dataclass(frozen=True)
class CnnSchedule:
    rates: tuple[float, ...] = (1e-4, 3e-4, 1e-3)
    epochs: tuple[int, int] = (8, 16)


QUICK = CnnSchedule((1e-3,), (3, 6))


class CnnNetwork:
    """Its tensors, drawn from a seed; `tuned` adds the table of vectors to what is learnt."""

    def __init__(self, table: NDArray[np.float32], classes: int, seed: int, *, tuned: bool) -> None:
        self.random = torch.Generator().manual_seed(seed)
        dim = table.shape[1]
        self.table = torch.from_numpy(table.copy())
        self.filters = self._drawn(dim, _WIDTH * _FILTERS, bound=(_WIDTH * dim) ** -0.5)
        self.bias = self._drawn(_FILTERS, bound=(_WIDTH * dim) ** -0.5)
        self.out = self._drawn(_FILTERS, classes, bound=_FILTERS**-0.5)
        self.out_bias = self._drawn(classes, bound=_FILTERS**-0.5)
        self.learnt = [self.filters, self.bias, self.out, self.out_bias]
        if tuned:
            self.learnt.append(self.table)
        for tensor in self.learnt:
            tensor.requires_grad_()

    def _drawn(self, *shape: int, bound: float) -> torch.Tensor:
        return (2 * torch.rand(*shape, generator=self.random) - 1) * bound

    def scores(self, ids: torch.Tensor, *, training: bool = False) -> torch.Tensor:
        """(B, classes) of rows of the table (B, 1 + L + 1)."""
        words, place = torch.unique(ids, return_inverse=True)  # a word that stands there ten times is filtered once
        heard_words = functional.embedding(words, self.table, padding_idx=0) @ self.filters  # (w, 3 F)
        parts = functional.embedding(place, heard_words).view(*ids.shape, _WIDTH, _FILTERS)
        heard = parts[:, :-2, 0] + parts[:, 1:-1, 1] + parts[:, 2:, 2] + self.bias  # (B, L, F)
        inside = (ids[:, 1:-1] != 0).unsqueeze(2)
        pooled = (torch.relu(heard) * inside).amax(dim=1)  # (B, F)
        if training:
            kept = torch.rand(pooled.shape, generator=self.random) >= _DROPPED
            pooled = pooled * kept / (1 - _DROPPED)
        return pooled @ self.out + self.out_bias

    def predict(self, sequences: Sequences, chosen: Rows) -> Rows:
        """The label of each chosen text (n,)."""
        labels = np.zeros(len(sequences), np.int64)
        with torch.no_grad():
            for batch in sequences.batches(chosen, 256):
                ids = torch.from_numpy(sequences.padded(batch, border=1))
                labels[batch] = self.scores(ids).argmax(dim=1).numpy()
        return labels[chosen]


@dataclass(frozen=True)
class Convolution:
    """Trains networks on the texts of a dataset."""

    sequences: Sequences
    labels: Rows  # (n,)
    table: NDArray[np.float32]
    schedule: CnnSchedule = CnnSchedule()
    tuned: bool = False

    def trained(self, rows: Rows, rate: float, epochs: int, seed: int) -> Iterator[CnnNetwork]:
        """The network after each epoch."""
        network = CnnNetwork(self.table, int(self.labels.max()) + 1, seed, tuned=self.tuned)
        optimizer = torch.optim.Adam(network.learnt, lr=rate)
        order = np.random.default_rng(seed)
        for _ in range(epochs):
            for batch in self.sequences.batches(rows, _BATCH, order):
                ids = torch.from_numpy(self.sequences.padded(batch, border=1))
                scores = network.scores(ids, training=True)
                loss = functional.cross_entropy(scores, torch.from_numpy(self.labels[batch]))
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            yield network

    def run(self, split: Round, seeds: int) -> Generator[float, None, Rows]:
        """Labels of the test items (n, seeds); yields how much of the work is done."""
        first, last = self.schedule.epochs
        steps = last * (len(self.schedule.rates) + seeds)
        done, best = 0, (-1.0, 0.0, 0)
        for rate in self.schedule.rates:
            for epoch, network in enumerate(self.trained(split.train, rate, last, 0), 1):
                if epoch >= first:
                    right = float((network.predict(self.sequences, split.dev) == self.labels[split.dev]).mean())
                    best = max(best, (right, rate, -epoch))
                done += 1
                yield done / steps
        _, rate, epochs = best
        found = []
        for seed in range(seeds):
            networks = self.trained(split.both, rate, -epochs, seed)
            network = next(networks)
            for network in networks:  # noqa: B007 - the last one counts
                done += 1
                yield done / steps
            found.append(network.predict(self.sequences, split.test))
        yield 1.0
        return np.stack(found, axis=1)
