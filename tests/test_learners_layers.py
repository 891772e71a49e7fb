"""The look at a teacher before a run: which layer relates words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_teachers import tiny_teacher

from stillvec.errors import UsageError
from stillvec.learners import layer_look
from stillvec.learners.accumulators import choose_layers
from stillvec.learners.layer_look import find_best_layer, read_pairs, relate, score_layers
from stillvec.teachers import load_teacher


def test_relate_is_the_mean_standard_score_of_a_pair_among_the_other_second_words() -> None:
    rows = np.random.default_rng(0).normal(size=(7, 5))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    first, second = np.array([0, 1, 2, 0]), np.array([3, 4, 5, 2])  # 2 is first and second, 0 first twice
    scores = []
    for pair, (a, b) in enumerate(zip(first, second, strict=True)):
        others = [rows[a] @ rows[c] for at, c in enumerate(second) if at != pair and c != a]
        scores.append((rows[a] @ rows[b] - np.mean(others)) / np.std(others))
    assert relate(rows, first, second) == pytest.approx(np.mean(scores))


def test_the_last_layer_of_minilm_relates_words_best() -> None:
    teacher = load_teacher("minilm")
    scores = score_layers(teacher)
    assert [*scores] == [1, 2, 3, 4, 5, 6]
    assert scores[6] > 1.2 * max(scores[layer] for layer in range(1, 6))
    assert choose_layers("best3", teacher) == (4, 5, 6)


def test_the_layers_up_to_the_best_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    teacher = tiny_teacher(depth=4)
    monkeypatch.setattr(layer_look, "score_layers", lambda teacher: {1: 0.0, 2: 3.0, 3: 4.0, 4: 2.5})
    wanted = {"best": (3,), "best2": (2, 3), "best3": (1, 2, 3), "best9": (1, 2, 3), "0+best2": (0, 2, 3)}
    assert {name: choose_layers(name, teacher) for name in wanted} == wanted
    with pytest.raises(UsageError):
        choose_layers("bestest", teacher)


def test_a_teacher_that_relates_no_english_words_is_read_at_its_last_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer_look, "score_layers", lambda teacher: {1: 1.5, 2: 0.2, 3: 0.1})
    assert find_best_layer(tiny_teacher(depth=3)) == 3


def test_no_pair_of_the_look_is_evaluated(data_folder: Path) -> None:
    pairs = {frozenset(pair) for pair in read_pairs()}
    assert len(pairs) == len(read_pairs()) > 100
    evaluated = set()
    for file in [*data_folder.glob("similarity/*.tsv"), *data_folder.parent.glob("*/*/similarity/*.tsv")]:
        for line in file.read_text("utf-8").splitlines():
            evaluated.add(frozenset(word.lower() for word in line.split("\t")[:2]))
    assert len(evaluated) > 5000
    assert pairs & evaluated == set()
