"""A probe of whole texts: it reads the vector of one text, or [u; v; |u - v|; u * v] of two (Conneau et al. 2017).

The features of pairs and their penalties are those of the head `pair`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.evaluation.intervals import Floats, Rows
from stillvec.evaluation.supervised import share
from stillvec.evaluation.tasks import TextTask
from stillvec.heads.linear_probe import PENALTIES, Scaling, one_hot, select_logistic
from stillvec.heads.pair_head import PAIR_PENALTIES, pair_features
from stillvec.heads.sequence_batches import Representation
from stillvec.heads.splits import Round
from stillvec.registry import check_least

_BLOCK = 4096  # rows of features in memory at once, in a prediction


@dataclass(frozen=True)
class EncodedItems:
    """The vectors of distinct texts, and which of them each item reads."""

    vectors: NDArray[np.float32]  # (t, dim)
    places: Rows  # (N, sides)
    counts: Floats  # (t, 2) known words and all words of each text

    @property
    def known_of_all(self) -> Floats:
        """Known words and all words of each item (N, 2)."""
        return np.asarray(self.counts[self.places].sum(axis=1))

    def is_covered(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether every text of an item has a known word."""
        return np.asarray((self.counts[self.places[rows], 0] > 0).all(axis=1))

    def features(self, rows: Rows) -> NDArray[np.float32]:
        """What the probe reads of the items (n, dim), of pairs (n, 4 dim)."""
        sides = [np.asarray(self.vectors[column], np.float32) for column in self.places[rows].T]
        return sides[0] if len(sides) == 1 else pair_features(*sides)


def encode_items(
    representation: Representation, texts: Sequence[Sequence[str]], learnt: slice = slice(0)
) -> Generator[float, None, EncodedItems]:
    """Encode every distinct text once; a generator of the fraction done.

    The texts of the `learnt` items are encoded first, so that a teacher finds them in its cache when others are tested.
    """
    numbers: dict[str, int] = {}
    parts = []
    for number, items in enumerate((texts[learnt], texts)):
        start = len(numbers)
        for text in chain.from_iterable(items):
            numbers.setdefault(text, len(numbers))
        if len(numbers) > start:
            parts.append((yield from share(number, 2, representation.encode_texts_steps([*numbers][start:]))))
    vectors = parts[0] if len(parts) == 1 else np.concatenate(parts)
    places = [[numbers[text] for text in item] for item in texts]
    return EncodedItems(vectors, np.array(places, np.int64), representation.count_words([*numbers]))


@dataclass(frozen=True)
class ProbeTask(TextTask):
    """A task that predicts the label of a text or of a pair of texts."""

    probe: Literal["logistic", "perceptron"] = "logistic"  # the penalty, or the end of training, is chosen on dev
    hidden: int = 100  # units of the perceptron
    seeds: int = 3  # of the perceptron; logistic regression has one solution

    def __post_init__(self) -> None:
        check_least(self, hidden=1, seeds=1)

    def predict_labels(self, table: EncodedItems, labels: Rows, split: Round, asked: Rows) -> Rows:
        """The labels of the asked items (n, seeds), learnt from the training and development items of a split."""
        learnt = np.arange(len(split.both))
        train, dev = learnt[: len(split.train)], learnt[len(split.train) :]
        x, y = table.features(split.both), labels[split.both]
        if self.probe == "logistic":
            return np.asarray(self.score_labels(table, labels, split, asked).argmax(axis=1), np.int64)[:, None]
        from stillvec.heads.networks import perceptron  # importing torch takes seconds

        scaling = Scaling.of(x[train])
        rows = scaling(np.concatenate([x, table.features(asked)])).astype(np.float32)
        seen, judged = (np.zeros((len(rows), int(labels.max()) + 1)) for _ in range(2))
        seen[train], judged[dev] = (one_hot(y[part], seen.shape[1]) for part in (train, dev))
        seeds = range(1 if self.quick else self.seeds)
        return np.stack([perceptron(rows, seen, judged, self.hidden, seed)[len(x) :] for seed in seeds], axis=1)

    def score_labels(self, table: EncodedItems, labels: Rows, split: Round, asked: Rows) -> Floats:
        """The scores of logistic regression, whose softmax are probabilities, for the labels of the items (n, k)."""
        learnt = np.arange(len(split.both))
        train, dev = learnt[: len(split.train)], learnt[len(split.train) :]
        penalties = PENALTIES if table.places.shape[1] == 1 else PAIR_PENALTIES
        scaling, weights = select_logistic(table.features(split.both), labels[split.both], train, dev, penalties)
        starts = range(0, len(asked), _BLOCK)
        blocks = [scaling(table.features(asked[start : start + _BLOCK])) for start in starts]
        scores = [block @ weights[:-1] + weights[-1] for block in blocks]
        return np.concatenate([np.zeros((0, weights.shape[1])), *scores])
