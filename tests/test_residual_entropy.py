"""Residual entropy: on codes whose value is known, and against every assignment."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from stillvec import WordVectors, save
from stillvec.analysis import analyze, measure_residual_entropy
from stillvec.analysis import residual_entropy as module
from stillvec.cli import main
from stillvec.errors import UsageError

STRINGS = np.array([*product(range(4), repeat=3)])  # 64 strings of 3 concepts


def _bits(numbers: np.ndarray, length: int) -> np.ndarray:
    return (numbers[:, None] >> np.arange(length)) & 1


def test_a_code_of_blocks_has_none_whatever_the_order_of_its_bits() -> None:
    blocks = np.hstack([_bits(column, 2) for column in STRINGS.T])
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(6)
        found = measure_residual_entropy(blocks[:, order], STRINGS)
        assert found.value == pytest.approx(0, abs=1e-9)
        assert [sorted(order[[*part]] // 2) for part in found.symbols] == [[0, 0], [1, 1], [2, 2]]


def test_a_random_code_of_the_same_strings_has_much() -> None:
    for seed in range(5):
        codes = _bits(np.random.default_rng(seed).permutation(64), 6)
        assert measure_residual_entropy(codes, STRINGS).value > 0.3


def test_bits_that_mean_nothing_leave_all() -> None:
    codes = np.zeros((64, 6), int)
    assert measure_residual_entropy(codes, STRINGS).value == pytest.approx(1)


def test_the_search_finds_what_all_assignments_find(monkeypatch: pytest.MonkeyPatch) -> None:
    equal = 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        codes = _bits(random.permutation(64), 6)[:, : random.integers(3, 7)]
        exact = measure_residual_entropy(codes, STRINGS)
        monkeypatch.setattr(module, "_EXHAUSTIVE", 0)
        searched = measure_residual_entropy(codes, STRINGS)
        monkeypatch.undo()
        assert searched.value >= exact.value - 1e-12
        equal += searched.value < exact.value + 1e-9
    assert equal >= 19


def test_shuffled_items_say_what_chance_explains() -> None:
    random = np.random.default_rng(0)
    codes, concepts = random.integers(0, 2, (50, 12)), random.integers(0, 2, (50, 2))
    few = measure_residual_entropy(codes, concepts)
    assert few.value < 0.35
    assert few.shuffled == pytest.approx(few.value, abs=0.2)
    limited = measure_residual_entropy(codes, concepts, max_symbols=1)
    assert limited.value > 0.85
    assert all(len(part) == 1 for part in limited.symbols)


def test_a_concept_that_never_varies_is_refused() -> None:
    with pytest.raises(UsageError, match="concept 1"):
        measure_residual_entropy(np.eye(3, dtype=int), np.array([[0, 1], [1, 1], [2, 1]]))


@pytest.mark.parametrize(("step", "kind"), [("bits:length=8", "bits"), ("quantize:to=pq,parts=3,codes=4", "pq")])
def test_codes_of_words_are_measured_against_a_lexicon(
    step: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Words whose vectors are their attributes; nonsense attributes are not in their bits."""
    random = np.random.default_rng(0)
    marks = random.integers(0, 2, (600, 3))
    words = [f"w{row}" for row in range(600)]
    save(WordVectors(words, (2.0 * marks - 1) @ random.normal(size=(3, 6))), tmp_path / "v")
    names = np.array(["red", "large", "alive"])
    lexicon = {"true": marks, "nonsense": random.integers(0, 2, (600, 3))}
    for name, table in lexicon.items():
        lines = [f"{word}\tword {' '.join(names[row > 0])}\n" for word, row in zip(words, table, strict=True)]
        (tmp_path / f"{name}.tsv").write_text("".join(lines))
    codes = str(tmp_path / "c")
    assert main(["refine", str(tmp_path / "v"), "--step", step, "--out", codes]) == 0
    found = {}
    for name in lexicon:
        analysis = analyze(codes, components=False, codes=tmp_path / f"{name}.tsv").codes
        assert analysis is not None
        assert (analysis.kind, sorted(analysis.concepts)) == (kind, sorted(names))
        found[name] = analysis.entropy.value
        assert analysis.entropy.shuffled > 0.9
    assert found["true"] < 0.8
    assert found["nonsense"] > 0.9
    capsys.readouterr()
    assert main(["analyze", codes, "--no-components", "--codes", str(tmp_path / "true.tsv")]) == 0
    assert f"{found['true']:.3f}" in capsys.readouterr().out
    with pytest.raises(UsageError, match="refine --step bits"):
        analyze(tmp_path / "v", components=False, codes=tmp_path / "true.tsv")
