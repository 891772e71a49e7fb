"""Categorisation: purity against its definition, clusterings against scikit-learn's and brute force."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from stillvec import WordVectors
from stillvec.errors import DatasetError
from stillvec.evaluation import evaluate
from stillvec.evaluation.categorization import Categorization, _hierarchies, _hits, _kmeans
from stillvec.evaluation.intervals import Resampling
from stillvec.heads.lookup import Lookup


def clouds(spread: float, n: int = 20, clusters: int = 4, dim: int = 8) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(2)
    gold = np.repeat(np.arange(clusters), n)
    points = 3 * generator.standard_normal((clusters, dim))[gold] + spread * generator.standard_normal((len(gold), dim))
    return points.astype(np.float32), gold


def folder_of(path: Path, gold: np.ndarray, extra: str = "") -> Path:
    (path / "categorization").mkdir()
    rows = [f"{n},c{category},w{n}" for n, category in enumerate(gold)]
    (path / "categorization" / "sorted.csv").write_text("\n".join([",category,word", *rows]) + "\n" + extra)
    return path


def test_purity_is_that_of_its_definition() -> None:
    generator = np.random.default_rng(0)
    labels, gold = generator.integers(0, 5, 60), generator.integers(0, 4, 60)
    wanted = sum(max(Counter(gold[labels == label]).values()) for label in range(5)) / 60
    assert _hits(labels, gold).mean() == pytest.approx(wanted)


def test_kmeans_finds_the_least_squares_that_brute_force_finds() -> None:
    points = np.random.default_rng(3).standard_normal((9, 2)).astype(np.float32)

    def cost(labels: tuple[int, ...]) -> float:
        groups = [points[np.array(labels) == label] for label in range(3)]
        return float(sum(((each - each.mean(axis=0)) ** 2).sum() for each in groups if len(each)))

    least = min(cost(labels) for labels in product(range(3), repeat=9))
    runs = [_kmeans(points, 3, seed) for seed in range(10)]
    assert min(inertia for _, inertia in runs) == pytest.approx(least, rel=1e-4)
    assert all(cost(tuple(labels)) == pytest.approx(inertia, rel=1e-4) for labels, inertia in runs)


def test_kmeans_is_as_good_as_that_of_scikit_learn() -> None:
    cluster = pytest.importorskip("sklearn.cluster")
    points, gold = clouds(2.0, n=40)
    theirs = cluster.KMeans(4, n_init=10, random_state=0).fit(points)
    labels, inertia = min((_kmeans(points, 4, seed) for seed in range(10)), key=lambda run: run[1])
    assert inertia == pytest.approx(theirs.inertia_, rel=1e-3)
    assert _hits(labels, gold).mean() == pytest.approx(_hits(theirs.labels_.astype(int), gold).mean(), abs=0.02)


def test_hierarchies_are_those_of_scikit_learn() -> None:
    cluster = pytest.importorskip("sklearn.cluster")
    points, gold = clouds(2.0)
    kinds = [("ward", "euclidean"), *((a, b) for a in ("average", "complete") for b in ("euclidean", "cosine"))]
    wanted = [
        _hits(cluster.AgglomerativeClustering(4, metric=metric, linkage=linkage).fit(points).labels_, gold).mean()
        for linkage, metric in kinds
    ]
    assert [_hits(labels, gold).mean() for labels in _hierarchies(points, 4)] == pytest.approx(wanted)
    assert min(wanted) < max(wanted)


def test_clusters_that_run_empty_are_filled_and_equal_points_end() -> None:
    labels, _ = _kmeans(np.zeros((6, 3), np.float32), 3, 0)
    assert set(labels) == {0, 1, 2}
    points = np.repeat(np.eye(3, dtype=np.float32), 4, axis=0)
    labels, inertia = min((_kmeans(points, 3, seed) for seed in range(5)), key=lambda run: run[1])
    assert len(set(labels)) == 3
    assert inertia == pytest.approx(0, abs=1e-5)


def test_scores_have_coverage_an_interval_and_chance_on_demand(tmp_path: Path) -> None:
    points, gold = clouds(2.5)
    folder = folder_of(tmp_path, gold, "80,c1,unknown\n81,c2,\n")  # the last row has no word, as AP's have
    vectors = WordVectors([f"w{n}" for n in range(len(gold))], points)
    scores = evaluate(vectors, folder, ["categorization"]).scores
    assert [score.metric for score in scores] == ["purity", "purity-kmeans"]
    for score in scores:
        assert (score.n_items, score.n_covered) == (81, 80)
        assert 0.25 < score.low < score.value < score.high <= 1
    assert scores[0].value >= scores[1].value
    task = Categorization(chance=True)
    items = task.read(folder / "categorization" / "sorted.csv")
    answers = task.answer(Lookup(vectors), items)
    chance = task.score(items, answers, np.flatnonzero(answers.covered), Resampling(10))["purity-chance"]
    assert 0.25 <= chance.value < scores[1].value
    filled = evaluate(vectors, folder, ["categorization"], oov="zero").scores[0]
    assert (filled.n_covered, filled.unknown) == (80, "zero")


def test_distant_clusters_are_pure_and_lengths_count_only_on_request(tmp_path: Path) -> None:
    points, gold = clouds(0.1)
    folder = folder_of(tmp_path, gold)
    stretched = points * np.random.default_rng(0).uniform(0.01, 100, (len(points), 1))
    vectors = WordVectors([f"w{n}" for n in range(len(gold))], stretched)
    items = Categorization().read(folder / "categorization" / "sorted.csv")
    purities = {
        unit: Categorization(unit=unit).answer(Lookup(vectors), items).values["purity-kmeans"].mean()
        for unit in (True, False)
    }
    assert purities[True] > 0.9 > purities[False]
    assert Categorization().answer(Lookup(vectors), items).values["purity"].mean() == 1


def test_many_words_are_clustered_without_a_hierarchy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points, gold = clouds(2.5)
    monkeypatch.setattr("stillvec.evaluation.categorization._hierarchies", None)  # calling it would fail
    task = Categorization(linked=79)
    items = task.read(folder_of(tmp_path, gold) / "categorization" / "sorted.csv")
    answers = task.answer(Lookup(WordVectors([f"w{n}" for n in range(len(gold))], points)), items)
    units = points / np.linalg.norm(points, axis=1, keepdims=True)
    runs = sorted((_kmeans(units, 4, seed) for seed in range(10)), key=lambda run: run[1])
    best, worst = (_hits(runs[at][0], gold) for at in (0, -1))
    assert answers.values["purity"].tolist() == best.tolist() != worst.tolist()


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("category,word\na,b\nc\n", 3, "1 field"),
        ("category,word\na,b\n,d\n", 3, "'d'"),
        ("category,word\na,b\na,c\n", 1, "two categories"),
    ],
)
def test_an_invalid_file_is_named(tmp_path: Path, content: str, line: int, message: str) -> None:
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(DatasetError, match=f"a.csv:{line}: .*{message}"):
        Categorization().read(tmp_path / "a.csv")


def test_on_common_words_only_those_are_clustered(tmp_path: Path) -> None:
    points, gold = clouds(2.5)
    folder = folder_of(tmp_path, gold)
    words = [f"w{n}" for n in range(len(gold))]
    whole = WordVectors(words, points)
    part = WordVectors(words, points[::-1].copy()).subset(words[:50])
    scores = evaluate({"whole": whole, "part": part}, folder, ["categorization"]).scores
    common = [score.value for score in scores if (score.vectors, score.words) == ("whole", "common")]
    own = [score.value for score in scores if (score.vectors, score.words) == ("whole", "own")]
    alone = [score.value for score in evaluate(whole.subset(words[:50]), folder, ["categorization"]).scores]
    assert common == alone != own
