"""Mutual information between vectors and properties of their words, estimated from clusters (Tutek & Šnajder 2020).

    I(A; B) = sum over a, b of p(a, b) log p(a, b) / (p(a) p(b)), in nats; A is the cluster of a vector, B another label

The plug-in estimate from N pairs is biased upwards by about (non-empty cells - rows - columns + 1) / 2N (Miller 1955;
(k - 1)² / 2N if no cell is empty). The bias is subtracted: with a thousand clusters it is half a nat. Clusters come
from k-means with k-means++ initialization and several restarts; a single random start underestimates I.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stillvec.evaluation.intervals import Rows
from stillvec.numerics import kmeans

_SWEEPS = 30


class Information(NamedTuple):
    value: float  # in nats, bias subtracted
    bias: float
    shuffled: float  # control with shuffled pairs, bias subtracted; about 0


def mutual_information(x: NDArray[Any], y: NDArray[Any], k: int = 1000, seed: int = 0) -> Information:
    """Mutual information of two sets of vectors of the same words, (n, d) and (n, e), with k clusters per set."""
    a, b = (clusters(matrix, min(k, len(matrix)), seed=seed + side) for side, matrix in enumerate((x, y)))
    joint = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(joint, (a, b), 1)
    permuted = np.zeros_like(joint)
    np.add.at(permuted, (a, np.random.default_rng(seed).permutation(b)), 1)
    return Information(information(joint) - bias(joint), bias(joint), information(permuted) - bias(permuted))


def information(joint: NDArray[Any]) -> float:
    """Plug-in estimate of I from a contingency table (a, b)."""
    return entropy(joint.sum(axis=0)) + entropy(joint.sum(axis=1)) - entropy(joint)


def entropy(counts: NDArray[Any]) -> float:
    """Plug-in estimate of the entropy in nats."""
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def bias(joint: NDArray[Any]) -> float:
    """Expected upward bias of `information` for a contingency table (Miller 1955)."""
    cells, rows, columns = ((table > 0).sum() for table in (joint, joint.sum(axis=1), joint.sum(axis=0)))
    return float((cells - rows - columns + 1) / (2 * joint.sum()))


def clusters(x: NDArray[Any], k: int, weights: NDArray[Any] | None = None, *, tries: int = 3, seed: int = 0) -> Rows:
    """Cluster label of each row (n,): weighted k-means, the run with the lowest inertia out of `tries`."""
    rows = np.asarray(x, np.float64)
    weight = np.ones(len(rows)) if weights is None else np.asarray(weights, np.float64)
    generator = np.random.default_rng(seed)
    runs = [kmeans(rows, k, generator, weights=weight, n_rounds=_SWEEPS) for _ in range(tries)]
    return min(runs, key=lambda run: run.inertia).labels
