"""Semantic change: words that were made to move are found, and chance is what controls say it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from scipy.stats import false_discovery_control, ortho_group

from stillvec.combination.change import Change
from stillvec.errors import UsageError, VocabularyError
from stillvec.vectors import WordVectors

COUNT, DIM = 600, 12
WORDS = [f"w{number}" for number in range(COUNT)]
MOVED = {f"w{number}": f"w{(number + 295) % COUNT}" for number in range(5, COUNT, 50)}  # twelve


def _times(seed: int, changed: dict[str, str]) -> tuple[WordVectors, WordVectors]:
    """One language at two times, each rotated, with more noise on rarer words; some words went to where others are."""
    random = np.random.default_rng(seed)
    latent = random.normal(size=(COUNT, DIM))
    later = latent.copy()
    for word, to in changed.items():
        later[WORDS.index(word)] = latent[WORDS.index(to)]
    noise = np.linspace(0.05, 0.3, COUNT)[:, None]
    pair = [
        (rows + noise * random.normal(size=rows.shape)) @ ortho_group.rvs(DIM, random_state=random)
        for rows in (latent, later)
    ]
    return WordVectors(WORDS, pair[0]), WordVectors([*WORDS[::-1], "new"], np.vstack([pair[1][::-1], np.ones(DIM)]))


def test_words_that_moved_are_found_and_few_others() -> None:
    """All that moved, and at q < 0.1 about a tenth of false finds, over several languages."""
    controls = [_times(seed, {}) for seed in (2, 3, 4, 5)]
    finds = 0
    for seed in (1, 21, 22, 23, 24, 25):
        found = Change(resamples=0, band=200)(*_times(seed, MOVED), controls=controls)
        taken = {word for word, q in zip(found.words, found.q, strict=True) if q < 0.1}
        assert taken >= {*MOVED}
        assert {*found.words[:12]} == {*MOVED}
        assert len(found.words) == COUNT
        assert (np.diff(found.moved) <= 0).all()
        assert found.p.min() == pytest.approx(1 / (4 * 200 + 1))  # never 0, however far a word moved
        finds += len(taken)
    assert finds - 6 * 12 <= 0.15 * finds


def test_where_nothing_changed_chance_is_even() -> None:
    """p of words that did not move is uniform, for frequent and rare words alike, though rare ones move farther."""
    found = Change(resamples=0, band=200)(*_times(6, {}), controls=[_times(seed, {}) for seed in (7, 8, 9)])
    rank = np.array([WORDS.index(word) for word in found.words])
    rare = rank >= 300
    assert found.moved[rare].mean() > 2 * found.moved[~rare].mean()
    for some in (rare, ~rare):
        assert 0.4 < found.p[some].mean() < 0.6
        assert 0.01 < (found.p[some] < 0.1).mean() < 0.2


def test_moves_are_those_of_scipys_rotation() -> None:
    before, after = _times(10, MOVED)
    found = Change(resamples=0)(before, after)
    sides = []
    for space in (before, after):
        rows = space[WORDS].astype(np.float64)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        rows -= rows.mean(0)
        sides.append(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    cosines = (sides[1] @ orthogonal_procrustes(sides[1], sides[0])[0] * sides[0]).sum(1)
    slow = dict(zip(WORDS, 1 - cosines, strict=True))
    assert np.allclose(found.moved, [slow[word] for word in found.words], atol=1e-5)
    assert np.array_equal(found.low, found.moved)


def test_without_controls_p_is_a_place_among_words_as_frequent() -> None:
    found = Change(resamples=0, band=COUNT)(*_times(11, MOVED))
    assert np.allclose(found.p, np.arange(1, COUNT + 1) / COUNT)
    assert np.allclose(found.q, false_discovery_control(found.p))
    assert found.q.min() > 0.9


def test_intervals_hold_the_value_and_widen_with_fewer_words() -> None:
    before, after = _times(12, MOVED)
    many = Change(resamples=40)(before, after)
    few = Change(resamples=40, most=60)(before, after)
    assert (many.low <= many.moved).all()
    assert (many.moved <= many.high).all()
    assert len(few.words) == 60
    wide = {word: high - low for word, low, high in zip(few.words, few.low, few.high, strict=True)}
    narrow = {word: high - low for word, low, high in zip(many.words, many.low, many.high, strict=True)}
    assert np.mean([wide[word] / narrow[word] for word in few.words]) > 1.5


def test_the_same_seed_gives_the_same_moves() -> None:
    pair = _times(13, MOVED)
    first, second = (Change(resamples=10)(*pair) for _ in range(2))
    assert first.words == second.words
    assert first.low.tobytes() == second.low.tobytes()


@pytest.mark.parametrize("wrong", [{"most": 1}, {"resamples": -1}, {"band": 0}])
def test_invalid_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="at least"):
        Change(**wrong)


def test_spaces_without_common_words_are_reported() -> None:
    with pytest.raises(VocabularyError, match="common words"):
        Change()(WordVectors(["a"], [[1.0]]), WordVectors(["b"], [[1.0]]))
