"""Feature tuples and fuzzy sets: sheet 4's acceptance test, and scipy's softmax and entropies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import bernoulli, spearmanr
from scipy.stats import entropy as scipy_entropy

from stillvec.errors import UsageError
from stillvec.refinement import feature_tuples as module
from stillvec.refinement import fuzzy_sets as fuzzy
from stillvec.refinement.feature_tuples import FeatureTuples
from stillvec.vectors import WordVectors


@pytest.fixture
def vectors() -> WordVectors:
    matrix = np.random.default_rng(0).normal(size=(70, 9)).astype(np.float32) * 3
    return WordVectors([f"w{row}" for row in range(70)], matrix)


@pytest.mark.parametrize("base", [np.e, 2.0])
@pytest.mark.parametrize(("over", "axis"), [("column", 0), ("row", 1)])
def test_tuples_are_the_softmax_of_columns_or_rows(
    over: Any, axis: int, base: float, vectors: WordVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK", 16)
    after = FeatureTuples(over, base)(vectors).matrix
    assert np.allclose(after, softmax(vectors.matrix.astype(np.float64) * np.log(base), axis=axis), rtol=1e-5)
    assert np.allclose(after.sum(axis), 1, atol=1e-6)
    assert ((after > 0) & (after < 1)).all()


def test_numbers_of_any_size_give_probabilities(vectors: WordVectors) -> None:
    for over in ("column", "row"):
        after = FeatureTuples(over)(WordVectors(vectors.words, vectors.matrix * 1e4)).matrix  # type: ignore[arg-type]
        assert ((after > 0) & (after < 1)).all()
        assert np.isfinite(fuzzy.cross_entropy(after[0], after)).all()


def test_a_uniform_row_of_two_hundred_has_the_entropy_of_the_paper() -> None:
    """6.2958, where the paper prints 6.2934 for "the": row normalisation, as its programs have it."""
    row = FeatureTuples("row")(WordVectors(["the"], np.ones((1, 200), np.float32))).matrix[0]
    assert fuzzy.entropy(row) == pytest.approx(6.2958, abs=1e-4)


@pytest.fixture
def sets() -> tuple[Any, Any]:
    random = np.random.default_rng(1)
    return random.uniform(0.01, 0.99, (5, 12)), random.uniform(0.01, 0.99, (5, 12))


def test_the_laws_of_the_algebra_hold(sets: tuple[Any, Any]) -> None:
    a, b = sets
    un, inter, non = fuzzy.union, fuzzy.intersection, fuzzy.complement
    assert np.allclose(non(un(a, b)), inter(non(a), non(b)))
    assert np.allclose(non(inter(a, b)), un(non(a), non(b)))
    assert not fuzzy.difference(a, a).any()
    assert np.allclose(fuzzy.difference(a, b), np.maximum(a - b, 0))
    assert np.allclose(fuzzy.disjoint_union(a, b), np.minimum(a + b, 1))
    assert (inter(a, b) <= a).all()
    assert (a <= un(a, b)).all()
    assert np.allclose(fuzzy.cardinality(un(a, b)) + fuzzy.cardinality(inter(a, b)), a.sum(1) + b.sum(1))


def test_entropy_and_divergence_are_those_of_coins(sets: tuple[Any, Any]) -> None:
    s, t = (each[0] for each in sets)
    assert fuzzy.entropy(s) == pytest.approx(sum(bernoulli(p).entropy() for p in s))
    wanted = sum(scipy_entropy([p, 1 - p], [q, 1 - q]) for p, q in zip(s, t, strict=True))
    assert fuzzy.divergence(s, t) == pytest.approx(wanted)
    assert fuzzy.divergence(s, t, one_sided=True) == pytest.approx((s * np.log(s / t)).sum())
    assert fuzzy.cross_entropy(s, t) == pytest.approx(fuzzy.entropy(s) + wanted)
    assert fuzzy.divergence(s, s) == pytest.approx(0, abs=1e-12)
    assert abs(fuzzy.cross_entropy(s, t) - fuzzy.cross_entropy(t, s)) > 1e-3


def test_sets_with_all_or_nothing_of_a_feature_have_finite_entropies() -> None:
    sharp, soft = np.array([0.0, 1.0, 0.5]), np.array([0.5, 0.5, 0.5])
    assert fuzzy.entropy(sharp) == pytest.approx(np.log(2))
    assert np.isfinite([fuzzy.cross_entropy(sharp, soft), fuzzy.cross_entropy(soft, sharp)]).all()


def test_the_nearest_of_a_word_is_itself_and_then_what_is_alike(vectors: WordVectors) -> None:
    rows = vectors.matrix.copy()
    rows[9] = rows[4] + 0.01
    tuples = FeatureTuples("row")(WordVectors(vectors.words, rows))
    found = fuzzy.nearest(tuples, tuples["w4"], 3)
    assert {found[0][0], found[1][0]} == {"w4", "w9"}
    assert found[0][1] <= found[1][1] <= found[2][1]
    assert fuzzy.nearest(tuples, tuples["w4"], 1, exclude=["w4"])[0][0] == "w9"


def test_an_analogy_takes_features_out_and_puts_others_in() -> None:
    """royal and male are features; a word without the one and with the other is found."""
    words = ["king", "queen", "man", "woman", "stone", "tree"]
    features = [[3, 3, 0, 0], [3, 0, 3, 0], [0, 3, 0, 0], [0, 0, 3, 0], [0, 0, 0, 3], [0, 0, 0, 2]]
    for over in ("row", "column"):
        tuples = FeatureTuples(over)(WordVectors(words, np.array(features, np.float32)))  # type: ignore[arg-type]
        assert fuzzy.analogy(tuples, "man", "king", "woman")[0][0] == "queen"


def test_cross_entropy_orders_real_pairs_as_well_as_the_cosine(word_pieces: WordVectors) -> None:
    """Sheet 4: SimLex within .05 of the cosine, with rows that sum to one; with columns the entropies drown it, and the
    divergence without them does not."""
    package = pytest.importorskip("gensim")
    lines = (Path(package.__file__).parent / "test/test_data/simlex999.txt").read_text().splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    pairs = [(a, b, float(score)) for a, b, score in rows if a in word_pieces and b in word_pieces]
    gold = [score for *_, score in pairs]
    cosine = spearmanr(gold, [word_pieces.similarity(a, b) for a, b, _ in pairs])[0]
    for over, measure in (("row", fuzzy.cross_entropy), ("row", fuzzy.divergence), ("column", fuzzy.divergence)):
        tuples = FeatureTuples(over)(word_pieces)  # type: ignore[arg-type]
        far = measure(*(tuples[[pair[side] for pair in pairs]] for side in (0, 1)))
        assert -spearmanr(gold, far)[0] == pytest.approx(cosine, abs=0.05)


def test_a_base_that_is_invalid_is_refused() -> None:
    for base in (1.0, 0.0, -2.0, np.inf, np.nan):
        with pytest.raises(UsageError, match="base"):
            FeatureTuples(base=base)
