"""Masks, ranks and cosines of two matrices against loops over the definitions of Gordon et al. 2020; entropies."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stillvec import Vocabulary, WordVectors, analyze, refine, save
from stillvec.analysis import compare_values
from stillvec.analysis.value_change import compare_pruned_masks, move_ranks
from stillvec.cli import main
from stillvec.errors import UsageError, VocabularyError
from stillvec.refinement.feature_tuples import FeatureTuples


@pytest.fixture
def pair() -> tuple[Any, Any]:
    random = np.random.default_rng(2)
    before = random.normal(size=(12, 5))
    return before, before + 0.3 * random.normal(size=(12, 5))


def test_ranks_move_as_a_loop_counts_them(pair: tuple[Any, Any]) -> None:
    before, after = (np.abs(matrix).ravel().tolist() for matrix in pair)
    moved = [
        abs(sum(other < value for other in before) - sum(other < late for other in after)) / 60
        for value, late in zip(before, after, strict=True)
    ]
    change = compare_values(*pair)
    assert move_ranks(*pair).ravel() == pytest.approx(moved)
    assert change.rank_movement == pytest.approx(np.mean(moved))
    assert change.rank_spread == pytest.approx(np.std(moved))
    smallest = sorted(range(60), key=before.__getitem__)
    tenths = [np.mean([moved[at] for at in smallest[start : start + 6]]) for start in range(0, 60, 6)]
    assert change.movement_by_tenth == pytest.approx(tenths)


def test_masks_differ_as_a_loop_counts_them(pair: tuple[Any, Any]) -> None:
    for sparsity in (0.2, 0.5, 0.9):
        masks = []
        for matrix in pair:
            values = np.abs(matrix).ravel().tolist()
            masks.append({*sorted(range(60), key=values.__getitem__)[: round(60 * sparsity)]})
        expected = len(masks[0] ^ masks[1]) / 60
        assert compare_pruned_masks(*pair, sparsity) == pytest.approx(expected)
        pruned = [np.where([[row * 5 + column in mask for column in range(5)] for row in range(12)], 0, matrix)
                  for mask, matrix in zip(masks, pair, strict=True)]  # fmt: skip
        change = compare_values(*pruned)
        assert change.mask_difference == pytest.approx(expected)
        assert change.zeros == pytest.approx((sparsity, sparsity))
        assert change.mask_chance == pytest.approx(2 * sparsity * (1 - sparsity))
        shares = [sum(value == 0 for value in row) / 5 for row in pruned[1].tolist()]
        assert change.zeros_by_row == (min(shares), max(shares))
        shares = [sum(value == 0 for value in column) / 12 for column in pruned[1].T.tolist()]
        assert change.zeros_by_column == pytest.approx((min(shares), max(shares)))


def test_cosines_are_those_of_rows(pair: tuple[Any, Any]) -> None:
    change = compare_values(*pair)
    alike = [float(a @ b / math.sqrt((a @ a) * (b @ b))) for a, b in zip(*pair, strict=True)]
    assert (change.mean_cosine, change.lowest_cosine) == pytest.approx((np.mean(alike), min(alike)))


def test_independent_matrices_differ_by_chance_and_equal_ones_not_at_all() -> None:
    random = np.random.default_rng(0)
    first, second = random.normal(size=(2, 400, 50))
    change = compare_values(first, second)
    assert change.rank_movement == pytest.approx(1 / 3, abs=0.01)
    for sparsity, share in change.pruned_differences.items():
        assert share == pytest.approx(2 * sparsity * (1 - sparsity), abs=0.01)
    same = compare_values(first, first)
    assert (same.rank_movement, same.mask_difference, *same.pruned_differences.values()) == (0,) * 7
    assert same.mean_cosine == pytest.approx(1)


def test_matrices_of_other_shapes_are_refused(pair: tuple[Any, Any]) -> None:
    for other in (pair[1][:5], pair[1].ravel(), pair[1][:, :2]):
        with pytest.raises(UsageError, match="shape"):
            compare_values(pair[0], other)
    with pytest.raises(UsageError, match="shape"):
        compare_values(pair[0][:0], pair[1][:0])


@pytest.fixture
def vectors() -> WordVectors:
    matrix = np.random.default_rng(7).normal(size=(50, 8)).astype(np.float32)
    return WordVectors(Vocabulary([f"w{row}" for row in range(50)], range(150, 50, -2)), matrix)


def test_analyze_compares_the_values_of_common_words(
    vectors: WordVectors, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pruned = refine(vectors, "prune:sparsity=0.4")
    fewer = pruned.subset([*reversed(pruned.words[:40])])
    change = analyze(fewer, components=False, against=vectors, values=True).values
    assert change is not None
    assert change == compare_values(vectors.matrix[39::-1], pruned.matrix[39::-1])
    assert change.zeros[0] == 0
    assert change.mask_difference == change.zeros[1]
    save(vectors, tmp_path / "old")
    save(fewer, tmp_path / "new")
    call = ["analyze", str(tmp_path / "new"), "--no-components", "--against", str(tmp_path / "old"), "--values"]
    assert main(call) == 0
    assert "40 common words x 8" in capsys.readouterr().out
    assert main([*call, "--json", "-"]) == 0
    values = json.loads(capsys.readouterr().out)["values"]
    assert values["rank_movement"] == pytest.approx(change.rank_movement)
    assert values["pruned_differences"]["0.6"] == pytest.approx(change.pruned_differences[0.6])


def test_zeros_have_no_order_among_them(pair: tuple[Any, Any]) -> None:
    """Which of 40% zeros 20% pruning would remove is undefined."""
    sizes = np.abs(pair[1])
    pruned = np.where(sizes < np.quantile(sizes, 0.4), 0, pair[1])
    assert [*compare_values(pair[0], pruned).pruned_differences] == [0.4, 0.6, 0.9]


def test_values_need_something_to_be_compared_with(vectors: WordVectors) -> None:
    for against in (None, WordVectors(vectors.words, vectors.matrix[:, :5])):
        with pytest.raises(UsageError, match="against"):
            analyze(vectors, components=False, values=True, against=against)
    with pytest.raises(UsageError, match="controls"):
        analyze(vectors, components=False, values=True, against=vectors, controls=[(vectors, vectors)])
    with pytest.raises(VocabularyError, match="common"):
        analyze(vectors, components=False, values=True, against=WordVectors(["a"], vectors.matrix[:1]))


def test_words_are_listed_by_entropy(vectors: WordVectors, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tuples = FeatureTuples("row")(vectors)
    often = [word for word, count in zip(vectors.words, range(150, 50, -2), strict=True) if count >= 100]
    by_word = {
        word: sum(-p * math.log(p) - (1 - p) * math.log(1 - p) for p in tuples[word].astype(float).tolist())
        for word in often
    }
    entropies = analyze(tuples, components=False, entropy=100).entropies
    assert [word for word, _ in entropies] == sorted(by_word, key=by_word.__getitem__, reverse=True)
    assert dict(entropies) == pytest.approx(by_word)
    assert len(analyze(WordVectors(tuples.words, tuples.matrix), components=False, entropy=100).entropies) == 50
    save(tuples, tmp_path / "v")
    assert main(["analyze", str(tmp_path / "v"), "--no-components", "--entropy", "-k", "2"]) == 0
    out = capsys.readouterr().out
    assert f"{entropies[0][0]} " in out.partition("highest entropy")[2]
    assert f"{entropies[-1][0]} " in out.partition("lowest entropy")[2]
    with pytest.raises(UsageError, match="feature_tuples"):
        analyze(vectors, components=False, entropy=0)
    with pytest.raises(UsageError, match="entropy"):
        analyze(tuples, components=False, entropy=-1)
