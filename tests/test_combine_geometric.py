"""Geometric meta-embeddings: the closed form against a solver, and what the metric and the rotation do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import spearmanr

from stillvec.combination.average import Average
from stillvec.combination.geometric import Geometric, Shared, Spectra
from stillvec.combination.joint_space import JointSpace, join_spaces
from stillvec.errors import UsageError, VocabularyError
from stillvec.vectors import WordVectors

DIM, COUNT = 30, 2000
NAMES = [f"w{number}" for number in range(COUNT)]


def _unit(rows: Any) -> np.ndarray:
    rows = np.asarray(rows, np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _rotation(random: np.random.Generator) -> np.ndarray:
    return np.linalg.qr(random.normal(size=(DIM, DIM)))[0]


def _sources(seed: int, count: int = 2) -> tuple[np.ndarray, list[WordVectors]]:
    """A truth, and noisy rotated copies of it."""
    random = np.random.default_rng(seed)
    truth = random.normal(size=(COUNT, DIM)) * np.linspace(0.9, 0.1, DIM)
    noisy = [(truth + 0.2 * random.normal(size=truth.shape)) @ _rotation(random) for _ in range(count)]
    return truth, [WordVectors(NAMES, _unit(each).astype(np.float32)) for each in noisy]


def _agreement(truth: np.ndarray, vectors: WordVectors) -> float:
    first, second = np.random.default_rng(0).integers(0, COUNT, (2, 4000))
    cosines = [(rows[first] * rows[second]).sum(1) for rows in (_unit(truth), _unit(vectors.matrix))]
    return float(spearmanr(*cosines)[0])


def _latent(method: Geometric, *spaces: WordVectors) -> list[np.ndarray]:
    both: JointSpace = join_spaces(spaces, "intersection")
    return [_unit(space[both.vocabulary.words] @ each) for space, each in zip(spaces, method.fit(both), strict=True)]


@pytest.mark.parametrize("method", [Geometric(), Geometric(ridge=10.0), Geometric(metric=False)], ids=repr)
@pytest.mark.parametrize("change", ["negative", "permuted"])
def test_a_space_that_is_only_turned_falls_together_with_itself(method: Geometric, change: str) -> None:
    rows = _sources(1)[1][0].matrix
    other = -rows if change == "negative" else rows[:, np.random.default_rng(2).permutation(DIM)]
    pair = WordVectors(NAMES, rows), WordVectors(NAMES, other)
    x, z = _latent(method, *pair)
    assert (x * z).sum(1).min() > 0.999
    if change == "negative":
        assert np.abs(Average()(*pair).matrix).max() < 1e-6
    else:
        assert abs((_unit(rows) * _unit(other)).sum(1).mean()) < 0.1


def _objective(w: np.ndarray, x: np.ndarray, z: np.ndarray, ridge: float) -> tuple[float, np.ndarray]:
    """‖X W Zᵀ - I‖² + C ‖W‖² and its gradient, by the n x n matrix that the closed form avoids."""
    rest = x @ w @ z.T - np.eye(len(x))
    return float((rest**2).sum() + ridge * (w**2).sum()), 2 * (x.T @ rest @ z + ridge * w)


@pytest.mark.parametrize("ridge", [0.01, 1.0, 1e3])
@pytest.mark.parametrize("other", [5, 8])
def test_the_closed_form_is_the_minimum(ridge: float, other: int) -> None:
    random = np.random.default_rng(3)
    x, z = random.normal(size=(60, 5)), random.normal(size=(60, other))
    found = Spectra(Shared(x.T @ x, z.T @ z, x.T @ z)).solution(ridge)
    value, gradient = _objective(found, x, z, ridge)
    assert np.linalg.norm(gradient) < 1e-10 * np.linalg.norm(2 * x.T @ z)

    def flat(w: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = _objective(w.reshape(5, other), x, z, ridge)
        return value, slope.ravel()

    solver = minimize(flat, np.zeros(5 * other), jac=True, method="L-BFGS-B", options={"maxiter": 500})
    assert value <= solver.fun + 1e-9
    assert value == pytest.approx(solver.fun, rel=1e-4)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_noisy_rotated_sources_are_better_together(seed: int) -> None:
    """The numbers of sheet 06: geometric ≥ .94, plain average ≤ .84, one source alone ≤ .92."""
    truth, pair = _sources(seed)
    assert _agreement(truth, Geometric(ridge=1e4)(*pair)) >= 0.94
    assert _agreement(truth, Average()(*pair)) <= 0.84
    assert _agreement(truth, pair[0]) <= 0.92
    assert _agreement(truth, Geometric(metric=False)(*pair)) >= 0.95


@pytest.mark.parametrize("output", ["average", "concat"])
def test_a_ridge_chosen_from_the_data_is_near_the_best(output: Any) -> None:
    truth, pair = _sources(4)
    tried = [_agreement(truth, Geometric(output, ridge=10.0**power)(*pair)) for power in range(1, 8)]
    assert _agreement(truth, Geometric(output)(*pair)) > max(tried) - 0.005
    assert max(tried) > min(tried) + 0.05


def test_a_large_direction_of_only_one_space_gets_little_weight() -> None:
    """Each space has loud directions of its own; a ridge that keeps them foretells only the space itself."""
    random = np.random.default_rng(9)
    truth = random.normal(size=(COUNT, 10)) * np.linspace(1, 0.3, 10)
    pair = []
    for _ in range(2):
        loud = np.hstack([truth, 4 * random.normal(size=(COUNT, 5)), 0.2 * random.normal(size=(COUNT, DIM - 15))])
        pair.append(WordVectors(NAMES, (loud + 0.1 * random.normal(size=loud.shape)) @ _rotation(random)))
    tried = [_agreement(truth, Geometric(ridge=10.0**power)(*pair)) for power in range(-1, 8)]
    chosen = _agreement(truth, Geometric()(*pair))
    assert chosen > max(tried) - 0.02
    assert chosen > _agreement(truth, Geometric(metric=False)(*pair)) + 0.1


def test_a_direction_that_all_words_share_does_not_distort_the_ridge() -> None:
    """As real spaces have one, and more of it the rarer a word: their cosines foretell one another by it alone."""
    random = np.random.default_rng(10)
    truth = random.normal(size=(COUNT, DIM)) * np.linspace(0.9, 0.3, DIM)
    common = np.linspace(0, 4, COUNT)[:, None]
    pair = []
    for _ in range(2):
        rows = truth + 0.4 * random.normal(size=truth.shape)
        pair.append(WordVectors(NAMES, (rows + common * random.normal(size=DIM)) @ _rotation(random)))
    tried = [_agreement(truth, Geometric(ridge=10.0**power)(*pair)) for power in range(-1, 8)]
    assert _agreement(truth, Geometric()(*pair)) > max(tried) - 0.1
    assert max(tried) > min(tried) + 0.2


def test_a_third_space_helps_and_outputs_have_their_widths() -> None:
    truth, three = _sources(5, 3)
    two = _agreement(truth, Geometric()(*three[:2]))
    assert _agreement(truth, Geometric()(*three)) > two + 0.003
    assert Geometric(output="concat")(*three).dim == 3 * DIM
    assert _agreement(truth, Geometric(output="concat", metric=False)(*three)) > two


def test_words_that_one_space_lacks_have_the_mean_of_the_others() -> None:
    _, pair = _sources(6)
    short = pair[1].subset(NAMES[:1500])
    made, ends = Geometric()(pair[0], short), Geometric(output="concat")(pair[0], short)
    assert made.words == tuple(NAMES)
    maps = Geometric().fit(join_spaces([pair[0], short], "union"))
    expected = _unit(pair[0][NAMES[1999:]] @ maps[0])[0]
    assert np.allclose(made[NAMES[1999]], expected, atol=1e-5)
    assert np.allclose(ends[NAMES[1999]], np.tile(expected, 2), atol=1e-5)


@pytest.mark.parametrize(("metric", "width"), [(True, 12), (False, 30)])
def test_spaces_of_different_dimensions_meet(metric: bool, width: int) -> None:
    """Twelve directions of thirty are kept by the one; the rotation does not lose the others."""
    truth, pair = _sources(7)
    narrow = WordVectors(NAMES, (truth[:, :12] @ np.linalg.qr(np.random.default_rng(8).normal(size=(12, 12)))[0]))
    made = Geometric(metric=metric)(pair[0], narrow)
    assert made.dim == width
    assert _agreement(truth, made) > 0.85
    if not metric:
        x, _ = _latent(Geometric(metric=False), pair[0], narrow)
        assert np.allclose(x @ x.T, _unit(pair[0].matrix) @ _unit(pair[0].matrix).T, atol=1e-5)


def test_nothing_that_ties_the_spaces_is_said() -> None:
    with pytest.raises(VocabularyError, match="Set 2"):
        Geometric()(WordVectors(["a"], [[1.0]]), WordVectors(["b"], [[1.0]]))


@pytest.mark.parametrize("ridge", [0.0, -1.0, float("nan")])
def test_a_ridge_of_nothing_is_refused(ridge: float) -> None:
    with pytest.raises(UsageError, match="above 0"):
        Geometric(ridge=ridge)
