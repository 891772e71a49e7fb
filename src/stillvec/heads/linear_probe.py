"""Linear probes: logistic regression by L-BFGS and ridge regression, their penalties selected on development items.

    logistic    min over W, b   sum_i -log softmax(W x_i + b)[y_i]  +  penalty / 2 ||W||²
    sigmoids    the same for each label on its own: min over w, b   sum_i -log sigmoid(± (w x_i + b)) + ...
    ridge       min over W, b   ||X W + b - Y||²  +  penalty ||W||²

They are scikit-learn's `LogisticRegression` with C = 1 / penalty and `Ridge`, on columns that are scaled to mean 0 and
variance 1 on the training items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.numerics.array_types import Floats, Rows

PENALTIES = (1.0, 10.0, 100.0, 1000.0)


@dataclass(frozen=True)
class Scaling:
    """Scale each column to mean 0 and variance 1; a constant column becomes 0."""

    mean: Floats  # (d,)
    spread: Floats  # (d,)

    @classmethod
    def of(cls, x: NDArray[Any]) -> Scaling:
        mean, spread = x.mean(axis=0, dtype=np.float64), x.std(axis=0, dtype=np.float64)
        return cls(mean, np.where(spread > 1e-12 * np.abs(mean).max(initial=1), spread, np.inf))

    def __call__(self, x: NDArray[Any]) -> Floats:
        return np.asarray((x - self.mean) / self.spread)


def tell_groups(groups: Sequence[NDArray[Any]], penalty: float = 100.0, seed: int = 0) -> float:
    """The accuracy with which logistic regression tells the group of rows that it has not seen, such as their language.

    Half of the rows of each group (n_g, d) are learnt from, and the mean over groups of the accuracy on the others is
    returned: 1 / number of groups if nothing tells them apart.
    """
    random = np.random.default_rng(seed)
    halves = [np.array_split(random.permutation(len(group)), 2) for group in groups]
    x, tested = (
        np.concatenate([group[half[side]] for group, half in zip(groups, halves, strict=True)]).astype(np.float64)
        for side in (0, 1)
    )
    labels, gold = (np.repeat(np.arange(len(groups)), [len(half[side]) for half in halves]) for side in (0, 1))
    scaling = Scaling.of(x)
    weights = logistic(scaling(x), np.eye(len(groups))[labels], penalty)
    right = (scaling(tested) @ weights[:-1] + weights[-1]).argmax(axis=1) == gold
    return float(np.mean([right[gold == number].mean() for number in range(len(groups))]))


def logistic(x: Floats, counts: Floats, penalty: float, start: Floats | None = None) -> Floats:
    """Weights (d + 1, k) of multinomial logistic regression; the last row, the intercept, is not penalized.

    `counts` (n, k) is how often each row has each label; `one_hot` if each row is one item.
    """
    from scipy.optimize import minimize

    d, n_classes = x.shape[1], counts.shape[1]
    total, per_row = counts.sum(), counts.sum(axis=1, keepdims=True)

    def loss(flat: Floats) -> tuple[float, Floats]:
        w = flat.reshape(d + 1, n_classes)
        scores = x @ w[:-1] + w[-1]  # (n, k)
        top = scores.max(axis=1, keepdims=True)
        logs = scores - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True))
        value = -(logs * counts).sum() + penalty / 2 * np.square(w[:-1]).sum()
        residuals = np.exp(logs) * per_row - counts
        gradient = np.concatenate([x.T @ residuals + penalty * w[:-1], residuals.sum(axis=0, keepdims=True)])
        return value / total, gradient.ravel() / total

    first = np.zeros((d + 1) * n_classes) if start is None else start.ravel()
    result = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": 500, "gtol": 1e-5, "ftol": 1e-9})
    return np.asarray(result.x).reshape(d + 1, n_classes)


def fit_sigmoids(
    x: Floats, targets: NDArray[Any], penalty: float, start: Floats | None = None, totals: Floats | float = 1.0
) -> Floats:
    """Weights (d + 1, k) of one binary logistic regression per label; intercepts are not penalized.

    `targets` (n, k) is how often a row has a label, out of `totals` (n, 1) times.
    """
    from scipy.optimize import minimize

    d, n_labels = x.shape[1], targets.shape[1]
    wanted = np.asarray(targets, np.float64)

    def loss(flat: Floats) -> tuple[float, Floats]:
        w = flat.reshape(d + 1, n_labels)
        scores = x @ w[:-1] + w[-1]
        value = (np.logaddexp(0, scores) * totals - wanted * scores).sum() + penalty / 2 * np.square(w[:-1]).sum()
        residuals = totals / (1 + np.exp(-np.clip(scores, -500, 500))) - wanted
        gradient = np.concatenate([x.T @ residuals + penalty * w[:-1], residuals.sum(axis=0, keepdims=True)])
        return value / len(x), gradient.ravel() / len(x)

    first = np.zeros((d + 1) * n_labels) if start is None else start.ravel()
    result = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": 500, "gtol": 1e-5, "ftol": 1e-9})
    return np.asarray(result.x).reshape(d + 1, n_labels)


def predict_sigmoids(x: Floats, weights: Floats) -> Floats:
    """The probability of each label (n, k)."""
    from scipy.special import expit

    return np.asarray(expit(x @ weights[:-1] + weights[-1]))


def one_hot(labels: Rows, n_classes: int) -> Floats:
    return np.asarray(np.eye(n_classes)[labels])


def select_logistic(
    x: NDArray[Any], y: Rows, train: Rows, dev: Rows, penalties: Sequence[float] = PENALTIES
) -> tuple[Scaling, Floats]:
    """Select the penalty that is best on dev (the strongest of equals) and fit it on train and dev."""
    counts = one_hot(y, int(y.max()) + 1)
    scaling = Scaling.of(x[train])
    x_train, x_dev = scaling(x[train]), scaling(x[dev])
    best, best_accuracy, weights = penalties[0], -1.0, None
    for penalty in sorted(penalties, reverse=True):  # warm start from the next stronger penalty
        weights = logistic(x_train, counts[train], penalty, weights)
        accuracy = float((predict(x_dev, weights) == y[dev]).mean())
        if accuracy > best_accuracy:
            best, best_accuracy = penalty, accuracy
    both = np.concatenate([train, dev])
    scaling = Scaling.of(x[both])
    return scaling, logistic(scaling(x[both]), counts[both], best, weights)


def predict(x: Floats, weights: Floats) -> Rows:
    return np.asarray((x @ weights[:-1] + weights[-1]).argmax(axis=1), np.int64)


class RidgePath:
    """Ridge regression for many penalties and many targets from one eigendecomposition."""

    def __init__(self, x: NDArray[Any], y: Floats) -> None:
        self.scaling = Scaling.of(x)
        scaled = self.scaling(x)
        self.means = y.mean(axis=0)  # (t,)
        values, self.basis = np.linalg.eigh(scaled.T @ scaled)
        self.values = np.maximum(values, 0)
        self.onto = self.basis.T @ (scaled.T @ (y - self.means))  # (d, t)

    def weights(self, penalty: float) -> Floats:
        """(d, t), for scaled columns."""
        return np.asarray(self.basis @ (self.onto / (self.values + penalty)[:, None]))

    def predict(self, x: NDArray[Any], penalty: float) -> Floats:
        return np.asarray(self.scaling(x) @ self.weights(penalty) + self.means)
