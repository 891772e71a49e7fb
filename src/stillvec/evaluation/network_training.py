"""Train networks on the rounds of a dataset; settings are selected on development items, never on test items.

`Convolution`: the learning rate (1e-4, 3e-4 or 1e-3) and the number of epochs (8 to 16) of each set of vectors are
selected on development items, then its networks are trained again on training and development items (Gupta & Jaggi
2021). `Recurrence`: Adam with a learning rate that decays from 3e-3 to a third of it; the epoch that is best on
development sentences predicts. `SpanTraining`: the same for probes of spans.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stillvec.evaluation.intervals import Floats, Rows
from stillvec.evaluation.supervised import f1_ratio
from stillvec.heads.networks import NetworkSettings, PaddedTexts, TaggerNetworks
from stillvec.heads.span_networks import SpanNetworks, SpanSettings
from stillvec.heads.span_questions import SpanQuestions
from stillvec.heads.splits import Round
from stillvec.heads.text_networks import CnnNetworks

_TAGGER_RATE, SPAN_RATE, _DECAY = 3e-3, 3e-3, 1 / 3


@dataclass(frozen=True)
class CnnSchedule:
    rates: tuple[float, ...] = (1e-4, 3e-4, 1e-3)
    epochs: tuple[int, int] = (8, 16)


QUICK = CnnSchedule((1e-3,), (3, 6))


@dataclass(frozen=True)
class Convolution:
    """Train convolutional networks on the texts of a dataset, for every set of vectors."""

    texts: PaddedTexts
    labels: Rows  # (n,)
    schedule: CnnSchedule = CnnSchedule()
    tuned: bool = False

    def train(self, rows: Rows, networks: Sequence[NetworkSettings], n_epochs: int) -> Iterator[CnnNetworks]:
        """The networks after each epoch."""
        group = CnnNetworks(self.texts, self.labels, networks, tuned=self.tuned)
        for _ in group.train(rows, n_epochs):
            yield group

    def run(self, split: Round, n_seeds: int) -> Generator[float, None, Rows]:
        """Labels of the test items in each set (S, n, seeds); yields the fraction done."""
        first, last = self.schedule.epochs
        steps = last * (len(self.schedule.rates) + n_seeds)  # of one network, which differ little
        vectors = range(len(self.texts.sequences))
        best = [(-1.0, 0.0, 0) for _ in vectors]
        grid = [NetworkSettings(number, 0, rate) for number in vectors for rate in self.schedule.rates]
        for epoch, group in enumerate(self.train(split.train, grid, last), 1):
            if epoch >= first:
                right = (group.predict(split.dev).cpu().numpy() == self.labels[split.dev]).mean(axis=1)
                for network, share in zip(grid, right.tolist(), strict=True):
                    best[network.vectors] = max(best[network.vectors], (share, network.rate, -epoch))
            yield epoch * len(self.schedule.rates) / steps
        final = [NetworkSettings(number, seed, best[number][1]) for number in vectors for seed in range(n_seeds)]
        until = np.array([-best[network.vectors][2] for network in final])
        labels = np.zeros((len(final), len(split.test)), np.int64)
        for epoch, group in enumerate(self.train(split.both, final, int(until.max())), 1):
            if (until == epoch).any():
                labels[until == epoch] = group.predict(split.test).cpu().numpy()[until == epoch]
            yield (last * len(self.schedule.rates) + epoch * n_seeds) / steps
        yield 1.0
        return labels.reshape(len(vectors), n_seeds, -1).transpose(0, 2, 1)


@dataclass(frozen=True)
class Recurrence:
    """Train taggers on the sentences of a dataset, for every set of vectors."""

    texts: PaddedTexts
    tags: Rows  # (N,) of each word
    quality: Callable[[Rows, Rows], float]  # of the tags of the words (W,) of sentences (rows, tags)
    epochs: int = 8
    tuned: bool = False

    def run(self, split: Round, seeds: Sequence[int]) -> Generator[float, None, Rows]:
        """The tags of the words of the test sentences in each set (S, seeds, W); yields the fraction done."""
        vectors = range(len(self.texts.sequences))
        networks = [NetworkSettings(number, seed, _TAGGER_RATE) for number in vectors for seed in seeds]
        group = TaggerNetworks(self.texts, self.tags, networks, tuned=self.tuned)

        def measure() -> Floats:
            return np.array([self.quality(split.dev, tags) for tags in group.predict_words(split.dev)])

        yield from group.train_best(split.train, self.epochs, measure, decay=_DECAY)
        return group.predict_words(split.test).reshape(len(vectors), len(seeds), -1)


SpanLabels = tuple[NDArray[np.bool_], NDArray[np.float32]]


@dataclass(frozen=True)
class SpanTraining:
    """Train probes of spans on the sentences of a dataset, for one pooling."""

    texts: PaddedTexts
    questions: SpanQuestions
    settings: SpanSettings
    epochs: int = 8

    def run(self, split: Round, networks: Sequence[NetworkSettings]) -> Generator[float, None, SpanLabels]:
        """The labels of the questions about test sentences (M, N, k), others False, and the weights of layers.

        Yields the fraction done.
        """
        group = SpanNetworks(self.texts, self.questions, networks, self.settings)
        rows = split.train[self.questions.count_by_text(self.texts.n_texts)[split.train] > 0]

        def measure() -> Floats:
            return np.array([self._quality(split.dev, labels) for labels in group.predict_labels(split.dev)])

        yield from group.train_best(rows, self.epochs, measure, decay=_DECAY)
        return group.predict_labels(split.test), group.share_layers()

    def _quality(self, rows: Rows, said: NDArray[np.bool_]) -> float:
        """Micro-F1 of the questions about these sentences."""
        totals = self.questions.count(said, self.texts.n_texts)[rows]
        return float(f1_ratio(np.ones((1, len(rows))), totals[:, :, None])[0])
