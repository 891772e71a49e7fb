"""Logistic regression on the mean of the known words; with `hidden`, one layer between.

Vectors that are not trained, without a hidden layer and with cross-entropy, have one solution for a penalty, which is
found by L-BFGS; the penalty is selected on development texts, then all texts are used. Everything else is trained by
gradient descent. A teacher's labels are shares of labels of the same regression.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.heads.head_kind import Arrays, Lesson, NetworkHead, Trained, choose_threshold
from stillvec.heads.linear_probe import PENALTIES, Scaling, fit_sigmoids, logistic, predict_sigmoids
from stillvec.heads.numpy_layers import Floats32
from stillvec.heads.sequence_batches import UNKNOWN, Sequences
from stillvec.heads.training_options import TeacherOption
from stillvec.numerics.array_types import Floats, Rows
from stillvec.registry import check_least


@dataclass(frozen=True)
class Linear(NetworkHead):
    penalties: ClassVar[tuple[float, ...]] = PENALTIES

    hidden: int = 0  # units of a layer between the mean and the scores

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, hidden=0)

    def fit(self, lesson: Lesson) -> Generator[float, None, Trained]:
        if self._is_convex(lesson):
            return (yield from _fit_convex(self, lesson))
        from stillvec.heads.head_training import train_texts  # importing torch takes seconds

        networks = type("Networks", (self.network(),), {"hidden": self.hidden})
        own, trained = yield from train_texts(self, networks, lesson)
        trained.arrays.update(zip(("hidden", "hidden_bias"), own, strict=False))
        return trained

    def _is_convex(self, lesson: Lesson) -> bool:
        teacher = lesson.options.get("teacher")
        convex = teacher is None or (isinstance(teacher, TeacherOption) and teacher.direction == "teacher")
        plain = not self.hidden and not self.tuned and self.objective == "cross_entropy"
        return plain and convex and not {*lesson.options} - {"teacher"}

    def network(self) -> Any:
        from stillvec.heads.text_networks import LinearNetworks  # importing torch takes seconds

        return LinearNetworks

    def read_features(self, sequences: Sequences) -> Floats32:
        """What the regression reads (n, F)."""
        return sequences.means()

    def encode_means(self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences) -> Floats32:
        """The same, of vectors in the size of training."""
        means = sequences.means() * arrays["factor"]
        means[sequences.known == 0] = 0
        return np.asarray(means, np.float32)

    def encode(self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences) -> Floats32:
        means = self.encode_means(arrays, sequences)
        if "hidden" not in arrays:
            return means
        return np.asarray(np.maximum(means @ arrays["hidden"] + arrays["hidden_bias"], 0), np.float32)

    def explain(self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences, label: Rows) -> Floats32:
        """Its share of the score: exact without a hidden layer, else at the layer's units that are open."""
        n_known = np.maximum(sequences.known, 1)
        words = sequences.table * arrays["factor"]
        columns = self.open_columns(arrays, sequences, label)
        shares = np.einsum("nd,nd->n", words[sequences.ids], columns[sequences.text])
        return np.asarray(np.where(sequences.ids == UNKNOWN, 0, shares / n_known[sequences.text]), np.float32)

    def open_columns(self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences, label: Rows) -> Floats32:
        """The weights of what the head reads for the label of each text (n, F), by the units that are open."""
        columns = arrays["weights"].T[label]
        if "hidden" in arrays:
            columns = ((self.encode(arrays, sequences) > 0) * columns) @ arrays["hidden"].T
        return np.asarray(columns, np.float32)


def _fit_convex(kind: Linear, lesson: Lesson) -> Generator[float, None, Trained]:
    """Select the penalty on development texts, and fit it on all."""
    data, x = lesson.data, kind.read_features(lesson.sequences).astype(np.float64)
    teacher = lesson.options.get("teacher")
    weight = teacher.choose_weight(several=data.multilabel) if isinstance(teacher, TeacherOption) else 0.0
    targets = lesson.all_targets()
    totals = np.ones((len(targets), 1))
    totals[lesson.unlabelled] = 0
    if lesson.soft is not None:
        targets, totals = targets + weight * lesson.soft, totals + weight
    train = np.concatenate([data.train, lesson.unlabelled])
    scaling = Scaling.of(x[train])
    x_train, x_dev, gold = scaling(x[train]), scaling(x[data.dev]), lesson.targets[data.dev]
    best, weights = (-1.0, -np.inf, kind.penalties[0], 0.5), None
    for number, penalty in enumerate(
        sorted(kind.penalties, reverse=True), 1
    ):  # warm start from the next stronger penalty
        weights = _regress(x_train, targets[train], totals[train], penalty, weights, several=data.multilabel)
        quality, likelihood, threshold = _measure(x_dev, weights, gold, several=data.multilabel)
        best = max(best, (quality, likelihood, penalty, threshold))
        yield number / (len(kind.penalties) + 1)
    both = np.concatenate([data.train, data.dev, lesson.unlabelled])
    scaling = Scaling.of(x[both])
    weights = _regress(scaling(x[both]), targets[both], totals[both], best[2], weights, several=data.multilabel)
    scaled = weights[:-1] / scaling.spread[:, None]
    bias = weights[-1] - scaling.mean @ scaled
    arrays: Arrays = {"weights": scaled.astype(np.float32), "bias": bias.astype(np.float32)}
    return Trained(arrays | {"factor": np.ones(1, np.float32)}, best[0], best[3])


def _regress(
    x: Floats, targets: Floats, totals: Floats, penalty: float, start: Floats | None, *, several: bool
) -> Floats:
    if several:
        return fit_sigmoids(x, targets, penalty, start, totals)
    return logistic(x, targets, penalty, start)


def _measure(x: Floats, weights: Floats, gold: Floats, *, several: bool) -> tuple[float, float, float]:
    """The quality, the mean log-likelihood, which decides between equals, and the threshold."""
    scores = x @ weights[:-1] + weights[-1]
    if several:
        threshold, quality = choose_threshold(predict_sigmoids(x, weights), gold)
        return quality, float((gold * scores - np.logaddexp(0, scores)).mean()), threshold
    logs = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    return float((scores.argmax(axis=1) == gold.argmax(axis=1)).mean()), float((gold * logs).sum(axis=1).mean()), 0.5
