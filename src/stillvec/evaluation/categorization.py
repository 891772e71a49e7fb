"""Categorization: the purity of clusters of words, given their categories (Almuhareb 2006; Baroni & Lenci 2010).

Files: `categorization/*.csv` with category, word; a header and an index column are optional, and rows without a word
are skipped. There are as many clusters as categories; a word is correct if its category is the most frequent one in its
cluster, and purity is the share of correct words.

`purity` follows word-embeddings-benchmarks (Jastrzebski et al. 2017): the best of Ward's, average and complete linkage
(the last two by Euclidean and cosine distance) and k-means (the run of least inertia of `seeds`). It is optimistic,
as the categories select the clustering. `purity-kmeans` is the mean over `seeds` runs of k-means, without selection.
Vectors are normalized; `unit=false` leaves them unchanged, as that toolkit does. With `chance=true`, `purity-chance` is
the purity of the best clustering when categories are permuted at random, the mean of 20 permutations.

All words of a set are clustered together; for the words common to several sets, only these are clustered. Interval:
percentile bootstrap over words, clusters fixed. Above `linked` words no linkage is computed, as it needs all distances.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError
from stillvec.evaluation.intervals import Floats, Rows
from stillvec.evaluation.tasks import Answers, Items, Task
from stillvec.heads.dataset_files import records
from stillvec.heads.lookup import Lookup
from stillvec.numerics import kmeans, unit_rows

_LINKAGES = {"ward": ("euclidean",), "average": ("euclidean", "cosine"), "complete": ("euclidean", "cosine")}
_ROUNDS = 300  # of k-means at most
_PERMUTATIONS = 20  # of the categories, for `chance`


@dataclass(frozen=True)
class Categorization(Task):
    seeds: int = 10
    unit: bool = True
    chance: bool = False
    linked: int = 10_000

    files: ClassVar[tuple[str, ...]] = ("categorization", ".csv")
    controls: ClassVar[tuple[str, ...]] = ("-chance",)

    def read(self, path: Path) -> Items:
        """One item per word; gold is the number of its category."""
        categories: dict[str, int] = {}
        texts: list[tuple[str, ...]] = []
        gold: list[int] = []
        for category, word in _read_categories(path):
            texts.append((word,))
            gold.append(categories.setdefault(category, len(categories)))
        if len(categories) < 2:
            raise DatasetError.expected("words of two categories or more", len(categories), path=path, line=1)
        return Items(tuple(texts), np.array(gold, np.float64))

    def answer(self, lookup: Lookup, items: Items) -> Answers:
        rows = lookup.rows([word for (word,) in items.texts])
        covered = rows >= 0
        return self.narrow(items, Answers(covered, {"vectors": lookup.take(rows)}), lookup.select(covered))

    def narrow(self, items: Items, answers: Answers, chosen: Rows) -> Answers:
        """Cluster only the chosen words."""
        vectors = answers.values["vectors"]  # (n, dim)
        names = ("purity", "purity-kmeans", "purity-chance")[: 3 if self.chance else 2]
        values = {name: np.zeros(len(items)) for name in names}
        if len(chosen):
            points = unit_rows(vectors[chosen]) if self.unit else vectors[chosen]
            for name, hits in self._hits(points, items.gold[chosen].astype(np.int64)).items():
                values[name][chosen] = hits
        return Answers(answers.covered, values | {"vectors": vectors})

    def _hits(self, points: NDArray[np.float32], gold: Rows) -> dict[str, Floats]:
        """Metric → how correct each word is (n,)."""
        n_clusters = len(np.unique(gold))
        runs = [_kmeans(points, n_clusters, seed) for seed in range(self.seeds)]
        labels = [min(runs, key=lambda run: run[1])[0]]
        if 1 < len(points) <= self.linked:
            labels += _hierarchies(points, n_clusters)
        best = max(labels, key=lambda label: _hits(label, gold).mean())
        kmeans_hits = np.mean([_hits(label, gold) for label, _ in runs], axis=0)
        hits = {"purity": _hits(best, gold), "purity-kmeans": kmeans_hits}
        if self.chance:
            permuted = [np.random.default_rng(seed).permutation(gold) for seed in range(_PERMUTATIONS)]
            hits["purity-chance"] = np.mean([_hits(best, categories) for categories in permuted], axis=0)
        return hits


def _hits(labels: Rows, gold: Rows) -> Floats:
    """Whether the category of each word is the most frequent of its cluster, the first of equals (n,)."""
    counts = np.zeros((labels.max() + 1, gold.max() + 1))
    np.add.at(counts, (labels, gold), 1)
    return np.asarray(counts.argmax(axis=1)[labels] == gold, np.float64)


def _hierarchies(points: NDArray[np.float32], n_clusters: int) -> Iterator[Rows]:
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import pdist

    # the cosine of a zero row is not defined: ones in its place
    directed = np.where(points.any(axis=1, keepdims=True), points.astype(np.float64), 1.0)
    distances = {"euclidean": pdist(points.astype(np.float64)), "cosine": pdist(directed, "cosine")}
    for method, metrics in _LINKAGES.items():
        for metric in metrics:
            tree = linkage(np.maximum(distances[metric], 0), method)
            yield fcluster(tree, n_clusters, "maxclust").astype(np.int64) - 1


def _kmeans(points: NDArray[np.float32], n_clusters: int, seed: int) -> tuple[Rows, float]:
    """Labels (n,) and the sum of squared distances; an empty cluster takes the farthest point."""
    run = kmeans(points, n_clusters, np.random.default_rng(seed), n_rounds=_ROUNDS, empty="farthest")
    return run.labels, run.inertia


def _read_categories(path: Path) -> Iterator[tuple[str, str]]:
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
