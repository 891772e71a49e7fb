"""Correlations and their 95% intervals.

A resample is a row of weights: how often each item was drawn; a row of ones is the sample itself. The ranks in all
resamples are computed by cumulative sums, without sorting each resample.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stillvec.numerics.array_types import Floats as Floats
from stillvec.numerics.array_types import Mask as Mask
from stillvec.numerics.array_types import Rows as Rows

Correlation = Callable[[Floats, Floats, Floats], Floats]
_CELLS = 1 << 18  # weights per block of resamples, which fit the cache of a core


class Estimate(NamedTuple):
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Resampling:
    """The bootstrap: the number of resamples and the random seed."""

    resamples: int = 1000
    seed: int = 0

    def weights(self, n: int, stream: int = 0) -> Iterator[Floats]:
        """Blocks (R, n) of how often each of `n` items was drawn; each `stream` has other draws."""
        generator = np.random.default_rng([self.seed, stream])
        for n_rows in self._block_sizes(n):
            cells = generator.integers(0, n, (n_rows, n)) + n * np.arange(n_rows)[:, None]
            yield np.bincount(cells.ravel(), minlength=n_rows * n).reshape(n_rows, n).astype(np.float64)

    def poisson(self, n: int) -> Iterator[Floats]:
        """Blocks (R, n) of independent weights from the Poisson distribution with mean 1."""
        generator = np.random.default_rng([self.seed, 0, 1])  # the third number separates it from all `weights`
        for n_rows in self._block_sizes(n):
            yield generator.poisson(1.0, (n_rows, n)).astype(np.float64)

    def _block_sizes(self, n: int) -> Iterator[int]:
        step = max(1, _CELLS // n)
        return (min(step, self.resamples - start) for start in range(0, self.resamples, step))

    def correlation(self, measure: Correlation, x: Floats, y: Floats) -> Estimate:
        """A correlation with the percentile interval of its resamples."""
        if len(x) < 2:
            return Estimate(np.nan, np.nan, np.nan)
        value = float(measure(np.ones((1, len(x))), x, y)[0])
        return Estimate(value, *percentiles([measure(block, x, y) for block in self.weights(len(x))]))


def resample_metric(
    value: float, gold: Floats, answers: NDArray[Any], resampling: Resampling, stream: int
) -> Floats | None:
    """A metric in each resample (R,), if its value is the mean of the answers or a correlation with gold; else None."""
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
    """The bounds of the middle 95%, without resamples that are NaN."""
    values = np.concatenate([np.zeros(0), *blocks])
    values = values[np.isfinite(values)]
    if not len(values):
        return np.nan, np.nan
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def holm(p: Floats) -> Floats:
    """p values (n,) with Holm's correction for their number; NaN are not counted."""
    corrected, least = np.full(len(p), np.nan), 0.0
    tested = [at for at in np.argsort(p, kind="stable") if not np.isnan(p[at])]
    for rank, at in enumerate(tested):
        least = max(least, min(1.0, (len(tested) - rank) * float(p[at])))
        corrected[at] = least
    return corrected


def mean_estimate(values: NDArray[Any], resampling: Resampling) -> Estimate:
    """The mean over items with the percentile interval of its resamples; a share has Wilson's interval."""
    if values.dtype == bool:
        return wilson(int(values.sum()), len(values))
    if not len(values):
        return Estimate(np.nan, np.nan, np.nan)
    blocks = [_mean(weights, values, values) for weights in resampling.weights(len(values))]
    return Estimate(float(np.mean(values)), *percentiles(blocks))


def wilson(right: int, n: int) -> Estimate:
    """A proportion with its score interval (Wilson 1927), which stays inside [0, 1]."""
    if not n:
        return Estimate(np.nan, np.nan, np.nan)
    z2 = 1.959963984540054**2
    share = right / n
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return Estimate(share, float(max(0.0, middle - half)), float(min(1.0, middle + half)))


def spearman(weights: Floats, x: Floats, y: Floats) -> Floats:
    """Spearman's ρ in each resample (R,): Pearson's r of the ranks; ties share their mean rank."""
    return pearson(weights, ranks(weights, x), ranks(weights, y))


def partial_spearman(weights: Floats, x: Floats, y: Floats, given: Floats) -> Floats:
    """Spearman's ρ of x and y in each resample (R,), given a third: of the ranks without what those of `given` predict.

    (ρxy - ρxz ρyz) / sqrt((1 - ρxz²) (1 - ρyz²))
    """
    a, b, c = (ranks(weights, values) for values in (x, y, given))
    xy, xz, yz = pearson(weights, a, b), pearson(weights, a, c), pearson(weights, b, c)
    under = np.sqrt(np.clip((1 - xz**2) * (1 - yz**2), 0, None))
    return np.asarray(np.divide(xy - xz * yz, under, out=np.full(len(xy), np.nan), where=under > 1e-9))


def pearson(weights: Floats, x: Floats, y: Floats) -> Floats:
    """Pearson's r in each resample (R,); NaN where `x` or `y` is constant. `x` and `y` are (n,) or (R, n)."""
    x, y = np.broadcast_to(x, weights.shape), np.broadcast_to(y, weights.shape)
    n = np.maximum(weights.sum(axis=1), 1)  # a Poisson resample may be empty
    centred = [values - (np.einsum("rn,rn->r", weights, values) / n)[:, None] for values in (x, y)]
    squares = [np.einsum("rn,rn,rn->r", weights, values, values) for values in centred]
    products = np.einsum("rn,rn,rn->r", weights, *centred)
    # the rounding error of a constant is not variance
    varies = [s > 1e-24 * n * np.max(e * e, axis=1) for s, e in zip(squares, (x, y), strict=True)]
    lengths = np.sqrt(squares[0] * squares[1])
    return np.asarray(np.divide(products, lengths, out=np.full(len(n), np.nan), where=varies[0] & varies[1]))


def ranks(weights: Floats, x: Floats) -> Floats:
    """The mean rank of each item in each resample (R, n)."""
    _, code, n_equal = np.unique(x, return_inverse=True, return_counts=True)  # (n,), (k,)
    order = np.argsort(code, kind="stable")
    up_to = np.cumsum(weights[:, order], axis=1)[:, np.cumsum(n_equal) - 1]  # (R, k) drawn up to this value
    below = np.concatenate([np.zeros((len(weights), 1)), up_to[:, :-1]], axis=1)
    return np.asarray(((below + up_to + 1) / 2)[:, code])
