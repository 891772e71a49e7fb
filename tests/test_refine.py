"""Steps of refining: every one keeps the contract, and says what numpy and scikit-learn say."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.preprocessing import normalize

from stillvec.errors import UsageError
from stillvec.refinement import STEPS
from stillvec.refinement.all_but_the_top import AllButTheTop
from stillvec.refinement.center import Center
from stillvec.refinement.normalize import Normalize
from stillvec.refinement.pca import Pca, principal_directions
from stillvec.registry import settings_from
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

WORDS = [f"word{number}" for number in range(60)]
SMALL: dict[str, dict[str, object]] = {  # settings for a space of 12 dimensions; files are written where they are named
    "attributes": {"lexicon": ""},
    "auto": {"pairs": ""},
    "select_dims": {"dim": 4},
    "pca": {"dim": 4},
    "retrofit": {"lexicon": ""},
    "graph_retrofit": {"lexicon": ""},
    "text_pairs": {"on": ""},
}


@pytest.fixture
def vectors() -> WordVectors:
    """Correlated, off centre, one row of zeros."""
    random = np.random.default_rng(0)
    matrix = (random.normal(size=(60, 12)) * np.linspace(5, 0.1, 12) @ random.normal(size=(12, 12)) + 3).astype(
        np.float32
    )
    matrix[7] = 0
    return WordVectors(Vocabulary(WORDS, range(60, 0, -1)), matrix)


@pytest.fixture(params=[*STEPS])
def step(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    name = str(request.param)
    (tmp_path / "lexicon.txt").write_text("word1 word2 word7\nword30 word2\na b\n")
    known = [f"word{row} word{3 * row % 59} {row % 7}\na b {row % 3}\n" for row in range(60)]
    (tmp_path / "pairs.txt").write_text("".join(known))
    texts = [f"word{row} a\tword{row + 1} b\n" for row in range(50)]
    (tmp_path / "texts.tsv").write_text("".join(texts))
    files = {name: str(tmp_path / f"{name}.txt") for name in ("lexicon", "pairs")} | {"on": str(tmp_path / "texts.tsv")}
    if name == "attributes":
        lines = [f"word{row}\tkind{row % 3} group{row % 7}\n" for row in range(60)]
        (tmp_path / "lexicon.txt").write_text("".join(lines))
    needed = {key: files.get(key, value) for key, value in SMALL.get(name, {}).items()}
    return settings_from(STEPS[name], needed)


def test_a_step_never_changes_its_input(step: Any, vectors: WordVectors) -> None:
    before = vectors.matrix.copy()
    after = step(vectors)
    assert np.array_equal(vectors.matrix, before)
    assert not np.shares_memory(after.matrix, vectors.matrix)


def test_a_step_keeps_the_words_and_gives_each_a_finite_row(step: Any, vectors: WordVectors) -> None:
    after = step(vectors)
    assert after.vocabulary == vectors.vocabulary
    assert len(after.matrix) == len(WORDS)
    assert np.isfinite(after.matrix).all()
    assert after.matrix.dtype == np.float32


def test_a_step_gives_the_same_bytes_twice(step: Any, vectors: WordVectors) -> None:
    assert step(vectors).matrix.tobytes() == step(vectors).matrix.tobytes()


def test_a_step_stands_vectors_that_are_all_alike(step: Any) -> None:
    after = step(WordVectors(Vocabulary(["a", "b", "c"], [3, 2, 1]), np.ones((3, 12), np.float32)))
    assert np.isfinite(after.matrix).all()


def test_a_step_takes_vectors_that_cannot_be_written_to(step: Any, vectors: WordVectors, tmp_path: Any) -> None:
    """As they come from a memory map."""
    np.save(tmp_path / "matrix.npy", vectors.matrix)
    mapped = WordVectors(vectors.vocabulary, np.load(tmp_path / "matrix.npy", mmap_mode="r"))
    assert np.array_equal(step(mapped).matrix, step(vectors).matrix)


def test_a_step_keeps_the_provenance(step: Any, vectors: WordVectors) -> None:
    made = vectors.with_provenance({"method": "auto", "teacher": {"name": "t"}})
    assert step(made).provenance == made.provenance


def test_settings_of_a_step_come_back(step: Any) -> None:
    assert settings_from(type(step), dataclasses.asdict(step)) == step


def test_center_takes_the_mean_out(vectors: WordVectors) -> None:
    assert np.allclose(Center()(vectors).matrix, vectors.matrix - vectors.matrix.mean(0), atol=1e-4)


def test_unit_is_what_scikit_learn_does_and_leaves_zeros(vectors: WordVectors) -> None:
    after = Normalize()(vectors).matrix
    assert np.allclose(after, normalize(vectors.matrix), atol=1e-6)
    assert not after[7].any()


@pytest.mark.parametrize("dim", [1, 4, 12])
def test_pca_is_what_scikit_learn_does_up_to_signs(dim: int, vectors: WordVectors) -> None:
    after = Pca(dim)(vectors).matrix
    wanted = PCA(dim, svd_solver="full").fit_transform(vectors.matrix.astype(np.float64))
    assert after.shape == (60, dim)
    signs = np.sign((after * wanted).sum(0))
    assert np.allclose(after * signs, wanted, atol=1e-3 * np.abs(wanted).max())


def test_pca_to_the_whole_dimension_keeps_every_distance(vectors: WordVectors) -> None:
    before, after = Center()(vectors).matrix, Pca(12)(vectors).matrix
    assert np.allclose(after @ after.T, before @ before.T, rtol=1e-3, atol=0.05)


def test_pca_works_with_fewer_words_than_dimensions() -> None:
    few = WordVectors(["a", "b", "c"], np.random.default_rng(1).normal(size=(3, 12)))
    after = Pca(6)(few).matrix
    assert np.isfinite(after).all()
    assert np.allclose(after[:, 2:], 0, atol=1e-5)


@pytest.mark.parametrize("directions", [0, 1, 3, 11])
def test_all_but_the_top_takes_out_the_first_directions(directions: int, vectors: WordVectors) -> None:
    after = AllButTheTop(directions)(vectors).matrix
    centred = vectors.matrix.astype(np.float64) - vectors.matrix.astype(np.float64).mean(0)
    axes = PCA(12, svd_solver="full").fit(vectors.matrix.astype(np.float64)).components_[:directions]
    assert np.allclose(after, centred - centred @ axes.T @ axes, atol=1e-3)
    assert np.linalg.matrix_rank(after, tol=1e-2) == 12 - directions


@pytest.mark.parametrize(
    "wrong", [Pca(0), Pca(13), Pca(-1), AllButTheTop(12), AllButTheTop(-1)], ids=lambda step: repr(step)
)
def test_what_the_dimensions_do_not_allow_is_refused(wrong: Any, vectors: WordVectors) -> None:
    with pytest.raises(UsageError, match=r"xpected [01] to 1[12]"):
        wrong(vectors)


def test_an_unknown_step_gets_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="did you mean 'center'"):
        STEPS["centre"]


def test_the_signs_of_directions_are_settled(vectors: WordVectors) -> None:
    """The solver's signs are chance; the largest number of a direction is positive."""
    variances, directions = principal_directions(Center()(vectors).matrix)
    assert (directions[np.abs(directions).argmax(0), np.arange(12)] > 0).all()
    assert (np.diff(variances) <= 0).all()
