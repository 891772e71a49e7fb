"""Principal axes of a space; isotropy, effective dimension, hubness, and norms by frequency."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import skew, spearmanr

from stillvec.errors import UsageError
from stillvec.numerics import (
    BLOCK_ROWS,
    apply_map,
    iterate_blocks,
    principal_axes,
    second_moments,
    sum_weighted_rows,
    unit_rows,
)
from stillvec.vectors import WordVectors

Floats = NDArray[np.float64]
_PAIRS = 100_000
_BANDS = 10


@dataclass(frozen=True)
class PrincipalSpace:
    """A space in the coordinates of its principal axes: `Z = (X - mean) U`."""

    vectors: WordVectors

    @cached_property
    def mean(self) -> Floats:
        n_rows = len(self.vectors)
        return sum_weighted_rows(self.vectors.matrix, np.full(n_rows, 1 / max(n_rows, 1)))

    @cached_property
    def _spectrum(self) -> tuple[Floats, Floats]:
        return principal_axes(second_moments(self.vectors.matrix, self.mean) / max(len(self.vectors), 1))

    @property
    def variances(self) -> Floats:
        """Variances (d,), largest first."""
        return self._spectrum[0]

    @property
    def axes(self) -> Floats:
        """Axes (d, d) in columns."""
        return self._spectrum[1]

    def project(self, first: int, last: int) -> WordVectors:
        """Components `first` to `last` - 1, counted from 0, as a space."""
        if not 0 <= first < last <= self.vectors.dim:
            raise UsageError.expected(f"components 0 to {self.vectors.dim - 1}", f"{first} to {last - 1}")
        return self._map_rows(self.axes[:, first:last])

    def without_top(self, count: int) -> WordVectors:
        """The centred space without the first `count` components; 0 only centres."""
        if not 0 <= count < self.vectors.dim:
            raise UsageError.expected(f"0 to {self.vectors.dim - 1} components", count)
        top = self.axes[:, :count]
        return self._map_rows(np.eye(self.vectors.dim) - top @ top.T)

    def _map_rows(self, by: Floats) -> WordVectors:
        dtype = np.result_type(self.vectors.matrix.dtype, np.float32)
        return self.vectors.with_matrix(apply_map(self.vectors.matrix, by, self.mean, dtype))


@dataclass(frozen=True)
class Geometry:
    """Measures that need no test data; `d` is the number of dimensions."""

    words: int
    dim: int
    mean_cosine: float  # of random pairs of words; 0: isotropic (Ethayarajh 2019)
    centred_cosine: float  # of the same pairs after centring
    partition: float  # min Z(c) / max Z(c) over principal axes c, Z(c) = Σ exp(c·v), rows normalized; 1: isotropic
    isoscore: float  # Rudman et al. 2022: 1: equal variance in all directions, 0: in one only
    participation: float  # (Σλ)² / Σλ²: effective number of directions, 1 to d
    entropy_rank: float  # exp of the entropy of the variance shares, 1 to d (Roy & Vetterli 2007)
    dim_90: int  # directions with 90% of the variance
    neighbours: int  # k of the following
    hubness: float  # skewness of how often a word is among the k nearest of others (Radovanović et al. 2010)
    most_often: int  # occurrences of the largest hub
    never: float  # share of words that are never a neighbour
    hubs: tuple[str, ...]  # the largest
    mean_norm: float
    norm_frequency: float  # Spearman's ρ of norm and frequency
    counted: bool  # False: no counts, the order of the words is used
    norms: tuple[float, ...]  # mean norms of ten bands of decreasing frequency
    variances: tuple[float, ...]  # λ, largest first


def geometry(vectors: WordVectors, *, neighbours: int = 10, sample: int = 10_000, seed: int = 0) -> Geometry:
    """Measure a space; hubness is computed on `sample` words, evenly spaced by rank."""
    if len(vectors) < 3:
        raise UsageError.expected("at least 3 words", len(vectors))
    if neighbours < 1 or sample < 3:
        raise UsageError.expected("at least 1 neighbour and a sample of 3 words", f"{neighbours} and {sample}")
    space = PrincipalSpace(vectors)
    return Geometry(
        words=len(vectors),
        dim=vectors.dim,
        **_cosines(vectors, space.mean, seed),
        partition=_partition(vectors, space.axes),
        **_dimensions(space.variances),
        **_hubs(vectors, neighbours, sample),
        **_norms(vectors),
    )


def _dimensions(variances: Floats) -> dict[str, Any]:
    """Measures of the effective dimension."""
    total = max(float(variances.sum()), np.finfo(float).tiny)
    shares = variances[variances > 0] / total
    return {
        "isoscore": isoscore(variances),
        "participation": float(total**2 / max(float((variances**2).sum()), np.finfo(float).tiny)),
        "entropy_rank": float(np.exp(-(shares * np.log(shares)).sum())),
        "dim_90": int(np.searchsorted(np.cumsum(variances), 0.9 * variances.sum()) + 1),
        "variances": tuple(variances.tolist()),
    }


def _hubs(vectors: WordVectors, neighbours: int, sample: int) -> dict[str, Any]:
    rows = np.unique(np.linspace(0, len(vectors) - 1, min(sample, len(vectors))).astype(np.int64))
    occurrences = k_occurrences(unit_rows(vectors.matrix[rows], np.float64), neighbours)
    largest = np.argsort(-occurrences, kind="stable")[:10].tolist()
    return {
        "neighbours": min(neighbours, len(rows) - 1),
        "hubness": float(skew(occurrences)) if np.ptp(occurrences) else 0.0,
        "most_often": int(occurrences.max()),
        "never": float((occurrences == 0).mean()),
        "hubs": tuple(vectors.words[rows[row]] for row in largest),
    }


def _norms(vectors: WordVectors) -> dict[str, Any]:
    norms = np.concatenate([np.linalg.norm(block, axis=1) for _, block in iterate_blocks(vectors.matrix)])
    counts = vectors.vocabulary.counts
    counted = bool(np.ptp(counts))
    frequency = counts if counted else -np.arange(len(vectors))
    varies = np.ptp(norms) > 1e-5 * norms.mean()  # unit rows differ by rounding
    bands = np.array_split(norms[np.argsort(-frequency, kind="stable")], min(_BANDS, len(norms)))
    return {
        "mean_norm": float(norms.mean()),
        "norm_frequency": float(spearmanr(norms, frequency)[0]) if varies else 0.0,
        "counted": counted,
        "norms": tuple(float(band.mean()) for band in bands),
    }


def k_occurrences(rows: NDArray[Any], neighbours: int) -> NDArray[np.int64]:
    """How often each unit row is among the nearest neighbours of another (n,)."""
    k = min(neighbours, len(rows) - 1)
    rows = np.asarray(rows, np.float32)
    times = np.zeros(len(rows), np.int64)
    for start in range(0, len(rows), 512):
        cosines = rows[start : start + 512] @ rows.T
        cosines[np.arange(len(cosines)), start + np.arange(len(cosines))] = -np.inf
        nearest = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
        times += np.bincount(nearest.ravel(), minlength=len(rows))
    return times


def isoscore(variances: Floats) -> float:
    """`ι = (d φ - 1) / (d - 1)`, `φ = (d - δ² (d - √d))² / d²`, `δ = ‖λ̂ - 1‖ / √(2 (d - √d))`, `‖λ̂‖ = √d`."""
    d, length = len(variances), float(np.linalg.norm(variances))
    if d < 2 or not length:
        return 0.0
    scaled = variances * np.sqrt(d) / length
    defect = ((scaled - 1) ** 2).sum() / (2 * (d - np.sqrt(d)))
    share = (d - defect * (d - np.sqrt(d))) ** 2 / d**2
    return float(np.clip((d * share - 1) / (d - 1), 0, 1))


def _cosines(vectors: WordVectors, mean: Floats, seed: int) -> dict[str, Any]:
    first, second = np.random.default_rng(seed).integers(0, len(vectors), (2, _PAIRS))
    first, second = first[first != second], second[first != second]
    sums = {"mean_cosine": 0.0, "centred_cosine": 0.0}
    for start in range(0, len(first), BLOCK_ROWS):
        pair = [np.asarray(vectors.matrix[rows[start : start + BLOCK_ROWS]], np.float64) for rows in (first, second)]
        for name, taken in (("mean_cosine", 0.0), ("centred_cosine", mean)):
            x, z = (unit_rows(rows - taken) for rows in pair)
            sums[name] += float((x * z).sum())
    return {name: total / len(first) for name, total in sums.items()}


def _partition(vectors: WordVectors, axes: Floats) -> float:
    """Partition ratio over both directions of each axis."""
    unit = (unit_rows(block) for _, block in iterate_blocks(vectors.matrix))
    sums = [logsumexp(np.hstack([rows @ axes, -rows @ axes]), axis=0) for rows in unit]
    logs = logsumexp(np.stack(sums), axis=0)  # (2d,)
    return float(np.exp(logs.min() - logs.max()))
