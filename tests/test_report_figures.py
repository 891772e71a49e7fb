"""What figures stand on: t-SNE against its own definition and scikit-learn, scales, and markup."""

from __future__ import annotations

import numpy as np
import pytest
from exact_tsne import affinities, divergence, squared_distances

from stillvec.numerics import principal_plane
from stillvec.numerics.tsne import embed_points
from stillvec.report.html_markup import Html, element
from stillvec.report.html_tables import number, points
from stillvec.report.score_curves import short
from stillvec.report.svg import Scale


def clusters(n: int = 12, d: int = 10) -> np.ndarray:
    generator = np.random.default_rng(2)
    return np.concatenate([generator.standard_normal((n, d)) + 12 * np.eye(d)[at] for at in range(3)])


def test_the_gradient_of_tsne_is_that_of_finite_differences() -> None:
    shares = affinities(squared_distances(clusters(4)), 3)
    places = np.random.default_rng(0).standard_normal((12, 2))
    _, slope = divergence(places, shares)
    for row, axis in ((0, 0), (3, 1), (11, 0)):
        step = np.zeros_like(places)
        step[row, axis] = 1e-6
        wanted = (divergence(places + step, shares)[0] - divergence(places - step, shares)[0]) / 2e-6
        assert slope[row, axis] == pytest.approx(wanted, rel=1e-5, abs=1e-9)


def test_affinities_have_the_requested_perplexity() -> None:
    distances = squared_distances(clusters(5))
    shares = affinities(distances, 4)
    assert shares.sum() == pytest.approx(1)
    np.testing.assert_allclose(shares, shares.T)
    sklearn = pytest.importorskip("sklearn.manifold._t_sne")
    from scipy.spatial.distance import squareform

    wanted = squareform(sklearn._joint_probabilities(distances.astype(np.float32), 4, 0))
    np.testing.assert_allclose(shares, wanted, atol=2e-5)


def test_tsne_keeps_clusters_apart_and_comes_out_the_same() -> None:
    places = embed_points(clusters())
    np.testing.assert_array_equal(places, embed_points(clusters()))
    distances = squared_distances(places.astype(np.float64)) + np.diag([np.inf] * 36)
    assert (distances.argmin(axis=1) // 12 == np.arange(36) // 12).all()
    manifold = pytest.importorskip("sklearn.manifold")
    shares = affinities(squared_distances(clusters()), 8)
    rival = manifold.TSNE(perplexity=8, init="pca", method="exact", random_state=0).fit_transform(clusters())
    assert divergence(places.astype(np.float64), shares)[0] < divergence(np.asarray(rival, np.float64), shares)[0] + 0.1


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
def test_a_few_points_or_equal_ones_have_places(n: int) -> None:
    assert np.isfinite(embed_points(np.random.default_rng(0).standard_normal((n, 3)))).all()
    assert np.isfinite(embed_points(np.ones((n, 3)))).all()


def test_the_principal_plane_is_that_of_scikit_learn_but_for_signs() -> None:
    sklearn = pytest.importorskip("sklearn.decomposition")
    found, wanted = principal_plane(clusters()), sklearn.PCA(2).fit_transform(clusters())
    np.testing.assert_allclose(np.abs(found), np.abs(wanted), atol=1e-8)
    assert principal_plane(np.array([[1.0], [3.0]])).shape == (2, 2)


@pytest.mark.parametrize(
    "values", [(0.55, 0.73), (-0.066, 0.83), (0.5, 0.5), (0.0, 1.0), (0.7001, 0.7002), (-3.0, -1.0)]
)
def test_a_scale_holds_its_values_between_round_ticks(values: tuple[float, float]) -> None:
    scale = Scale.around(values)
    ticks = scale.ticks()
    assert scale.low <= min(values) + 1e-9
    assert scale.high >= max(values) - 1e-9
    assert 2 <= len(ticks) <= 7
    assert all(-1e-6 <= scale(value) <= 100 + 1e-6 for value in (*values, *ticks))
    assert Scale.around([float("nan")]) == Scale(0.0, 1.0)


def test_text_is_escaped_once_and_markup_not_at_all() -> None:
    inside = element("b", "1 < 2 & 3")
    assert inside == "<b>1 &lt; 2 &amp; 3</b>"
    assert element("p", inside, 'a "quote"', title='"><x>', hidden=True, id=None) == (
        '<p title="&quot;&gt;&lt;x&gt;" hidden><b>1 &lt; 2 &amp; 3</b>a &quot;quote&quot;</p>'
    )
    assert element("td", Html("<i></i>"), data_sort=1, class_="num") == '<td data-sort="1" class="num"><i></i></td>'


def test_numbers_are_shown_in_hundredths_with_a_minus_sign() -> None:
    assert [number(value) for value in (0.7149, -0.05, -0.0001, 1.0, float("nan"))] == [
        "71.5",
        "−5.0",
        "0.0",
        "100.0",
        "–",
    ]
    assert [points(value) for value in (0.021, -0.021, -0.0001)] == ["+2.1", "−2.1", "0.0"]
    assert [short(count) for count in (12, 9_800, 296_233, 4_739_736, 2e9)] == ["12", "9.8k", "296k", "4.74M", "2G"]
