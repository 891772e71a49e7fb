"""Linear probes: logistic regression by L-BFGS and ridge regression, their penalties chosen on development items.

    logistic    min over W, b   sum_i -log softmax(W x_i + b)[y_i]  +  penalty / 2 ||W||²
    ridge       min over W, b   ||X W + b - Y||²  +  penalty ||W||²

The first is scikit-learn's `LogisticRegression` with C = 1 / penalty, the second its `Ridge`. Both read columns of mean
0 and variance 1 on what they learn from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
PENALTIES = (1.0, 10.0, 100.0, 1000.0)


@dataclass(frozen=True)
class Scaling:
    """To mean 0 and variance 1, column by column; a column that does not vary becomes 0."""

    mean: Floats  # (d,)
    spread: Floats  # (d,)

    @classmethod
    def of(cls, x: NDArray[Any]) -> Scaling:
        mean, spread = x.mean(axis=0, dtype=np.float64), x.std(axis=0, dtype=np.float64)
        return cls(mean, np.where(spread > 1e-12 * np.abs(mean).max(initial=1), spread, np.inf))

    def __call__(self, x: NDArray[Any]) -> Floats:
        return np.asarray((x - self.mean) / self.spread)


def logistic(x: Floats, seen: Floats, penalty: float, start: Floats | None = None) -> Floats:
    """Weights (d + 1, k) of multinomial logistic regression; the last row, the intercept, is not penalised.

    `seen` (n, k) says how often each row was seen with each label: a row of `one_hot` where it is an item.
    """
    from scipy.optimize import minimize

    d, classes = x.shape[1], seen.shape[1]
    total, often = seen.sum(), seen.sum(axis=1, keepdims=True)

    def loss(flat: Floats) -> tuple[float, Floats]:
        w = flat.reshape(d + 1, classes)
        scores = x @ w[:-1] + w[-1]  # (n, k)
        top = scores.max(axis=1, keepdims=True)
        logs = scores - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True))
        value = -(logs * seen).sum() + penalty / 2 * np.square(w[:-1]).sum()
        wrong = np.exp(logs) * often - seen
        slope = np.concatenate([x.T @ wrong + penalty * w[:-1], wrong.sum(axis=0, keepdims=True)])
        return value / total, slope.ravel() / total

    first = np.zeros((d + 1) * classes) if start is None else start.ravel()
    found = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": 500, "gtol": 1e-5, "ftol": 1e-9})
    return np.asarray(found.x).reshape(d + 1, classes)


def one_hot(labels: Labels, classes: int) -> Floats:
    return np.asarray(np.eye(classes)[labels])


def chosen_logistic(
    x: NDArray[Any], y: Labels, train: Labels, dev: Labels, penalties: Sequence[float] = PENALTIES
) -> tuple[Scaling, Floats]:
    """The penalty that does best on dev (the stronger of equals), then the weights learnt from train and dev."""
    seen = one_hot(y, int(y.max()) + 1)
    scaling = Scaling.of(x[train])
    read, judged = scaling(x[train]), scaling(x[dev])
    best, right, weights = penalties[0], -1.0, None
    for penalty in sorted(penalties, reverse=True):  # from the strongest on: each starts where the last one ended
        weights = logistic(read, seen[train], penalty, weights)
        share = float((predicted(judged, weights) == y[dev]).mean())
        if share > right:
            best, right = penalty, share
    both = np.concatenate([train, dev])
    scaling = Scaling.of(x[both])
    return scaling, logistic(scaling(x[both]), seen[both], best, weights)


def predicted(x: Floats, weights: Floats) -> Labels:
    return np.asarray((x @ weights[:-1] + weights[-1]).argmax(axis=1), np.int64)


class RidgePath:
    """Ridge regression for many penalties and many targets from one eigendecomposition."""

    def __init__(self, x: NDArray[Any], y: Floats) -> None:
        self.scaling = Scaling.of(x)
        read = self.scaling(x)
        self.means = y.mean(axis=0)  # (t,)
        values, self.basis = np.linalg.eigh(read.T @ read)
        self.values = np.maximum(values, 0)
        self.onto = self.basis.T @ (read.T @ (y - self.means))  # (d, t)

    def weights(self, penalty: float) -> Floats:
        """(d, t), for scaled columns."""
        return np.asarray(self.basis @ (self.onto / (self.values + penalty)[:, None]))

    def predict(self, x: NDArray[Any], penalty: float) -> Floats:
        return np.asarray(self.scaling(x) @ self.weights(penalty) + self.means)
