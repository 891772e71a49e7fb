"""Clustering of texts: the V-measure of clusters of their vectors, given their labels (Rosenberg & Hirschberg 2007).

Files: `clustering/*.tsv` with a label, a tab and a text per line. As in MTEB (Muennighoff et al. 2023), there are as
many clusters as labels, found by mini-batch k-means (batches of 500); vectors are scaled to length one, and
`v-measure` is the mean over `seeds` runs, `v-measure-sd` their standard deviation. `v-measure-chance` is its value when
the clusters are permuted at random. `known-words` is the share of known words of a text.

Texts without a known word are left out, or have the vector of the OOV policy. For the texts common to several sets,
clusters stay those of all texts of each set. Interval: percentile bootstrap over texts, clusters fixed.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError, UsageError
from stillvec.evaluation.intervals import Estimate, Floats, Resampling, Rows
from stillvec.evaluation.supervised import estimates, quotient
from stillvec.evaluation.tasks import Answers, Items, TextTask
from stillvec.heads.dataset_files import lines
from stillvec.heads.sequence_batches import Representation
from stillvec.numerics import kmeans, unit_rows

_BATCH = 500  # texts, as in MTEB
_PASSES = 10  # over all texts, in batches
_QUICK_TEXTS, _QUICK_SEEDS = 2000, 3


@dataclass(frozen=True)
class TextClustering(TextTask):
    seeds: int = 10

    files: ClassVar[tuple[str, ...]] = ("clustering", ".tsv")
    controls: ClassVar[tuple[str, ...]] = ("-words", "-sd", "-chance")

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise UsageError.expected("one seed or more", self.seeds, where="clustering")

    def read(self, path: Path) -> Items:
        """One item per text; gold is the number of its label."""
        texts: list[str] = []
        labels: list[str] = []
        for number, line in lines(path):
            label, tab, text = line.partition("\t")
            if line.strip() and not (tab and label.strip() and text.strip()):
                raise DatasetError.expected("a label, a tab and a text", repr(line[:40]), path=path, line=number)
            if line.strip():
                labels.append(label.strip())
                texts.append(text.strip())
        names = {name: number for number, name in enumerate(dict.fromkeys(labels))}
        if len(names) < 2:
            raise DatasetError.expected("texts of two labels or more", f"{len(names)} labels", path=path, line=1)
        chosen = np.arange(len(texts))
        if self.quick and len(chosen) > _QUICK_TEXTS:
            chosen = np.sort(np.random.default_rng(0).permutation(chosen)[:_QUICK_TEXTS])
        gold = np.array([names[labels[at]] for at in chosen], np.float64)
        return Items(tuple((texts[at],) for at in chosen), gold)

    def answer_steps(self, lookup: Representation, items: Items) -> Generator[float, None, Answers]:
        texts = [text for (text,) in items.texts]
        rows = unit_rows((yield from lookup.encode_texts_steps(texts)))
        known = lookup.count_words(texts)
        covered = known[:, 0] > 0
        chosen = np.flatnonzero(covered) if lookup.oov == "skip" else np.arange(len(texts))
        n_seeds = min(self.seeds, _QUICK_SEEDS) if self.quick else self.seeds
        clusters = np.zeros((len(texts), n_seeds), np.int64)
        permuted = clusters.copy()
        for seed in range(n_seeds if len(chosen) else 0):
            generator = np.random.default_rng(seed)
            clusters[chosen, seed] = _cluster(rows[chosen], len(np.unique(items.gold[chosen])), generator)
            permuted[chosen, seed] = generator.permutation(clusters[chosen, seed])
            yield (seed + 1) / n_seeds
        shares = quotient(known[:, 0], known[:, 1])
        return Answers(covered, {"clusters": clusters, "permuted": permuted, "known-words": np.nan_to_num(shares)})

    def score(self, items: Items, answers: Answers, chosen: Rows, resampling: Resampling) -> dict[str, Estimate]:
        values, gold = answers.values, items.gold[chosen].astype(np.int64)
        runs, chance = (
            [_table(column, gold) for column in values[name][chosen].T] for name in ("clusters", "permuted")
        )
        measures: dict[str, Callable[[Floats], Floats]] = {"v-measure": partial(_over_seeds, runs, np.mean)}
        if len(runs) > 1:
            measures["v-measure-sd"] = partial(_over_seeds, runs, partial(np.std, ddof=1))
        measures["v-measure-chance"] = partial(_over_seeds, chance, np.mean)
        known = values["known-words"][chosen]
        measures["known-words"] = lambda weights: np.asarray(weights @ known / weights.sum(axis=1))
        return estimates(measures, len(chosen), resampling)


def _cluster(rows: NDArray[np.float32], n_clusters: int, generator: np.random.Generator) -> Rows:
    n_rounds = max(1, _PASSES * len(rows) // _BATCH)
    return kmeans(rows, n_clusters, generator, n_rounds=n_rounds, batch=_BATCH).labels


def _table(clusters: Rows, gold: Rows) -> tuple[Any, tuple[int, int]]:
    """A sparse matrix (k * c, n) that counts the texts of each cluster and label, and (k, c)."""
    from scipy.sparse import csr_array

    shape = int(clusters.max(initial=0)) + 1, int(gold.max(initial=0)) + 1
    cells = clusters * shape[1] + gold, np.arange(len(gold))
    return csr_array((np.ones(len(gold)), cells), (shape[0] * shape[1], len(gold))), shape


def _over_seeds(runs: list[tuple[Any, tuple[int, int]]], reduce: Callable[..., Any], weights: Floats) -> Floats:
    values = [v_measure((table @ weights.T).T.reshape(-1, *shape)) for table, shape in runs]
    return np.asarray(reduce(values, axis=0), np.float64)


def v_measure(counts: Floats) -> Floats:
    """The V-measure (R,) of counts of texts per cluster and label (R, k, c): 2 I(K; C) / (H(K) + H(C)), or 1 if both
    have a single value."""
    joint = counts / np.maximum(counts.sum(axis=(1, 2), keepdims=True), 1)
    clusters, labels, both = (_entropy(part) for part in (joint.sum(axis=2), joint.sum(axis=1), joint))
    total = clusters + labels
    return np.divide(2 * (total - both), total, out=np.ones_like(total), where=total > 1e-12)


def _entropy(shares: Floats) -> Floats:
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(-(shares * logs).reshape(len(shares), -1).sum(axis=1))
