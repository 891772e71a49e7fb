"""Methods of combining: every one keeps the contract, and says what a slow second way says."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
import scipy.linalg

from stillvec.combination import COMBINERS
from stillvec.combination.average import Average
from stillvec.combination.concat import Concat
from stillvec.combination.gcca import Gcca
from stillvec.combination.joint_space import join_spaces
from stillvec.combination.svd import Svd
from stillvec.errors import UsageError, VocabularyError
from stillvec.registry import settings_from
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

WORDS = [f"word{number}" for number in range(80)]


def _space(first: int, last: int, dim: int, seed: int) -> WordVectors:
    """Some of the words, most frequent first; related to the other spaces, and off centre."""
    shared = np.random.default_rng(0).normal(size=(80, 6))
    random = np.random.default_rng(seed)
    matrix = shared @ random.normal(size=(6, dim)) + 0.3 * random.normal(size=(80, dim)) + 0.5
    return WordVectors(
        Vocabulary(WORDS[first:last], range(200 - first, 200 - last, -1)), matrix[first:last].astype("f4")
    )


@pytest.fixture
def spaces() -> list[WordVectors]:
    return [_space(0, 60, 9, 1), _space(20, 80, 7, 2), _space(10, 70, 8, 3)]


@pytest.fixture(params=[name for name in COMBINERS if name != "attention"])
def method(request: pytest.FixtureRequest) -> Any:
    return COMBINERS[str(request.param)]


def _cosines(vectors: WordVectors) -> np.ndarray:
    rows = vectors.matrix.astype(np.float64)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows @ rows.T


def _unit(vectors: WordVectors) -> dict[str, np.ndarray]:
    rows = vectors.matrix.astype(np.float64)
    return dict(zip(vectors.words, rows / np.linalg.norm(rows, axis=1, keepdims=True), strict=True))


@pytest.mark.parametrize(("words", "first", "last"), [("union", 0, 80), ("intersection", 20, 60)])
def test_a_method_gives_each_word_a_finite_row_in_order(
    method: Any, words: str, first: int, last: int, spaces: list[WordVectors]
) -> None:
    made = settings_from(method, {"words": words})(*spaces)
    assert list(made.words) == WORDS[first:last]
    assert made.vocabulary.counts.tolist() == [200 - number for number in range(first, last)]
    assert len(made.matrix) == last - first
    assert made.matrix.dtype == np.float32
    assert np.isfinite(made.matrix).all()
    assert (np.linalg.norm(made.matrix, axis=1) > 0).all()


def test_a_method_never_changes_its_inputs(method: Any, spaces: list[WordVectors]) -> None:
    before = [space.matrix.copy() for space in spaces]
    made = method()(*spaces)
    for space, matrix in zip(spaces, before, strict=True):
        assert np.array_equal(space.matrix, matrix)
        assert not np.shares_memory(made.matrix, space.matrix)


def test_a_method_says_what_each_space_was(method: Any, spaces: list[WordVectors]) -> None:
    first = spaces[0].with_provenance({"method": "auto", "teacher": {"name": "t"}, "words": 7, "seed": 3})
    combined = method()(first, spaces[1]).provenance["combined"]
    assert combined[0] == {"method": "auto", "teacher": {"name": "t"}, "words": 60, "dim": 9}
    assert combined[1] == {"words": 60, "dim": 7}


def test_a_method_gives_the_same_bytes_twice(method: Any, spaces: list[WordVectors]) -> None:
    assert method()(*spaces).matrix.tobytes() == method()(*spaces).matrix.tobytes()


def test_a_method_takes_two_spaces_in_half_precision(method: Any, spaces: list[WordVectors]) -> None:
    halves = [WordVectors(space.vocabulary, space.matrix.astype(np.float16)) for space in spaces[:2]]
    made, exact = method()(*halves), method()(*spaces[:2])
    assert made.matrix.dtype == np.float32
    assert np.abs(_cosines(made) - _cosines(exact)).max() < 0.05


def test_a_method_stands_vectors_that_are_all_alike_or_zero(method: Any) -> None:
    alike = WordVectors(["a", "b", "c"], np.ones((3, 4), np.float32))
    nothing = WordVectors(["a", "b", "d"], np.zeros((3, 4), np.float32))
    for pair in ((alike, alike), (alike, nothing), (nothing, nothing)):
        assert np.isfinite(method()(*pair).matrix).all()


def test_settings_of_a_method_are_frozen_and_come_back_from_json(method: Any) -> None:
    settings = method()
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.words = "intersection"
    assert settings_from(method, json.loads(json.dumps(dataclasses.asdict(settings)))) == settings


def test_one_space_alone_is_refused(method: Any, spaces: list[WordVectors]) -> None:
    with pytest.raises(UsageError, match="two or more"):
        method()(spaces[0])


def test_spaces_without_a_common_word_have_no_intersection(method: Any) -> None:
    pair = WordVectors(["a"], [[1.0, 2.0]]), WordVectors(["b"], [[1.0, 2.0]])
    with pytest.raises(VocabularyError, match="no word in common"):
        method(words="intersection")(*pair)


def test_blocks_do_not_change_the_result(
    method: Any, spaces: list[WordVectors], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = method()(*spaces)
    monkeypatch.setattr(
        "stillvec.combination.joint_space._BLOCK", 22
    )  # even, as every other word is held out by `geometric`
    assert np.abs(_cosines(method()(*spaces)) - _cosines(whole)).max() < 1e-3


def test_words_without_counts_keep_the_order_of_the_first_that_has_them() -> None:
    first, second = WordVectors(["b", "a"], np.eye(2)), WordVectors(["c", "a", "d"], np.eye(3))
    assert join_spaces([first, second], "union").vocabulary.words == ("b", "a", "c", "d")


def test_a_count_is_the_largest_and_gives_the_order() -> None:
    first = WordVectors(Vocabulary(["a", "b"], [9, 2]), np.eye(2))
    second = WordVectors(Vocabulary(["b", "a", "c"], [8, 5, 3]), np.eye(3))
    both = join_spaces([first, second], "union").vocabulary
    assert dict(zip(both.words, both.counts.tolist(), strict=True)) == {"a": 9, "b": 8, "c": 3}
    assert join_spaces([second, first], "union").vocabulary == both


def test_cosines_of_a_concatenation_are_means_of_cosines(spaces: list[WordVectors]) -> None:
    made = Concat(weights=(1, 2, 0.5), words="intersection")(*spaces)
    each = [_cosines(space.subset(made.words)) for space in spaces]
    assert np.allclose(_cosines(made), (each[0] + 4 * each[1] + 0.25 * each[2]) / 5.25, atol=1e-5)


def test_concatenation_has_zeros_where_a_space_lacks_the_word(spaces: list[WordVectors]) -> None:
    made = Concat()(*spaces)
    assert not made["word5"][9:].any()
    assert np.allclose(made["word30"][9:16], _unit(spaces[1])["word30"], atol=1e-6)
    assert np.allclose(Concat(unit=False)(*spaces)["word30"][:9], spaces[0]["word30"], atol=1e-6)


def test_an_average_fills_narrow_spaces_with_zeros_and_skips_spaces_that_lack_the_word(
    spaces: list[WordVectors],
) -> None:
    weights = (1.0, 3.0, 2.0)
    made = Average(weights)(*spaces)
    known = [_unit(space) for space in spaces]
    for word in made.words:
        rows = [
            np.pad(each[word], (0, 9 - len(each[word]))) * w
            for each, w in zip(known, weights, strict=True)
            if word in each
        ]
        share = sum(w for each, w in zip(known, weights, strict=True) if word in each)
        assert np.allclose(made[word], sum(rows) / share, atol=1e-6)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_svd_is_that_of_numpy_on_the_concatenation(power: float, spaces: list[WordVectors]) -> None:
    whole = Concat()(*spaces).matrix.astype(np.float64)
    u, s, _ = np.linalg.svd(whole, full_matrices=False)
    slow = u[:, :5] * s[:5] ** power
    made = Svd(dim=5, power=power)(*spaces).matrix
    assert np.allclose(made @ made.T, slow @ slow.T, atol=1e-5)


def test_svd_to_all_dimensions_loses_nothing(spaces: list[WordVectors]) -> None:
    assert np.allclose(_cosines(Svd(dim=24)(*spaces)), _cosines(Concat()(*spaces)), atol=1e-5)


def _masked(space: WordVectors) -> tuple[np.ndarray, np.ndarray]:
    """(80, D) centred rows at length one with zeros for missing words, and who is there (80,)."""
    known = _unit(space)
    has = np.array([word in known for word in WORDS])
    rows = np.stack([known.get(word, np.zeros(space.dim)) for word in WORDS])
    return (rows - rows[has].mean(0)) * has[:, None], has


def test_gcca_solves_the_generalised_eigenproblem_over_the_words(spaces: list[WordVectors]) -> None:
    """The slow way: projections of n x n, masked, `M g = λ K g`."""
    kept = [_masked(space) for space in spaces]
    projections = 0
    for rows, _ in kept:
        gram = rows.T @ rows
        ridge = 1e-4 * np.trace(gram) / len(gram)
        projections = projections + rows @ np.linalg.solve(gram + ridge * np.eye(len(gram)), rows.T)
    held = np.diag(sum(has.astype(float) for _, has in kept))
    values, vectors = scipy.linalg.eigh(projections, held)
    slow = vectors[:, ::-1][:, :4]  # scipy's are of length one in K
    made = Gcca(dim=4)(*spaces).matrix / np.sqrt(80)
    assert values[-4] > values[-5] + 1e-3
    assert np.allclose(made @ made.T, slow @ slow.T, atol=1e-5)
    assert np.allclose(made.T @ held @ made, np.eye(4), atol=1e-5)


def test_gcca_finds_what_the_spaces_share() -> None:
    """Six shared directions, each space with its own noise of five times their size in four more."""
    random = np.random.default_rng(5)
    shared = random.normal(size=(80, 6))
    noisy = [
        WordVectors(WORDS, np.hstack([shared, 5 * random.normal(size=(80, 4))]) @ random.normal(size=(10, 10)))
        for _ in range(3)
    ]
    made = Gcca(dim=6)(*noisy).matrix.astype(np.float64)
    found = np.linalg.svd(np.linalg.qr(made)[0].T @ np.linalg.qr(shared - shared.mean(0))[0])[1]
    alone = Svd(dim=6)(*noisy).matrix.astype(np.float64)
    others = np.linalg.svd(np.linalg.qr(alone)[0].T @ np.linalg.qr(shared - shared.mean(0))[0])[1]
    assert found.min() > 0.7 > others.min()


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (Concat(weights=(1.0,)), "3 weights"),
        (Average(weights=(1.0, -1.0, 1.0)), "0 or more"),
        (Average(weights=(0.0, 0.0, 0.0)), "not all 0"),
        (Svd(dim=25), "1 to 24"),
        (Gcca(dim=0), "1 to 24"),
        (Gcca(ridge=-1.0), "ridge"),
    ],
)
def test_what_is_invalid_is_refused(wrong: Any, expected: str, spaces: list[WordVectors]) -> None:
    with pytest.raises(UsageError, match=expected):
        wrong(*spaces)
