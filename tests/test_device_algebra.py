"""A GPU's way through the tables of words gives what NumPy's gives; here its tensors are on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from stillvec.learners import auto, device_algebra  # noqa: E402
from stillvec.learners.accumulators import WordMeans  # noqa: E402
from stillvec.learners.auto import Auto  # noqa: E402
from stillvec.learners.device_algebra import (  # noqa: E402
    find_largest,
    pair_values,
    place,
    reduce_dimensions,
    spread,
    unit,
)
from stillvec.statistics import Statistics  # noqa: E402
from stillvec.vocabulary import Vocabulary  # noqa: E402

RANDOM = np.random.default_rng(5)
WORDS = Vocabulary([f"w{number}" for number in range(120)], range(120, 0, -1))
MATRIX = (RANDOM.normal(size=(120, 12)) * np.geomspace(9, 0.5, 12) + 1).astype(np.float32)


@pytest.fixture
def on_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (auto, device_algebra):
        monkeypatch.setattr(module, "place", lambda array: torch.from_numpy(np.array(array)))


def test_tensors_are_spread_reduced_and_scaled_as_arrays() -> None:
    tensor, rows = torch.from_numpy(MATRIX), np.array([5, 3, 77])
    with_zero = MATRIX.copy()
    with_zero[4] = 0
    np.testing.assert_allclose(unit(torch.from_numpy(with_zero)).numpy(), unit(with_zero), atol=1e-6)
    np.testing.assert_allclose(spread(tensor, WORDS).numpy(), spread(MATRIX, WORDS), atol=1e-4)
    np.testing.assert_allclose(reduce_dimensions(tensor, 4).numpy(), reduce_dimensions(MATRIX, 4), atol=1e-3)
    if not torch.cuda.is_available():
        np.testing.assert_array_equal(spread(place(MATRIX), WORDS, rows), spread(MATRIX, WORDS)[rows])


def _statistics() -> dict[str, Statistics]:
    def tables(layers: range) -> dict[str, Any]:
        latent = RANDOM.normal(size=(120, 12))
        noisy = {f"sum:layer-{n}": latent + RANDOM.normal(size=(120, 12)) * 0.4 for n in layers}
        return {name: table.astype(np.float32) for name, table in noisy.items()} | {"sum:contexts": np.full(120, 2)}

    sentences = {
        "sum:products": RANDOM.normal(size=(120, 12)).astype(np.float32),
        "ragged:words": RANDOM.integers(0, 120, 400).astype(np.int32),
        "ragged:shares": np.full(400, 0.25, np.float32),
        "ragged:lengths": np.full(100, 4, np.int32),
    }
    arrays = {"states": tables(range(4)), "templates": tables(range(1, 4)), "sentences": sentences}
    return {name: Statistics(WORDS, values) for name, values in arrays.items()}


def test_auto_finishes_on_tensors_as_on_arrays(request: pytest.FixtureRequest) -> None:
    statistics = _statistics()
    learner = Auto(dim=9)
    arrays = learner.finish(statistics)
    request.getfixturevalue("on_tensors")
    tensors = learner.finish(statistics)
    assert tensors.notes == arrays.notes
    assert isinstance(tensors.vectors.matrix, np.ndarray)
    cosines = tensors.vectors.matrix @ tensors.vectors.matrix.T, arrays.vectors.matrix @ arrays.vectors.matrix.T
    np.testing.assert_allclose(*cosines, atol=2e-3)


def test_means_that_are_maxima_are_placed_as_they_are(on_tensors: None) -> None:
    table = MATRIX.copy()
    table[3] = -np.inf  # never read
    means = WordMeans(Statistics(WORDS, {"max:layer-2": table, "sum:contexts": np.ones(120)}))
    np.testing.assert_array_equal(device_algebra.place_means(means, 2).numpy(), means[2])


def test_the_largest_are_those_of_a_stable_sort() -> None:
    values = RANDOM.integers(0, 50, 5000).astype(np.float32)
    for number in (1, 700, 5000, 6000):
        order = np.argsort(-values, kind="stable")[:number]
        np.testing.assert_array_equal(find_largest(values, number), order)
        tensor = torch.from_numpy(values)
        np.testing.assert_array_equal(tensor[find_largest(tensor, number)].numpy(), values[order])


def test_pairs_of_a_tensor_come_in_the_order_of_those_of_an_array() -> None:
    table = MATRIX[:30] @ MATRIX[:30].T
    np.testing.assert_array_equal(pair_values(torch.from_numpy(table)).numpy(), pair_values(table))


def test_the_first_direction_is_found_where_the_second_is_nearly_as_strong() -> None:
    axes = np.linalg.qr(RANDOM.normal(size=(12, 12)))[0]
    table = np.concatenate([np.diag([100.0, 99.99, *np.ones(10)]), -np.diag([100.0, 99.99, *np.ones(10)])]) @ axes.T
    spread_table = spread(torch.from_numpy(table.astype(np.float32)), WORDS).numpy()
    assert np.abs(spread_table @ axes[:, 0]).max() < 2e-3
    assert np.abs(spread_table @ axes[:, 1]).max() > 0.99
