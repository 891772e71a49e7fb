"""Correlations and their 95% intervals.

A resample is a row of weights: how often each item was drawn. Ranks, and so Spearman's ρ, of a thousand
resamples then come from cumulative sums, without sorting any of them; a row of ones is the sample itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Correlation = Callable[[Floats, Floats, Floats], Floats]
_CELLS = 1 << 18  # numbers of one block of resamples: what a core's cache holds


class Estimate(NamedTuple):
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Resampling:
    """The bootstrap: how many resamples, and the seed that makes them the same ones every time."""

    resamples: int = 1000
    seed: int = 0

    def weights(self, n: int, stream: int = 0) -> Iterator[Floats]:
        """Blocks (R, n) of how often each of `n` items was drawn; another `stream`, other draws."""
        generator = np.random.default_rng([self.seed, stream])
        step = max(1, _CELLS // n)
        for start in range(0, self.resamples, step):
            rows = min(step, self.resamples - start)
            drawn = generator.integers(0, n, (rows, n)) + n * np.arange(rows)[:, None]
            yield np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)

    def poisson(self, n: int) -> Iterator[Floats]:
        """Blocks (R, n) of weights that are drawn each by itself, from Poisson's distribution with mean 1."""
        generator = np.random.default_rng([self.seed, 0, 1])  # a third number: none of the streams of `weights`
        step = max(1, _CELLS // n)
        for start in range(0, self.resamples, step):
            yield generator.poisson(1.0, (min(step, self.resamples - start), n)).astype(np.float64)

    def correlation(self, measure: Correlation, x: Floats, y: Floats) -> Estimate:
        """A correlation with the percentile interval of its resamples."""
        if len(x) < 2:
            return Estimate(np.nan, np.nan, np.nan)
        value = float(measure(np.ones((1, len(x))), x, y)[0])
        return Estimate(value, *percentiles([measure(block, x, y) for block in self.weights(len(x))]))


def resample_metric(
    value: float, gold: Floats, answers: NDArray[Any], resampling: Resampling, stream: int
) -> Floats | None:
    """A metric in each resample (R,), if its value is the mean of the answers or a correlation with the right ones."""
    if len(answers) < 2 or answers.dtype.kind not in "bif" or len(gold) != len(answers):
        return None
    y = answers.astype(np.float64)
    for measure in (_mean, spearman, pearson):
        if np.isclose(measure(np.ones((1, len(y))), gold, y)[0], value, rtol=0, atol=1e-9):
            return np.concatenate([np.zeros(0), *(measure(w, gold, y) for w in resampling.weights(len(y), stream))])
    return None


def _mean(weights: Floats, x: Floats, y: Floats) -> Floats:
    return np.asarray(weights @ y / weights.sum(axis=1))


def percentiles(blocks: list[Floats]) -> tuple[float, float]:
    """The bounds of the middle 95%; resamples in which nothing varies are left out."""
    values = np.concatenate([np.zeros(0), *blocks])
    values = values[np.isfinite(values)]
    if not len(values):
        return np.nan, np.nan
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def mean_estimate(values: NDArray[Any], resampling: Resampling) -> Estimate:
    """The mean of the items' values with the percentile interval of its resamples."""
    if not len(values):
        return Estimate(np.nan, np.nan, np.nan)
    blocks = [_mean(weights, values, values) for weights in resampling.weights(len(values))]
    return Estimate(float(np.mean(values)), *percentiles(blocks))


def wilson(right: int, n: int) -> Estimate:
    """A share and its interval (Wilson 1927), which stays inside [0, 1] where the usual one does not."""
    if not n:
        return Estimate(np.nan, np.nan, np.nan)
    z2 = 1.959963984540054**2
    share = right / n
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return Estimate(share, float(max(0.0, middle - half)), float(min(1.0, middle + half)))


def spearman(weights: Floats, x: Floats, y: Floats) -> Floats:
    """Spearman's ρ in each resample (R,): Pearson's r of the ranks, equal values sharing their mean rank."""
    return pearson(weights, ranks(weights, x), ranks(weights, y))


def pearson(weights: Floats, x: Floats, y: Floats) -> Floats:
    """Pearson's r in each resample (R,); NaN where one side does not vary. `x` and `y` are (n,) or (R, n)."""
    x, y = np.broadcast_to(x, weights.shape), np.broadcast_to(y, weights.shape)
    n = np.maximum(weights.sum(axis=1), 1)  # a resample may be empty: nothing varies there
    from_mean = [each - (np.einsum("rn,rn->r", weights, each) / n)[:, None] for each in (x, y)]
    squares = [np.einsum("rn,rn,rn->r", weights, each, each) for each in from_mean]
    products = np.einsum("rn,rn,rn->r", weights, *from_mean)
    # what is left of a constant after rounding is no variance
    varies = [s > 1e-24 * n * np.max(e * e, axis=1) for s, e in zip(squares, (x, y), strict=True)]
    lengths = np.sqrt(squares[0] * squares[1])
    return np.asarray(np.divide(products, lengths, out=np.full(len(n), np.nan), where=varies[0] & varies[1]))


def ranks(weights: Floats, x: Floats) -> Floats:
    """The mean rank of each item among those drawn (R, n)."""
    _, code, held = np.unique(x, return_inverse=True, return_counts=True)  # (n,), (k,)
    order = np.argsort(code, kind="stable")
    up_to = np.cumsum(weights[:, order], axis=1)[:, np.cumsum(held) - 1]  # (R, k) drawn up to this value
    below = np.concatenate([np.zeros((len(weights), 1)), up_to[:, :-1]], axis=1)
    return np.asarray(((below + up_to + 1) / 2)[:, code])
