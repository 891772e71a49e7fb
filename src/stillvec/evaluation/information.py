"""Mutual information between the clusters of word vectors and the labels of words (after Tutek & Šnajder 2020).

Files: `tagging/*.conllu`, all parts of a dataset. The tokens of known words are clustered into `k` clusters by their
vectors; the score is I(cluster; label) / H(label) for the part of speech and the relation. No labels are used to train.
Each score (`-vectors`) is to be compared with

    -random    the same with a random vector per word: the information in `k` clusters of frequent words
    -words     the same with one cluster per word: the upper bound for vectors of words

A teacher at a layer has a vector per occurrence of a word, so that it may pass `-words`. `stillvec analyze
teacher:NAME --text FILE` measures each layer against the input:

    I(A; B) = sum over a, b of p(a, b) log p(a, b) / (p(a) p(b)), in nats; A is the cluster of a vector, B another label

The plug-in estimate from N pairs is biased upwards by about (non-empty cells - rows - columns + 1) / 2N (Miller 1955;
(k - 1)² / 2N if no cell is empty). The bias is subtracted: with a thousand clusters it is half a nat. Clusters come
from k-means with k-means++ initialization and several restarts; a single random start underestimates I.

An item is a sentence, covered if one of its words is known. Interval: 1.96 standard deviations of a bootstrap over
sentences; percentiles would be too high, as a resample repeats pairs.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stillvec.evaluation.intervals import Estimate, Floats, Mask, Resampling, Rows
from stillvec.evaluation.labels import KINDS, RELATIONS, kind_labels, read_labels
from stillvec.evaluation.probing import randomize
from stillvec.evaluation.supervised import LearntItems, share
from stillvec.evaluation.tasks import Answers, Items, TokenTask
from stillvec.heads.sequence_batches import UNKNOWN, Representation, Sequences
from stillvec.numerics import kmeans, unit_rows
from stillvec.registry import check_least

_QUICK = 3000  # training sentences
_RESAMPLES = 200  # each needs its own table of words and labels
_SWEEPS = 30  # of k-means


@dataclass(frozen=True)
class MutualInformation(TokenTask):
    k: int = 100  # clusters

    files: ClassVar[tuple[str, ...]] = ("tagging", ".conllu")
    controls: ClassVar[tuple[str, ...]] = ("-random", "-words")

    def __post_init__(self) -> None:
        check_least(self, k=2)

    def read(self, path: Path) -> LearntItems:
        items = read_labels(path, _QUICK if self.quick else None)
        return LearntItems.from_sentences(items.all_texts, len(items.all_texts), items.labels)

    def answer_steps(self, lookup: Representation, items: Items) -> Generator[float, None, Answers]:
        assert isinstance(items, LearntItems)
        sequences = yield from share(0, 2, lookup.read_tokens_steps(items.texts))
        kept = (sequences.ids != UNKNOWN) | (lookup.oov == "mean")
        values = {
            "cluster-vectors": self._cluster(sequences, kept),
            "cluster-random": self._cluster(randomize(sequences), kept),
            "cluster-words": sequences.types,
            "kept": kept.astype(np.int64),
        }
        return Answers(sequences.known > 0, values)

    def _cluster(self, sequences: Sequences, kept: Mask) -> Rows:
        """The cluster of each word (N,); each row counts as often as it occurs."""
        counts = np.bincount(sequences.ids[kept], minlength=len(sequences.table)).astype(np.float64)
        used = np.flatnonzero(counts)
        cluster = np.zeros(len(counts), np.int64)
        if len(used):
            rows, k = unit_rows(np.asarray(sequences.table[used], np.float32)), min(self.k, len(used))
            cluster[used] = clusters(rows, k, counts[used], tries=1 if self.quick else 3)
        return cluster[sequences.ids]

    def score(self, items: Items, answers: Answers, chosen: Rows, resampling: Resampling) -> dict[str, Estimate]:
        assert isinstance(items, LearntItems)
        sentence = np.repeat(np.arange(len(items)), items.gold.astype(np.int64))
        counted = answers.values["kept"]
        measures = {}
        for at, kind in enumerate(KINDS[RELATIONS][:2]):
            labels = kind_labels(items, at)
            for name in ("vectors", "random", "words"):
                cluster = answers.values[f"cluster-{name}"]
                measures[f"{kind}-{name}"] = partial(_shares, cluster, labels, counted, sentence, chosen)
        few = Resampling(min(_RESAMPLES, resampling.resamples), resampling.seed)
        return {name: _estimate(measure, len(chosen), few) for name, measure in measures.items()}


def _estimate(measure: Callable[[Floats], Floats], n: int, resampling: Resampling) -> Estimate:
    """The value ± 1.96 standard deviations of its resamples."""
    if not n:
        return Estimate(np.nan, np.nan, np.nan)
    value = float(measure(np.ones((1, n)))[0])
    resampled = np.concatenate([np.zeros(0), *(measure(weights) for weights in resampling.weights(n))])
    half = 1.96 * float(resampled.std(ddof=1)) if len(resampled) > 1 else np.nan
    return Estimate(value, value - half, value + half)


def _shares(cluster: Rows, labels: Rows, counted: Rows, sentence: Rows, chosen: Rows, weights: Floats) -> Floats:
    """I / H(label) in each resample of the chosen sentences (R,), with the bias corrected; NaN if H is 0."""
    n_labels = int(labels.max()) + 1
    cell, n_cells = cluster * n_labels + labels, (int(cluster.max()) + 1) * n_labels
    shares = np.full(len(weights), np.nan)
    for number, row in enumerate(weights):
        times = np.bincount(chosen, row, minlength=int(sentence.max()) + 1)[sentence] * counted
        joint = np.bincount(cell, times, minlength=n_cells).reshape(-1, n_labels)
        h = entropy(joint.sum(axis=0)) if joint.any() else 0.0
        shares[number] = (information(joint) - bias(joint)) / h if h else np.nan
    return shares


class Information(NamedTuple):
    value: float  # in nats, bias subtracted
    bias: float
    shuffled: float  # control with shuffled pairs, bias subtracted; about 0


def label_information(a: Rows, b: Rows, seed: int = 0, weights: NDArray[Any] | None = None) -> Information:
    """Mutual information of two labels of the same items (n,), each of which counts `weights` times."""
    joint = cross_tabulate(a, b, weights)
    permuted = cross_tabulate(a, np.random.default_rng(seed).permutation(b)) if weights is None else np.ones((1, 1))
    return Information(information(joint) - bias(joint), bias(joint), information(permuted) - bias(permuted))


def cross_tabulate(a: Rows, b: Rows, weights: NDArray[Any] | None = None) -> Floats:
    """How often each two labels occur together (a, b)."""
    n_rows, n_columns = int(a.max()) + 1, int(b.max()) + 1
    return np.bincount(a * n_columns + b, weights, n_rows * n_columns).reshape(n_rows, n_columns).astype(np.float64)


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
