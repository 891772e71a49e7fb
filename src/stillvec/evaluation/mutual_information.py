"""Mutual information between vectors and what is known of their words, by clusters (Tutek & Šnajder 2020).

    I(A; B) = sum over a, b of p(a, b) log p(a, b) / (p(a) p(b)), in nats, A the cluster of a vector, B another label

Counted from N pairs it is too large by about (cells with a pair - rows - columns + 1) / 2N (Miller 1955; with all cells
there, (k - 1)² / 2N): that is taken off, since with a thousand clusters it is half a nat. Clusters are those of k-means
that begins with k-means++ and is tried several times: from one random beginning it loses much of what there is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stillvec.numerics import kmeans

Labels = NDArray[np.int64]
Floats = NDArray[np.float64]
_SWEEPS = 30


class Information(NamedTuple):
    value: float  # nats, the bias taken off
    bias: float
    shuffled: float  # what pairs in a random order give, the bias taken off: about 0


def mutual_information(x: NDArray[Any], y: NDArray[Any], k: int = 1000, seed: int = 0) -> Information:
    """How much two vectors of the same words (n, d) and (n, e) say of each other, through k clusters on each side."""
    a, b = (clusters(each, min(k, len(each)), seed=seed + side) for side, each in enumerate((x, y)))
    joint = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(joint, (a, b), 1)
    mixed = np.zeros_like(joint)
    np.add.at(mixed, (a, np.random.default_rng(seed).permutation(b)), 1)
    return Information(information(joint) - bias(joint), bias(joint), information(mixed) - bias(mixed))


def information(joint: NDArray[Any]) -> float:
    """I of a table of counts (a, b), as it is counted."""
    return entropy(joint.sum(axis=0)) + entropy(joint.sum(axis=1)) - entropy(joint)


def entropy(counts: NDArray[Any]) -> float:
    """In nats, as it is counted."""
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def bias(joint: NDArray[Any]) -> float:
    """By how much I of a table of counts is expected to be too large."""
    cells, rows, columns = ((each > 0).sum() for each in (joint, joint.sum(axis=1), joint.sum(axis=0)))
    return float((cells - rows - columns + 1) / (2 * joint.sum()))


def clusters(x: NDArray[Any], k: int, weights: NDArray[Any] | None = None, *, tries: int = 3, seed: int = 0) -> Labels:
    """The cluster of each row (n,): weighted k-means, of several tries the one with the least squared distance."""
    rows = np.asarray(x, np.float64)
    weight = np.ones(len(rows)) if weights is None else np.asarray(weights, np.float64)
    generator = np.random.default_rng(seed)
    runs = [kmeans(rows, k, generator, weights=weight, n_rounds=_SWEEPS) for _ in range(tries)]
    return min(runs, key=lambda run: run.inertia).labels
