"""Pushing forms of a word apart: the pairs it looks at, its gradient, and what becomes of neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from stillvec.numerics import unit_rows
from stillvec.refinement.separate_inflections import Floats, RowPairs, SeparateInflections, are_kin, find_pairs
from stillvec.vectors import WordVectors

N_MEANINGS = 40
FORMS = ("", "s", "ed", "ing")


@pytest.fixture
def vectors() -> WordVectors:
    """Words of forty meanings on a circle of meanings, each in four forms that are almost equal."""
    random = np.random.default_rng(0)
    angles = np.linspace(0, 2 * np.pi, N_MEANINGS, endpoint=False)[:, None]
    meanings = np.hstack([np.cos(angles), np.sin(angles), 0.5 * random.normal(size=(N_MEANINGS, 10))])
    rows = np.repeat(meanings, len(FORMS), axis=0)
    rows += 0.2 * random.normal(size=rows.shape)
    letters = [f"{chr(97 + at % 26)}{chr(97 + at // 26)}" for at in range(N_MEANINGS)]
    words = [f"{start}{start}el{form}" for start in letters for form in FORMS]
    return WordVectors(words, (3 * rows).astype(np.float32))


@pytest.mark.parametrize(
    ("a", "b", "kin"),
    [
        ("teach", "teaching", True),
        ("culture", "cultivate", False),
        ("cat", "cats", False),
        ("interest", "internet", True),
        ("understand", "underneath", False),
        ("bank", "blank", False),
    ],
)
def test_a_family_begins_alike(a: str, b: str, kin: bool) -> None:
    assert are_kin(a, b) == are_kin(b, a) == kin


def share_forms(vectors: WordVectors) -> float:
    """The share of forms of a word among its three nearest."""
    units = unit_rows(np.asarray(vectors.matrix))
    cosines = units @ units.T
    np.fill_diagonal(cosines, -1)
    meaning = np.arange(len(units)) // len(FORMS)
    nearest = np.argsort(-cosines, axis=1)[:, :3]
    return float((meaning[nearest] == meaning[:, None]).mean())


def correlate_others(vectors: WordVectors, apart: WordVectors) -> float:
    """The correlation of cosines of words of different meanings before and after."""
    meaning = np.arange(len(vectors)) // len(FORMS)
    others = meaning[:, None] < meaning
    before, after = (unit_rows(np.asarray(each.matrix)) for each in (vectors, apart))
    return float(np.corrcoef((before @ before.T)[others], (after @ after.T)[others])[0, 1])


def test_forms_leave_the_lists_and_other_cosines_stay(vectors: WordVectors) -> None:
    apart, careful = SeparateInflections()(vectors), SeparateInflections(everywhere=2)(vectors)
    assert share_forms(vectors) > 0.9
    assert share_forms(apart) < 0.6
    assert 0.8 < correlate_others(vectors, apart) < correlate_others(vectors, careful)
    assert share_forms(SeparateInflections(strength=0)(vectors)) > 0.9


def test_lengths_stay_and_no_steps_change_nothing(vectors: WordVectors) -> None:
    apart = SeparateInflections()(vectors)
    before, after = (np.linalg.norm(each.matrix, axis=1) for each in (vectors, apart))
    np.testing.assert_allclose(before, after, rtol=1e-5)
    np.testing.assert_allclose(SeparateInflections(steps=0)(vectors).matrix, vectors.matrix, atol=1e-6)


def test_without_families_nothing_changes() -> None:
    vectors = WordVectors(["ant", "bee", "cow"], np.eye(3, dtype=np.float32))
    assert np.array_equal(SeparateInflections()(vectors).matrix, vectors.matrix)


def test_pairs_are_those_of_a_slow_loop(vectors: WordVectors) -> None:
    units = unit_rows(np.asarray(vectors.matrix))
    words = vectors.vocabulary.words
    family, near = find_pairs(units, words)
    kin, others, limit = set(), set(), []
    for at, word in enumerate(words):
        order = [int(row) for row in np.argsort(-units @ units[at], kind="stable") if row != at][:50]
        strangers = [row for row in order if not are_kin(word, words[row])]
        kin |= {(min(at, row), max(at, row)) for row in order if row not in strangers}
        others |= {(min(at, row), max(at, row)) for row in strangers[:20]}
        limit.append(float(units[at] @ units[strangers[9]]))
    assert {*zip(family.left.tolist(), family.right.tolist(), strict=True)} == kin
    assert {*zip(near.left.tolist(), near.right.tolist(), strict=True)} == others
    expected = [min(limit[one], limit[other]) for one, other in zip(family.left, family.right, strict=True)]
    np.testing.assert_allclose(family.goal, expected, atol=1e-6)


def test_the_gradient_is_that_of_the_objective() -> None:
    random = np.random.default_rng(1)
    units = unit_rows(random.normal(size=(7, 4)))
    rows = unit_rows(units + 0.3 * random.normal(size=units.shape))
    family = RowPairs(np.array([0, 2]), np.array([1, 5]), np.array([-2.0, 2.0], np.float32))  # one above, one below
    near = RowPairs(np.array([0, 3, 4]), np.array([3, 4, 6]), np.array([0.1, 0.2, -0.3], np.float32))
    step = SeparateInflections(strength=3, everywhere=2)

    def objective(free: Floats) -> float:
        y = unit_rows(free)
        total = 2 * 4 / 7 * float(((y @ y.T - units @ units.T) ** 2).sum())
        total += 3 * sum(max(0, y[i] @ y[j] - m) ** 2 for i, j, m in zip(*family, strict=True))
        return float(total + sum((y[i] @ y[j] - m) ** 2 for i, j, m in zip(*near, strict=True)))

    numeric = np.zeros_like(rows)
    for at in np.ndindex(rows.shape):
        change = np.zeros_like(rows)
        change[at] = 1e-5
        numeric[at] = (objective(rows + change) - objective(rows - change)) / 2e-5
    np.testing.assert_allclose(step.gradient(rows, units, family, near), numeric, rtol=1e-3, atol=1e-4)
