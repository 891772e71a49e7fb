"""Senses: clusters of a word's states, found where they are, and read from a folder with their examples."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import kurtosis, skew

from stillvec import Vocabulary, WordVectors
from stillvec.errors import FormatError, UsageError
from stillvec.formats import load, write_folder
from stillvec.formats.tensors import write_tensors
from stillvec.learners.senses import TEXTS, Senses, encode_texts, map_space, measure_bimodality, shorten_axes
from stillvec.numerics import unit_rows
from stillvec.search.sense_neighbours import find_near
from stillvec.sense_table import SenseTable
from stillvec.statistics import KEYS, SIZE, WORDS, Statistics


def make_sample() -> Statistics:
    """40 contexts of each of two words in 16 dimensions: those of the first are around two directions, 25 and 15."""
    generator = np.random.default_rng(0)
    centres = 3 * np.eye(16)
    rows = [*[centres[0]] * 25, *[centres[1]] * 15, *[centres[2]] * 40] + generator.normal(size=(80, 16)) * 0.2 + 1
    lengths = np.linalg.norm(rows, axis=1)
    texts = [f"text {number} é" for number in range(80)]
    arrays = {WORDS: np.repeat(np.arange(2, dtype=np.int32), 40), KEYS: np.arange(80), SIZE: np.array([64])}
    arrays |= {"sample:states": (rows / lengths[:, None]).astype(np.float16), "sample:lengths": lengths}
    return Statistics(Vocabulary(["bank", "river"], [40, 40]), arrays | {TEXTS: encode_texts(texts)})


def test_senses_are_the_means_of_the_clusters_and_most_words_have_one(tmp_path: Path) -> None:
    sample = make_sample()
    result = Senses().finish({"sample": sample})
    states = sample["sample:states"].astype(np.float32) * sample["sample:lengths"][:, None]
    assert np.allclose(result.vectors["bank"], states[:40].mean(0), atol=1e-3)
    write_folder(result.vectors, tmp_path / "out", {})
    senses = load(tmp_path / "out").senses
    assert senses is not None
    assert (senses.words, len(senses), senses.find("river")) == (["bank"], 2, [])
    first, second = senses.find("bank")
    assert (first.number, first.share, second.share) == (1, 25 / 40, 15 / 40)
    assert np.allclose(first.vector, states[:25].mean(0), atol=1e-3)
    assert np.allclose(second.vector, states[25:40].mean(0), atol=1e-3)
    assert {int(text.split()[1]) for text in first.examples} < {*range(25)}
    assert {int(text.split()[1]) for text in second.examples} < {*range(25, 40)}


def test_bimodality_is_that_of_a_slow_loop() -> None:
    units = unit_rows(np.random.default_rng(1).normal(size=(9, 4)), np.float64)
    labels = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2])
    coefficients = []
    for one, other in ((0, 1), (0, 2), (1, 2)):
        places = []
        for row in np.flatnonzero((labels == one) | (labels == other)):
            means = [units[[at for at in np.flatnonzero(labels == each) if at != row]].mean(0) for each in (one, other)]
            cosines = [units[row] @ mean / np.linalg.norm(mean) for mean in means]
            places.append(cosines[0] - cosines[1])
        coefficients.append((skew(places) ** 2 + 1) / kurtosis(places, fisher=False))
    assert measure_bimodality(units, labels) == pytest.approx(min(coefficients))


def test_two_points_are_bimodal_and_halves_of_a_normal_cluster_are_not() -> None:
    labels = np.repeat([0, 1], 100)
    assert measure_bimodality(np.repeat(np.eye(2), 100, axis=0), labels) == pytest.approx(1)
    rows = np.random.default_rng(0).normal(size=(200, 300))
    units = unit_rows(rows[np.argsort(rows[:, 0])], np.float64)  # halves along the first axis
    assert measure_bimodality(units, labels) < 5 / 9


def test_axes_are_shortened_by_the_moments_of_differences_from_means() -> None:
    rows = np.random.default_rng(2).normal(size=(500, 3)) * [10, 1, 0.1]
    axes = shorten_axes(rows.T @ rows)
    variances = np.var(rows @ axes, axis=0)
    assert np.all(np.diff(variances) < 0)
    factor = ((1 / 33.67 + 0.1) / (100 / 33.67 + 0.1)) ** 0.5  # of variances; the mean of the eigenvalues is 33.67
    assert variances[0] / variances[1] == pytest.approx(100 * factor, rel=0.1)
    unchanged = shorten_axes(np.zeros((3, 3)))
    assert np.allclose(unchanged.T @ unchanged, np.eye(3))


@pytest.mark.parametrize("setting", [{"senses": 1}, {"least_share": 0.5}, {"least_contexts": 16}, {"bimodality": 1.0}])
def test_a_word_has_one_vector_where_a_limit_forbids_more(setting: dict[str, float]) -> None:
    result = Senses(**setting).finish({"sample": make_sample()})  # type: ignore[arg-type]
    assert result.notes == {"ambiguous_words": 0, "senses": 0}


def test_texts_are_cut_between_characters() -> None:
    assert bytes(encode_texts(["é" * 200])[0]).decode() == "é" * 96
    assert bytes(encode_texts([" a "])[0]).rstrip(b"\0") == b"a"


def test_folders_without_senses_have_none_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    write_folder(WordVectors(["a"], [[1.0, 2.0]]), tmp_path / "plain", {})
    assert load(tmp_path / "plain").senses is None
    senses = SenseTable(Vocabulary(["a"]), [0, 0], np.ones((2, 2)), [0.5, 0.5], np.zeros((2, 1, 8), np.uint8))
    write_folder(WordVectors(["a"], [[1.0, 2.0]], senses=senses), tmp_path / "damaged", {})
    assert len(load(tmp_path / "damaged").senses or ()) == 2
    write_tensors(tmp_path / "damaged" / "model.safetensors", {"senses.words": np.array([0])})
    with pytest.raises(FormatError):
        load(tmp_path / "damaged")


@pytest.mark.parametrize(
    "changed",
    [
        {"rows": [0, 7]},
        {"rows": [-1, 0]},
        {"rows": [0.5, 1]},
        {"rows": [0]},
        {"matrix": np.full((2, 2), np.nan)},
        {"matrix": np.ones(2)},
        {"examples": np.zeros((2, 1, 8))},
    ],
)
def test_arrays_that_are_no_senses_are_refused(changed: dict[str, Any]) -> None:
    arrays = {
        "rows": [0, 0],
        "matrix": np.ones((2, 2)),
        "shares": [0.5, 0.5],
        "examples": np.zeros((2, 1, 8), np.uint8),
    }
    SenseTable(Vocabulary(["a"]), **arrays)
    with pytest.raises(UsageError):
        SenseTable(Vocabulary(["a"]), **{**arrays, **changed})


def test_senses_stay_with_their_words() -> None:
    vectors = Senses().finish({"sample": make_sample()}).vectors
    assert vectors.senses is not None
    chosen = vectors.subset(["river", "bank"])
    assert chosen.senses is not None
    np.testing.assert_array_equal(chosen.senses.find("bank")[1].vector, vectors.senses.find("bank")[1].vector)
    assert chosen.senses.find("bank")[0].examples == vectors.senses.find("bank")[0].examples
    assert vectors.subset(["river"]).senses is None
    again = pickle.loads(pickle.dumps(vectors))
    assert again.senses.words == ["bank"]
    assert vectors.with_matrix(vectors.matrix).senses is None
    assert (vectors.senses.find("unknown"), vectors.senses.find("river")) == ([], [])


def test_in_another_space_senses_are_the_word_and_the_mapped_difference() -> None:
    """A linear image of the means: the map is found, and senses are where the means of their clusters are mapped to."""
    sample = make_sample()
    own = Senses().finish({"sample": sample}).vectors
    generator = np.random.default_rng(2)
    image = generator.normal(size=(16, 16)).astype(np.float32)
    moved, notes = Senses().finish_in(WordVectors(sample.vocabulary, own.matrix @ image), sample)
    assert notes == {"ambiguous_words": 1, "senses": 2}
    assert moved.senses is not None
    assert own.senses is not None
    w = map_space(own.matrix, own.matrix @ image)
    for got, before in zip(moved.senses.find("bank"), own.senses.find("bank"), strict=True):
        expected = own["bank"] @ image + (before.vector - own["bank"]) @ w
        assert float(unit_rows(got.vector) @ unit_rows(expected)) == pytest.approx(1, abs=1e-5)
        assert np.linalg.norm(got.vector) == pytest.approx(np.linalg.norm(moved["bank"]), rel=1e-5)
        assert got.examples == before.examples


def test_the_map_between_spaces_is_the_least_squares_one() -> None:
    generator = np.random.default_rng(3)
    means, image = generator.normal(size=(300, 6)), generator.normal(size=(6, 4))
    np.testing.assert_allclose(map_space(means, means @ image + 2), image, rtol=0.05, atol=0.03)


def test_words_near_a_sense_are_no_forms_of_its_word_or_of_each_other() -> None:
    words = ["bank", "banks", "river", "rivers", "money", "the", "of", "and", "to"]
    rows = [[2, 2], [2, 2], [2, 0], [3, 1], [0, 1], [-1, -1], [-1, -2], [-2, -1], [-1, 0]]
    senses = SenseTable(Vocabulary(words), [0, 0], np.eye(2), [0.5, 0.5], np.zeros((2, 1, 8), np.uint8))
    vectors = WordVectors(words, np.array(rows, float), senses=senses)
    first, second = senses.find("bank")
    assert [word for word, _ in find_near(vectors, first, 2)] == ["river", "money"]
    assert [word for word, _ in find_near(vectors, second, 1)] == ["money"]
