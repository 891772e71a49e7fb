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
    found = [_lloyd(rows, weight, _plus_plus(rows, weight, k, generator)) for _ in range(tries)]
    return min(found, key=lambda each: each[1])[0]


def _plus_plus(x: Floats, weight: Floats, k: int, generator: np.random.Generator) -> Floats:
    """Rows to begin with: each drawn in proportion to its squared distance from those before (Arthur 2007)."""
    chosen = [int(generator.choice(len(x), p=weight / weight.sum()))]
    nearest = np.square(x - x[chosen[0]]).sum(axis=1)
    for _ in range(1, k):
        far = nearest * weight
        share = far / far.sum() if far.sum() > 0 else weight / weight.sum()
        chosen.append(int(generator.choice(len(x), p=share)))
        nearest = np.minimum(nearest, np.square(x - x[chosen[-1]]).sum(axis=1))
    return x[chosen]


def _lloyd(x: Floats, weight: Floats, centres: Floats) -> tuple[Labels, float]:
    """(clusters, weighted squared distance); a centre that nobody is nearest to stays where it is."""
    labels, squares = np.full(len(x), -1), np.square(x).sum(axis=1)
    away = np.zeros(len(x))
    for _ in range(_SWEEPS):
        distances = np.square(centres).sum(axis=1) - 2 * x @ centres.T  # (n, k) less the row's own square
        now = distances.argmin(axis=1)
        away = distances[np.arange(len(x)), now] + squares
        if (now == labels).all():
            break
        labels = now
        held = np.bincount(labels, weight, minlength=len(centres))
        sums = np.zeros_like(centres)
        np.add.at(sums, labels, x * weight[:, None])
        centres = np.where(held[:, None] > 0, sums / np.maximum(held, 1e-300)[:, None], centres)
    return labels.astype(np.int64), float((away * weight).sum())
