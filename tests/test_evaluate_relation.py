"""Relation similarity: against a slow loop and scipy, with ratings and with nothing but an order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from stillvec import WordVectors
from stillvec.errors import DatasetError
from stillvec.evaluation import evaluate
from stillvec.evaluation.analogy import Analogy
from stillvec.evaluation.intervals import Resampling
from stillvec.evaluation.relation import Relation
from stillvec.heads.lookup import Lookup

RELATIONS = {"1a": 3, "10j": 2}  # relation → prototypes
PAIRS = 12


def written(folder: Path, ratings: bool) -> Path:
    """Two relations; in the first one a prototype is unknown, and a pair too."""
    generator = np.random.default_rng(5)
    rows = []
    for relation, prototypes in RELATIONS.items():
        for pair in range(PAIRS):
            score = generator.normal()
            for prototype in range(prototypes):
                start = f"{len(rows)},{relation},p{relation}{prototype}x,p{relation}{prototype}y"
                rows.append(f"{start},{relation}{pair}x,{relation}{pair}y" + (f",{score:.3f}" if ratings else ""))
    header = ",type,word1,word2,word3,target" + (",score" if ratings else "")
    (folder / "analogy").mkdir(exist_ok=True)
    path = folder / "analogy" / "relations.csv"
    path.write_text("\n".join([header, *rows]) + "\n", "utf-8")
    return path


@pytest.fixture
def vectors() -> WordVectors:
    words = [f"p{relation}{number}{side}" for relation, n in RELATIONS.items() for number in range(n) for side in "xy"]
    words += [f"{relation}{number}{side}" for relation in RELATIONS for number in range(PAIRS) for side in "xy"]
    words = [word for word in words if word not in ("p1a2y", "10j3x")]
    return WordVectors(words, np.random.default_rng(1).standard_normal((len(words), 6)))


def slow(vectors: WordVectors, relation: str, gold: list[float]) -> float:
    def way(a: str, b: str) -> np.ndarray:
        return vectors[b] / np.linalg.norm(vectors[b]) - vectors[a] / np.linalg.norm(vectors[a])

    def cosine(x: np.ndarray, y: np.ndarray) -> float:
        return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))

    prototypes = [
        way(f"p{relation}{n}x", f"p{relation}{n}y") for n in range(RELATIONS[relation]) if f"p{relation}{n}y" in vectors
    ]
    known = [n for n in range(PAIRS) if f"{relation}{n}x" in vectors]
    values = [np.mean([cosine(way(f"{relation}{n}x", f"{relation}{n}y"), each) for each in prototypes]) for n in known]
    return float(stats.spearmanr(values, [gold[n] for n in known]).statistic)


@pytest.mark.parametrize(("ratings", "metric"), [(True, "spearman"), (False, "spearman-order")])
def test_the_value_is_the_mean_of_what_a_slow_loop_finds(
    tmp_path: Path, vectors: WordVectors, ratings: bool, metric: str
) -> None:
    items = Relation().read(written(tmp_path, ratings))
    assert len(items) == 2 * PAIRS
    (score,) = evaluate(vectors, tmp_path, ["relation"]).scores
    gold = {
        relation: [g for g, s in zip(items.gold, items.sections, strict=True) if s == relation]
        for relation in RELATIONS
    }
    wanted = {relation: slow(vectors, relation, gold[relation]) for relation in RELATIONS}
    assert score.metric == metric
    assert score.value == pytest.approx(np.mean([*wanted.values()]), abs=1e-6)
    assert {each.section: each.value for each in score.details} == pytest.approx(wanted, abs=1e-6)
    assert (score.n_items, score.n_covered) == (2 * PAIRS, 2 * PAIRS - 1)
    assert score.low < score.value < score.high


def test_the_first_pair_of_an_order_is_the_best_and_the_ratings_are_kept(tmp_path: Path) -> None:
    ordered = Relation().read(written(tmp_path, ratings=False))
    assert (np.diff(ordered.gold) < 0).all()
    rated = Relation().read(written(tmp_path, ratings=True))
    assert rated.gold[0] == round(np.random.default_rng(5).normal(), 3)


def test_a_relation_without_prototypes_is_not_known_unless_the_policy_fills_it(
    tmp_path: Path, vectors: WordVectors
) -> None:
    path = written(tmp_path, ratings=False)
    some = vectors.subset(word for word in vectors.words if not word.startswith("p1a"))
    items = Relation().read(path)
    skipped = Relation().answer(Lookup(some), items)
    assert skipped.covered.sum() == PAIRS - 1
    assert not skipped.covered[:PAIRS].any()
    filled = Relation().answer(Lookup(some, "mean"), items)
    assert filled.covered.sum() == PAIRS - 1
    assert np.isfinite(filled.values["spearman-order"]).all()
    estimate = Relation().score(items, skipped, np.arange(PAIRS), Resampling(5))["spearman-order"]
    assert np.isnan(estimate.value)  # nothing varies


def test_a_table_of_relations_is_one_task_and_a_table_of_analogies_another(tmp_path: Path) -> None:
    path = written(tmp_path, ratings=False)
    (path.parent / "msr.csv").write_text(",type,word1,word2,word3,target\n0,JJ_JJR,a,b,c,d\n")
    assert [each.name for each in Relation().find(tmp_path)] == ["relations.csv"]
    assert [each.name for each in Analogy().find(tmp_path)] == ["msr.csv"]


def test_an_invalid_rating_is_named(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("type,word1,word2,word3,target,score\n1a,a,b,c,d,much\n")
    with pytest.raises(DatasetError, match="'much'") as caught:
        Relation().read(path)
    assert (caught.value.path, caught.value.line) == (str(path), 2)


def test_the_order_of_the_real_table_means_something(data_folder: Path, word_pieces: WordVectors) -> None:
    """Were the order of its pairs not that of people's ratings, the correlation would be none."""
    task = Relation()
    (path,) = task.find(data_folder)
    items = task.read(path)
    answers = task.answer(Lookup(word_pieces), items)
    estimate = task.score(items, answers, np.flatnonzero(answers.covered), Resampling(50))["spearman-order"]
    assert (len(items), len(set(items.sections))) == (3218, 79)
    assert estimate.low > 0.05
