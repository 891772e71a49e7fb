"""Shared arithmetic beside NumPy, SciPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr

from stillvec import numerics
from stillvec.numerics import kmeans, principal_axes, rank_values, second_moments, spearman, top_k, unit_rows

RANDOM = np.random.default_rng(3)


def test_unit_rows_have_length_one_and_zero_rows_stay_zero() -> None:
    rows = RANDOM.normal(size=(5, 4)).astype(np.float32)
    rows[2] = 0
    lengths = np.linalg.norm(unit_rows(rows), axis=1)
    assert lengths == pytest.approx([1, 1, 0, 1, 1])
    assert unit_rows(rows).dtype == np.float32
    assert unit_rows(rows.astype(np.float16), np.float64).dtype == np.float64
    assert np.linalg.norm(unit_rows(rows[0])) == pytest.approx(1)


@pytest.mark.parametrize("block", [3, 1000])
def test_moments_and_axes_are_those_of_numpy(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numerics.rows.iterate_blocks, "__defaults__", (np.float64, block))
    rows = RANDOM.normal(size=(40, 6)) @ RANDOM.normal(size=(6, 6)) + 3
    mean = numerics.sum_weighted_rows(rows, np.full(40, 1 / 40))
    assert mean == pytest.approx(rows.mean(0))
    assert numerics.column_variances(rows) == pytest.approx(rows.var(0))
    values, axes = principal_axes(second_moments(rows, mean))
    assert values == pytest.approx(np.linalg.svd(rows - mean)[1] ** 2)
    assert (axes[np.abs(axes).argmax(0), np.arange(6)] > 0).all()
    assert numerics.apply_map(rows, axes, mean) == pytest.approx((rows - mean) @ axes)


def test_axes_of_a_flat_matrix_have_zero_and_not_rounding() -> None:
    rows = np.outer(RANDOM.normal(size=30), RANDOM.normal(size=5))
    values, _ = principal_axes(rows.T @ rows)
    assert (values[1:] == 0).all()
    assert numerics.raise_to_power(values, -0.5)[1:].tolist() == [0] * 4


@pytest.mark.parametrize("k", [1, 4, 9, 20])
def test_top_k_gives_the_largest_values_in_order(k: int) -> None:
    scores = RANDOM.integers(0, 4, size=(7, 9)).astype(float)
    values = np.take_along_axis(scores, top_k(scores, k), 1)
    assert np.array_equal(values, -np.sort(-scores, axis=1)[:, :k])
    if k >= 9:
        assert np.array_equal(top_k(scores, k), np.argsort(-scores, axis=1, kind="stable"))


def test_spearman_is_that_of_scipy_and_zero_where_nothing_varies() -> None:
    x, y = RANDOM.integers(0, 9, 50), RANDOM.normal(size=50)
    assert spearman(x, y) == pytest.approx(spearmanr(x, y).statistic)
    assert spearman(np.ones(5), np.arange(5)) == 0
    assert rank_values(np.array([3, 1, 1])).tolist() == [3, 1.5, 1.5]


@pytest.mark.parametrize("shape", [(0,), (1,), (9,), (3, 0), (3, 7), (2, 3, 20)])
def test_ranks_are_those_of_scipy(shape: tuple[int, ...]) -> None:
    for values in (RANDOM.integers(0, 4, shape), RANDOM.random(shape).astype(np.float32)):
        np.testing.assert_array_equal(rank_values(values), rankdata(values, axis=-1))
    if RANDOM.random(shape).size > 9:
        values = RANDOM.random(shape)
        values[1, ..., 2] = np.nan
        np.testing.assert_array_equal(rank_values(values), rankdata(values, axis=-1))


def test_kmeans_finds_clusters_that_are_apart() -> None:
    centres = np.array([[0, 0], [9, 0], [0, 9]], float)
    gold = RANDOM.integers(0, 3, 90)
    rows = centres[gold] + RANDOM.normal(size=(90, 2)) * 0.3
    found = kmeans(rows, 3, np.random.default_rng(0))
    assert len(np.unique(found.labels + 3 * gold)) == 3
    by_hand = ((rows - found.centres[found.labels]) ** 2).sum()
    assert found.inertia == pytest.approx(by_hand)


def test_kmeans_agrees_with_scikit_learn_from_the_same_start() -> None:
    cluster = pytest.importorskip("sklearn.cluster")
    rows, weights = RANDOM.normal(size=(200, 5)), RANDOM.integers(1, 5, 200).astype(float)
    start = rows[:7].copy()
    ours = kmeans(rows, 7, np.random.default_rng(0), weights=weights, centres=start, n_rounds=300)
    theirs = cluster.KMeans(7, init=start, n_init=1, max_iter=300, tol=0).fit(rows, sample_weight=weights)
    assert np.array_equal(ours.labels, theirs.labels_)
    assert ours.centres == pytest.approx(theirs.cluster_centers_)
    assert ours.inertia == pytest.approx(theirs.inertia_)


def test_an_empty_cluster_takes_the_farthest_row_or_stays() -> None:
    rows = np.array([[0.0], [0.1], [0.2], [5.0]])
    start = np.array([[0.1], [100.0]])
    assert len({*kmeans(rows, 2, np.random.default_rng(0), centres=start, empty="farthest").labels.tolist()}) == 2
    stays = kmeans(rows, 2, np.random.default_rng(0), centres=start)
    assert stays.labels.tolist() == [0] * 4
    assert stays.centres[1] == 100


def test_spherical_centres_have_length_one() -> None:
    rows = unit_rows(RANDOM.normal(size=(60, 4)))
    found = kmeans(rows, 4, np.random.default_rng(1), spherical=True)
    assert np.linalg.norm(found.centres, axis=1) == pytest.approx(1)
    assert np.array_equal(found.labels, (rows @ found.centres.T).argmax(1))
