"""Categorisation: are words clustered as people sort them? Purity (Almuhareb 2006; Baroni & Lenci 2010).

Every `categorization/*.csv`: category, word; a header and a first column of numbers may be there, and rows without a
word are passed over. The words are clustered into as many clusters as their categories are; a word is right if its
category is the most frequent one of its cluster, and purity is the share of words that are.

`purity` is the papers' number, by the rules of Jastrzebski's word-embeddings-benchmarks (2017): the best of Ward's,
average and complete linkage (the last two by distance and by cosine) and of k-means, whose best run by its own
measure of `seeds` is taken. That the categories choose among clusterings makes it optimistic. `purity-kmeans` is the
mean of k-means over seeds 0 to `seeds` - 1, and nothing is chosen. Vectors are taken at length one; `unit=false`
leaves them as they are, as that toolkit does. With `chance=true` `purity-chance` is what the best clustering gets
when the categories are dealt to the words at random, twenty times.

All words that a set knows are clustered together; on the words that several sets have in common, those are clustered
anew. Interval: percentile bootstrap over the words, the clusters held fixed. Beyond `linked` words no hierarchy is
made: it needs all distances.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError
from stillvec.evaluation.dataset_files import files_in, records
from stillvec.evaluation.intervals import Estimate, Resampling, mean_estimate
from stillvec.evaluation.lookup import Lookup, unit
from stillvec.evaluation.tasks import Answers, Items, Task
from stillvec.numerics import kmeans

Ints = NDArray[np.int64]
_LINKAGES = (
    ("ward", "euclidean"),
    ("average", "euclidean"),
    ("average", "cosine"),
    ("complete", "euclidean"),
    ("complete", "cosine"),
)
_ROUNDS = 300  # of k-means at most
_DEALT = 20  # times that categories are dealt at random


@dataclass(frozen=True)
class Categorization(Task):
    seeds: int = 10
    unit: bool = True
    chance: bool = False
    linked: int = 10_000

    controls: ClassVar[tuple[str, ...]] = ("-chance",)

    def find(self, folder: Path) -> list[Path]:
        return files_in(folder / "categorization", (".csv",))

    def read(self, path: Path) -> Items:
        """An item a word; gold is the number of its category."""
        categories: dict[str, int] = {}
        texts: list[tuple[str, ...]] = []
        gold: list[int] = []
        for category, word in _sorted_words(path):
            texts.append((word,))
            gold.append(categories.setdefault(category, len(categories)))
        if len(categories) < 2:
            raise DatasetError(f"{path}:1: words of two categories or more are wanted, and {len(categories)} came.")
        return Items(tuple(texts), np.array(gold, np.float64))

    def answer(self, lookup: Lookup, items: Items) -> Answers:
        rows = lookup.rows([word for (word,) in items.texts])
        covered = rows >= 0
        asked = np.flatnonzero(covered if lookup.oov == "skip" else covered | True)
        return self.narrow(items, Answers(covered, {"vectors": lookup.take(rows)}), asked)

    def narrow(self, items: Items, answers: Answers, chosen: NDArray[np.int64]) -> Answers:
        """Cluster the chosen words and no others."""
        vectors = answers.values["vectors"]  # (n, dim)
        values = {name: np.zeros(len(items)) for name in self._metrics}
        if len(chosen):
            points = unit(vectors[chosen]) if self.unit else vectors[chosen]
            for name, hits in self._hits(points, items.gold[chosen].astype(np.int64)).items():
                values[name][chosen] = hits
        return Answers(answers.covered, values | {"vectors": vectors})

    def score(
        self, items: Items, answers: Answers, chosen: NDArray[np.int64], resampling: Resampling
    ) -> dict[str, Estimate]:
        return {metric: mean_estimate(answers.values[metric][chosen], resampling) for metric in self._metrics}

    @property
    def _metrics(self) -> tuple[str, ...]:
        return ("purity", "purity-kmeans", "purity-chance")[: 3 if self.chance else 2]

    def _hits(self, points: NDArray[np.float32], gold: Ints) -> dict[str, NDArray[np.float64]]:
        """Metric → how right each word is (n,)."""
        clusters = len(np.unique(gold))
        runs = [_kmeans(points, clusters, seed) for seed in range(self.seeds)]
        labels = [min(runs, key=lambda run: run[1])[0]]
        if 1 < len(points) <= self.linked:
            labels += _hierarchies(points, clusters)
        best = max(labels, key=lambda label: _hits(label, gold).mean())
        found = {
            "purity": _hits(best, gold),
            "purity-kmeans": np.mean([_hits(label, gold) for label, _ in runs], axis=0),
        }
        if self.chance:
            deals = [np.random.default_rng(seed).permutation(gold) for seed in range(_DEALT)]
            found["purity-chance"] = np.mean([_hits(best, dealt) for dealt in deals], axis=0)
        return found


def _hits(labels: Ints, gold: Ints) -> NDArray[np.float64]:
    """Whether each word is of the category that its cluster has most of, the first of equals (n,)."""
    counts = np.zeros((labels.max() + 1, gold.max() + 1))
    np.add.at(counts, (labels, gold), 1)
    return np.asarray(counts.argmax(axis=1)[labels] == gold, np.float64)


def _hierarchies(points: NDArray[np.float32], clusters: int) -> Iterator[Ints]:
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import pdist

    distances = {"euclidean": pdist(points.astype(np.float64)), "cosine": pdist(_alive(points), "cosine")}
    for method, metric in _LINKAGES:
        tree = linkage(np.maximum(distances[metric], 0), method)
        yield fcluster(tree, clusters, "maxclust").astype(np.int64) - 1


def _alive(points: NDArray[np.float32]) -> NDArray[np.float64]:
    """Points of which none is zero, as a cosine with nothing is not defined."""
    live = np.asarray(points.any(axis=1))
    return np.where(live[:, None], points.astype(np.float64), 1.0)


def _kmeans(points: NDArray[np.float32], clusters: int, seed: int) -> tuple[Ints, float]:
    """Labels (n,) and the sum of squared distances; an empty cluster takes the farthest point."""
    run = kmeans(points, clusters, np.random.default_rng(seed), n_rounds=_ROUNDS, empty="farthest")
    return run.labels, run.inertia


def _sorted_words(path: Path) -> Iterator[tuple[str, str]]:
    """(category, word) of each row."""
    columns: tuple[int, int] | None = None
    width = 2
    for line, fields in records(path):
        if columns is None:
            header = {"category", "word"} <= set(fields)
            columns = (fields.index("category"), fields.index("word")) if header else (0, 1)
            width = len(fields) if header else 2
            if header:
                continue
        if len(fields) != width:
            raise DatasetError.expected("a category and a word", f"{len(fields)} fields", path=path, line=line)
        category, word = (fields[column] for column in columns)
        if word and not category:
            raise DatasetError.expected("a category and a word", f"only the word {word!r}", path=path, line=line)
        if word:
            yield category, word
