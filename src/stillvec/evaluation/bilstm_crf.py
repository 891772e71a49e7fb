"""BiLSTM-CRF tagger (Huang, Xu & Yu 2015).

100 units per direction, dropout 0.5 on the inputs and the states, Adam with a learning rate that decays from 3e-3 to a
third of it, batches of 32 sentences; the epoch that is best on development sentences predicts. The vector of a word is
the only feature: no characters, capitalization or gazetteers.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from stillvec.evaluation.crf import Steps, best_paths, negative_log_likelihood
from stillvec.evaluation.intervals import Rows
from stillvec.evaluation.sequence_batches import Sequences
from stillvec.evaluation.splits import Round

_UNITS, _DROPOUT, _BATCH = 100, 0.5, 32
_RATE, _DECAY = 3e-3, 1 / 3
_CLIP = 5.0


class TaggerNetwork:
    """The parameters, initialized from a seed; `tuned` also trains the table of vectors."""

    def __init__(self, table: NDArray[np.float32], n_tags: int, seed: int, *, tuned: bool) -> None:
        self.random = torch.Generator().manual_seed(seed)
        self.table = torch.from_numpy(table.copy())
        self.lstm = nn.LSTM(table.shape[1], _UNITS, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * _UNITS, n_tags)
        self.steps: Steps = (torch.empty(n_tags), torch.empty(n_tags, n_tags), torch.empty(n_tags))
        self.parameters = [*self.lstm.parameters(), *self.out.parameters(), *self.steps]
        with torch.no_grad():
            for tensor in self.parameters:  # from its own generator, so that the global state is unchanged
                tensor.copy_((2 * torch.rand(tensor.shape, generator=self.random) - 1) * _UNITS**-0.5)
        self.parameters += [self.table] if tuned else []
        for tensor in self.parameters:
            tensor.requires_grad_()

    def scores(self, ids: Tensor, lengths: Tensor, *, training: bool = False) -> Tensor:
        """(B, L, n_tags) for rows of the table (B, L)."""
        inputs = self._dropout(functional.embedding(ids, self.table, padding_idx=0), training)
        packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        scores: Tensor = self.out(self._dropout(states, training))
        return scores

    def _dropout(self, x: Tensor, training: bool) -> Tensor:
        if not training:
            return x
        mask = torch.rand(x.shape, generator=self.random) >= _DROPOUT
        return x * mask / (1 - _DROPOUT)

    def predict(self, sequences: Sequences, chosen: Rows) -> list[Rows]:
        """The tags of each chosen sentence."""
        tags: dict[int, Rows] = {}
        with torch.no_grad():
            for batch in sequences.batches(chosen, 128):
                ids, lengths = torch.from_numpy(sequences.pad(batch)), torch.from_numpy(sequences.lengths[batch])
                inside = torch.arange(ids.shape[1]) < lengths[:, None]
                paths = best_paths(self.scores(ids, lengths), inside, self.steps).numpy()
                tags |= {n: path[:length] for n, path, length in zip(batch, paths, lengths.tolist(), strict=True)}
        return [tags[number] for number in chosen]


@dataclass(frozen=True)
class Recurrence:
    """Train taggers on the sentences of a dataset."""

    sequences: Sequences
    tags: Rows  # (N,) of each word
    table: NDArray[np.float32]
    quality: Callable[[Rows, list[Rows]], float]  # of the tags of sentences (rows, tags)
    epochs: int = 8
    tuned: bool = False

    def run(self, split: Round, seed: int) -> Generator[float, None, list[Rows]]:
        """The tags of the test sentences; yields the fraction done."""
        best, predicted = -1.0, [np.zeros(length, np.int64) for length in self.sequences.lengths[split.test]]
        for epoch, network in enumerate(self._train(split.train, seed), 1):
            quality = self.quality(split.dev, network.predict(self.sequences, split.dev))
            if quality > best:
                best, predicted = quality, network.predict(self.sequences, split.test)
            yield epoch / self.epochs
        return predicted

    def _train(self, rows: Rows, seed: int) -> Generator[TaggerNetwork, None, None]:
        """The network after each epoch."""
        network = TaggerNetwork(self.table, int(self.tags.max()) + 1, seed, tuned=self.tuned)
        optimizer = torch.optim.Adam(network.parameters, lr=_RATE)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, _DECAY ** (1 / max(1, self.epochs - 1)))
        order = np.random.default_rng(seed)
        tags = Sequences(self.sequences.table, self.tags, self.sequences.ends)
        for _ in range(self.epochs):
            for batch in self.sequences.batches(rows, _BATCH, order):
                lengths = torch.from_numpy(self.sequences.lengths[batch])
                ids, gold = torch.from_numpy(self.sequences.pad(batch)), torch.from_numpy(tags.pad(batch))
                inside = torch.arange(ids.shape[1]) < lengths[:, None]
                scores = network.scores(ids, lengths, training=True)
                loss = negative_log_likelihood(scores, gold, inside, network.steps).mean()
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(network.parameters, _CLIP)
                optimizer.step()
            schedule.step()
            yield network
