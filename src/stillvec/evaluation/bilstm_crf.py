"""The tagger of the papers' evaluations: a BiLSTM over the vectors, a CRF over its states (Huang, Xu & Yu 2015).

100 units to each side, half of the inputs and of the states dropped, Adam at 3e-3 falling to a third at the end,
batches of 32 sentences; of all epochs the one that does best on development sentences is kept. No characters, no
capital letters, no lists: what it knows of a word is its vector.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from stillvec.evaluation.crf import Steps, best_paths, negative_log_likelihood
from stillvec.evaluation.sequence_batches import Sequences
from stillvec.evaluation.splits import Round, Rows

_UNITS, _DROPPED, _BATCH = 100, 0.5, 32
_RATE, _FALL = 3e-3, 1 / 3
_CLIP = 5.0


class TaggerNetwork:
    """Its tensors, drawn from a seed; `tuned` adds the table of vectors to what is learnt."""

    def __init__(self, table: NDArray[np.float32], tags: int, seed: int, *, tuned: bool) -> None:
        self.random = torch.Generator().manual_seed(seed)
        self.table = torch.from_numpy(table.copy())
        self.lstm = nn.LSTM(table.shape[1], _UNITS, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * _UNITS, tags)
        self.steps: Steps = (torch.empty(tags), torch.empty(tags, tags), torch.empty(tags))
        self.learnt = [*self.lstm.parameters(), *self.out.parameters(), *self.steps]
        with torch.no_grad():
            for tensor in self.learnt:  # from a generator of its own: nobody else's draws are changed
                tensor.copy_((2 * torch.rand(tensor.shape, generator=self.random) - 1) * _UNITS**-0.5)
        self.learnt += [self.table] if tuned else []
        for tensor in self.learnt:
            tensor.requires_grad_()

    def scores(self, ids: Tensor, lengths: Tensor, *, training: bool = False) -> Tensor:
        """(B, L, tags) of rows of the table (B, L)."""
        read = self._dropped(functional.embedding(ids, self.table, padding_idx=0), training)
        packed = pack_padded_sequence(read, lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        scores: Tensor = self.out(self._dropped(states, training))
        return scores

    def _dropped(self, x: Tensor, training: bool) -> Tensor:
        if not training:
            return x
        kept = torch.rand(x.shape, generator=self.random) >= _DROPPED
        return x * kept / (1 - _DROPPED)

    def predict(self, sequences: Sequences, chosen: Rows) -> list[Rows]:
        """The tags of each chosen sentence."""
        found: dict[int, Rows] = {}
        with torch.no_grad():
            for batch in sequences.batches(chosen, 128):
                ids, lengths = torch.from_numpy(sequences.padded(batch)), torch.from_numpy(sequences.lengths[batch])
                inside = torch.arange(ids.shape[1]) < lengths[:, None]
                paths = best_paths(self.scores(ids, lengths), inside, self.steps).numpy()
                found |= {n: path[:length] for n, path, length in zip(batch, paths, lengths.tolist(), strict=True)}
        return [found[number] for number in chosen]


@dataclass(frozen=True)
class Recurrence:
    """Trains taggers on the sentences of a dataset."""

    sequences: Sequences
    tags: Rows  # (N,) of each word
    table: NDArray[np.float32]
    quality: Callable[[Rows, list[Rows]], float]  # of the tags of some sentences
    epochs: int = 8
    tuned: bool = False

    def run(self, split: Round, seed: int) -> Generator[float, None, list[Rows]]:
        """The tags of the test sentences; yields how much of the work is done."""
        best, said = -1.0, [np.zeros(length, np.int64) for length in self.sequences.lengths[split.test]]
        for epoch, network in enumerate(self._trained(split.train, seed), 1):
            quality = self.quality(split.dev, network.predict(self.sequences, split.dev))
            if quality > best:
                best, said = quality, network.predict(self.sequences, split.test)
            yield epoch / self.epochs
        return said

    def _trained(self, rows: Rows, seed: int) -> Generator[TaggerNetwork, None, None]:
        """The network after each epoch."""
        network = TaggerNetwork(self.table, int(self.tags.max()) + 1, seed, tuned=self.tuned)
        optimizer = torch.optim.Adam(network.learnt, lr=_RATE)
        falling = torch.optim.lr_scheduler.ExponentialLR(optimizer, _FALL ** (1 / max(1, self.epochs - 1)))
        order = np.random.default_rng(seed)
        tags = Sequences(self.sequences.table, self.tags, self.sequences.ends)
        for _ in range(self.epochs):
            for batch in self.sequences.batches(rows, _BATCH, order):
                lengths = torch.from_numpy(self.sequences.lengths[batch])
                ids, gold = torch.from_numpy(self.sequences.padded(batch)), torch.from_numpy(tags.padded(batch))
                inside = torch.arange(ids.shape[1]) < lengths[:, None]
                scores = network.scores(ids, lengths, training=True)
                loss = negative_log_likelihood(scores, gold, inside, network.steps).mean()
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(network.learnt, _CLIP)
                optimizer.step()
            falling.step()
            yield network
