"""The networks that supervised tasks train.

`CnnNetwork` is the sentence classifier of X2Static's evaluation (Gupta & Jaggi 2021; after Kim 2014):

    h_t = ReLU(W_0 x_{t-1} + W_1 x_t + W_2 x_{t+1} + b), 100 filters;   scores = A dropout_{0.5}(max over t of h_t) + c

Adam; the learning rate (1e-4, 3e-4 or 1e-3) and the number of epochs (8 to 16) are selected on development items, then
the network is trained again on training and development items.

`TaggerNetwork` is a BiLSTM-CRF (Huang, Xu & Yu 2015): 100 units per direction, dropout 0.5 on the inputs and the
states, Adam with a learning rate that decays from 3e-3 to a third of it, batches of 32 sentences; the epoch that is
best on development sentences predicts. The vector of a word is the only feature: no characters, no capitalization. Its
linear-chain conditional random field (Lafferty, McCallum & Pereira 2001) is

    p(y | s) = exp(begin[y_1] + sum_t s_t[y_t] + sum_t step[y_{t-1}, y_t] + end[y_n]) / Z

Z is computed by the forward algorithm in log space, the best path by Viterbi's. Sentences have at least one word and
are padded; `inside` marks the words.

`perceptron` has one hidden layer and predicts the labels of words from label counts per word:

    scores = B ReLU(A x + a) + b;   loss = mean over all occurrences of -log softmax(scores)[label]

A static vector is the same for all occurrences of a word, so label counts replace the occurrences and one full-batch
step is one epoch over the corpus. Optimizer: Adam. Early stopping after 10 steps without a lower development loss (the
paper monitors accuracy, which can stay constant for longer than that while full-batch training still improves).
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from stillvec.evaluation.intervals import Floats, Rows
from stillvec.evaluation.sequence_batches import Sequences
from stillvec.evaluation.splits import Round

Steps = tuple[Tensor, Tensor, Tensor]  # begin (k,), step (k, k) from row to column, end (k,)


def log_partition(scores: Tensor, inside: Tensor, steps: Steps) -> Tensor:
    """log Z of each sentence (B,); scores are (B, L, k), inside (B, L)."""
    begin, step, end = steps
    alpha = begin + scores[:, 0]  # (B, k)
    for t in range(1, scores.shape[1]):
        following = torch.logsumexp(alpha.unsqueeze(2) + step, dim=1) + scores[:, t]
        alpha = torch.where(inside[:, t, None], following, alpha)
    return torch.logsumexp(alpha + end, dim=1)


def path_score(scores: Tensor, tags: Tensor, inside: Tensor, steps: Steps) -> Tensor:
    """The unnormalized log score of one path per sentence (B,); tags are (B, L)."""
    begin, step, end = steps
    emissions = scores.gather(2, tags.unsqueeze(2)).squeeze(2)  # (B, L)
    transitions = step[tags[:, :-1], tags[:, 1:]]  # (B, L - 1)
    last = tags.gather(1, inside.sum(dim=1, keepdim=True) - 1).squeeze(1)
    return begin[tags[:, 0]] + (emissions * inside).sum(dim=1) + (transitions * inside[:, 1:]).sum(dim=1) + end[last]


def negative_log_likelihood(scores: Tensor, tags: Tensor, inside: Tensor, steps: Steps) -> Tensor:
    """-log p of one path per sentence (B,)."""
    return log_partition(scores, inside, steps) - path_score(scores, tags, inside, steps)


def best_paths(scores: Tensor, inside: Tensor, steps: Steps) -> Tensor:
    """The most probable path of each sentence (B, L), 0 outside; of equals the one with smaller tags from the end."""
    begin, step, end = steps
    best = begin + scores[:, 0]
    backpointers: list[Tensor] = []
    for t in range(1, scores.shape[1]):
        reached, previous = (best.unsqueeze(2) + step).max(dim=1)  # (B, k)
        here = inside[:, t, None]
        backpointers.append(torch.where(here, previous, torch.arange(best.shape[1])))  # padding keeps the tag
        best = torch.where(here, reached + scores[:, t], best)
    tag = (best + end).argmax(dim=1)
    path = [tag]
    for previous in reversed(backpointers):
        tag = previous.gather(1, tag.unsqueeze(1)).squeeze(1)
        path.append(tag)
    return torch.stack(path[::-1], dim=1) * inside


_DROPOUT = 0.5
_FILTERS, _WIDTH, _CNN_BATCH = 100, 3, 50  # Kim's
_UNITS, _TAGGER_BATCH, _TAGGER_RATE, _DECAY, _CLIP = 100, 32, 3e-3, 1 / 3, 5.0
_RATE, _PATIENCE, _LONGEST = 5e-3, 10, 500  # of the perceptron


class TextNetwork:
    """A network that reads rows of a table of vectors, initialized from a seed; `tuned` also trains the table."""

    def __init__(self, table: NDArray[np.float32], seed: int) -> None:
        self.random = torch.Generator().manual_seed(seed)  # of its own, so that the global state is unchanged
        self.table = torch.from_numpy(table.copy())
        self.parameters: list[Tensor] = []

    def add(self, tensor: Tensor, bound: float) -> Tensor:
        """Draw the values of a parameter."""
        with torch.no_grad():
            tensor.copy_((2 * torch.rand(tensor.shape, generator=self.random) - 1) * bound)
        self.parameters.append(tensor.requires_grad_())
        return tensor

    def dropout(self, x: Tensor, training: bool) -> Tensor:
        if not training:
            return x
        return x * (torch.rand(x.shape, generator=self.random) >= _DROPOUT) / (1 - _DROPOUT)


class CnnNetwork(TextNetwork):
    def __init__(self, table: NDArray[np.float32], n_classes: int, seed: int, *, tuned: bool) -> None:
        super().__init__(table, seed)
        dim = table.shape[1]
        self.filters = self.add(torch.empty(dim, _WIDTH * _FILTERS), (_WIDTH * dim) ** -0.5)
        self.bias = self.add(torch.empty(_FILTERS), (_WIDTH * dim) ** -0.5)
        self.out = self.add(torch.empty(_FILTERS, n_classes), _FILTERS**-0.5)
        self.out_bias = self.add(torch.empty(n_classes), _FILTERS**-0.5)
        self.parameters += [self.table.requires_grad_()] if tuned else []

    def scores(self, ids: Tensor, *, training: bool = False) -> Tensor:
        """(B, n_classes) for rows of the table (B, 1 + L + 1)."""
        words, place = torch.unique(ids, return_inverse=True)  # filter a repeated word once
        filtered = functional.embedding(words, self.table, padding_idx=0) @ self.filters  # (w, 3 F)
        parts = functional.embedding(place, filtered).view(*ids.shape, _WIDTH, _FILTERS)
        hidden = parts[:, :-2, 0] + parts[:, 1:-1, 1] + parts[:, 2:, 2] + self.bias  # (B, L, F)
        inside = (ids[:, 1:-1] != 0).unsqueeze(2)
        pooled = (torch.relu(hidden) * inside).amax(dim=1)  # (B, F)
        return self.dropout(pooled, training) @ self.out + self.out_bias

    def predict(self, sequences: Sequences, chosen: Rows) -> Rows:
        """The label of each chosen text (n,)."""
        labels = np.zeros(len(sequences), np.int64)
        with torch.no_grad():
            for batch in sequences.batches(chosen, 256):
                labels[batch] = self.scores(torch.from_numpy(sequences.pad(batch, border=1))).argmax(dim=1).numpy()
        return labels[chosen]


@dataclass(frozen=True)
class CnnSchedule:
    rates: tuple[float, ...] = (1e-4, 3e-4, 1e-3)
    epochs: tuple[int, int] = (8, 16)


QUICK = CnnSchedule((1e-3,), (3, 6))


@dataclass(frozen=True)
class Convolution:
    """Train convolutional networks on the texts of a dataset."""

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
            for batch in self.sequences.batches(rows, _CNN_BATCH, order):
                scores = network.scores(torch.from_numpy(self.sequences.pad(batch, border=1)), training=True)
                _step(optimizer, functional.cross_entropy(scores, torch.from_numpy(self.labels[batch])))
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


class TaggerNetwork(TextNetwork):
    def __init__(self, table: NDArray[np.float32], n_tags: int, seed: int, *, tuned: bool) -> None:
        super().__init__(table, seed)
        self.lstm = nn.LSTM(table.shape[1], _UNITS, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * _UNITS, n_tags)
        self.steps: Steps = (torch.empty(n_tags), torch.empty(n_tags, n_tags), torch.empty(n_tags))
        for tensor in (*self.lstm.parameters(), *self.out.parameters(), *self.steps):
            self.add(tensor, _UNITS**-0.5)
        self.parameters += [self.table.requires_grad_()] if tuned else []

    def scores(self, ids: Tensor, lengths: Tensor, *, training: bool = False) -> Tensor:
        """(B, L, n_tags) for rows of the table (B, L)."""
        inputs = self.dropout(functional.embedding(ids, self.table, padding_idx=0), training)
        packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        scores: Tensor = self.out(self.dropout(states, training))
        return scores

    def predict(self, sequences: Sequences, chosen: Rows) -> list[Rows]:
        """The tags of each chosen sentence."""
        tags: dict[int, Rows] = {}
        with torch.no_grad():
            for batch in sequences.batches(chosen, 128):
                ids, lengths, inside = _read_batch(sequences, batch)
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

    def _train(self, rows: Rows, seed: int) -> Iterator[TaggerNetwork]:
        """The network after each epoch."""
        network = TaggerNetwork(self.table, int(self.tags.max()) + 1, seed, tuned=self.tuned)
        optimizer = torch.optim.Adam(network.parameters, lr=_TAGGER_RATE)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, _DECAY ** (1 / max(1, self.epochs - 1)))
        order = np.random.default_rng(seed)
        tags = Sequences(self.sequences.table, self.tags, self.sequences.ends)
        for _ in range(self.epochs):
            for batch in self.sequences.batches(rows, _TAGGER_BATCH, order):
                ids, lengths, inside = _read_batch(self.sequences, batch)
                scores = network.scores(ids, lengths, training=True)
                losses = negative_log_likelihood(scores, torch.from_numpy(tags.pad(batch)), inside, network.steps)
                _step(optimizer, losses.mean(), network.parameters)
            schedule.step()
            yield network


def perceptron(x: NDArray[np.float32], seen: Floats, judged: Floats, hidden: int, seed: int) -> Rows:
    """Predict a label per row of x (w, d): training counts `seen` (w, k), early stopping on counts `judged` (w, k)."""
    generator = torch.Generator().manual_seed(seed)
    layers = nn.Linear(x.shape[1], hidden), nn.Linear(hidden, seen.shape[1])
    network = nn.Sequential(layers[0], nn.ReLU(), layers[1])
    with torch.no_grad():
        for layer in layers:
            for tensor in layer.parameters():
                tensor.copy_((2 * torch.rand(tensor.shape, generator=generator) - 1) * layer.in_features**-0.5)
    in_train = seen.sum(axis=1) > 0
    train, counts = torch.from_numpy(x[in_train]), torch.from_numpy((seen[in_train] / seen.sum()).astype(np.float32))
    optimizer = torch.optim.Adam(network.parameters(), lr=_RATE)
    in_dev = judged.sum(axis=1) > 0
    dev, weights = torch.from_numpy(x[in_dev]), torch.from_numpy(judged[in_dev].astype(np.float32))
    best, n_stale, labels = np.inf, 0, np.zeros(len(x), np.int64)
    for _ in range(_LONGEST):
        _step(optimizer, -(torch.log_softmax(network(train), dim=1) * counts).sum())
        with torch.no_grad():
            dev_loss, n_stale = -float((torch.log_softmax(network(dev), dim=1) * weights).sum()), n_stale + 1
            if dev_loss < best:
                best, n_stale, labels = dev_loss, 0, network(torch.from_numpy(x)).argmax(dim=1).numpy()
        if n_stale == _PATIENCE:
            break
    return labels


def _read_batch(sequences: Sequences, batch: Rows) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of the table (B, L), lengths (B,), and which places are words (B, L)."""
    ids, lengths = torch.from_numpy(sequences.pad(batch)), torch.from_numpy(sequences.lengths[batch])
    return ids, lengths, torch.arange(ids.shape[1]) < lengths[:, None]


def _step(optimizer: torch.optim.Optimizer, loss: Tensor, clipped: list[Tensor] | None = None) -> None:
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    if clipped:
        nn.utils.clip_grad_norm_(clipped, _CLIP)
    optimizer.step()
