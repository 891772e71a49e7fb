"""Isotropy, effective dimension, hubness, and norms against frequency of a space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import skew, spearmanr

from stillvec.analysis.principal_space import Floats, PrincipalSpace
from stillvec.errors import UsageError
from stillvec.numerics import BLOCK_ROWS, iterate_blocks, unit_rows
from stillvec.vectors import WordVectors

_PAIRS = 100_000
_BANDS = 10


@dataclass(frozen=True)
class Geometry:
    """Numbers that need no test data. `d` is the number of dimensions."""

    words: int
    dim: int
    mean_cosine: float  # of random pairs of words: 0 where all directions are used alike (Ethayarajh 2019)
    centred_cosine: float  # of the same pairs once the mean is out
    partition: (
        float  # min Z(c) / max Z(c), Z(c) = Σ exp(c·v), over principal axes c, rows at length one: 1 is isotropic
    )
    isoscore: float  # Rudman et al. 2022: 1 where all directions have the same variance, 0 where one has all
    participation: float  # (Σλ)² / Σλ²: in how many directions the variance lies, 1 to d
    entropy_rank: float  # exp of the entropy of the shares of variance, 1 to d (Roy & Vetterli 2007)
    dim_90: int  # directions that hold 90% of the variance
    neighbours: int  # k of what follows
    hubness: float  # skewness of how often a word is among the k nearest of others (Radovanović et al. 2010)
    most_often: int  # how often the greatest hub is
    never: float  # the share of words that are never
    hubs: tuple[str, ...]  # the greatest
    mean_norm: float
    norm_frequency: float  # Spearman's ρ of norm and frequency
    counted: bool  # false: the words have no counts, and their order stands for frequency
    norms: tuple[float, ...]  # mean norms of ten bands, from the most frequent words to the rarest
    variances: tuple[float, ...]  # λ, the largest first


def geometry(vectors: WordVectors, *, neighbours: int = 10, sample: int = 10_000, seed: int = 0) -> Geometry:
    """Look at a space; hubs are looked for among `sample` words, evenly from frequent to rare."""
    if len(vectors) < 3:
        raise UsageError(f"A space of {len(vectors)} words has no geometry; give three words or more.")
    if neighbours < 1 or sample < 3:
        raise UsageError(f"One neighbour and three words are the least, and {neighbours} and {sample} came.")
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
    """In how many directions the variance lies."""
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
    some = np.unique(np.linspace(0, len(vectors) - 1, min(sample, len(vectors))).astype(np.int64))
    often = k_occurrences(unit_rows(vectors.matrix[some], np.float64), neighbours)
    greatest = np.argsort(-often, kind="stable")[:10].tolist()
    return {
        "neighbours": min(neighbours, len(some) - 1),
        "hubness": float(skew(often)) if np.ptp(often) else 0.0,
        "most_often": int(often.max()),
        "never": float((often == 0).mean()),
        "hubs": tuple(vectors.words[some[row]] for row in greatest),
    }


def _norms(vectors: WordVectors) -> dict[str, Any]:
    norms = np.concatenate([np.linalg.norm(block, axis=1) for _, block in iterate_blocks(vectors.matrix)])
    counts = vectors.vocabulary.counts
    counted = bool(np.ptp(counts))
    frequency = counts if counted else -np.arange(len(vectors))
    varies = np.ptp(norms) > 1e-5 * norms.mean()  # rows of length one differ by rounding
    bands = np.array_split(norms[np.argsort(-frequency, kind="stable")], min(_BANDS, len(norms)))
    return {
        "mean_norm": float(norms.mean()),
        "norm_frequency": float(spearmanr(norms, frequency)[0]) if varies else 0.0,
        "counted": counted,
        "norms": tuple(float(band.mean()) for band in bands),
    }


def k_occurrences(rows: NDArray[Any], neighbours: int) -> NDArray[np.int64]:
    """How often each of the rows, which are of length one, is among the nearest of another (n,)."""
    k = min(neighbours, len(rows) - 1)
    rows = np.asarray(rows, np.float32)
    found = np.zeros(len(rows), np.int64)
    for start in range(0, len(rows), 512):
        cosines = rows[start : start + 512] @ rows.T
        cosines[np.arange(len(cosines)), start + np.arange(len(cosines))] = -np.inf
        nearest = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
        found += np.bincount(nearest.ravel(), minlength=len(rows))
    return found


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
    """Of both signs of each axis, as an axis has none."""
    unit = (unit_rows(block) for _, block in iterate_blocks(vectors.matrix))
    sums = [logsumexp(np.hstack([rows @ axes, -rows @ axes]), axis=0) for rows in unit]
    logs = logsumexp(np.stack(sums), axis=0)  # (2d,)
    return float(np.exp(logs.min() - logs.max()))
