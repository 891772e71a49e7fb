"""Selection of dimensions: by variance as numpy counts it, and by pairs as a slow loop over cosines does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cosine
from scipy.stats import spearmanr

from stillvec.errors import UsageError
from stillvec.numerics import iterate_blocks
from stillvec.refinement import read_step
from stillvec.refinement import select_dims as module
from stillvec.refinement.select_dims import SelectDims
from stillvec.vectors import WordVectors


@pytest.fixture
def vectors() -> WordVectors:
    random = np.random.default_rng(0)
    rows = random.normal(size=(80, 10)) * random.permutation(np.linspace(0.5, 3, 10)) + random.normal(size=10) * 5
    return WordVectors([f"w{row}" for row in range(80)], rows.astype(np.float32))


def _write(file: Path, pairs: np.ndarray, gold: np.ndarray) -> str:
    lines = [f"w{a}\tw{b}\t{score!r}\n" for (a, b), score in zip(pairs.tolist(), gold.tolist(), strict=True)]
    file.write_text("".join(lines))
    return str(file)


@pytest.mark.parametrize("block", [1 << 14, 33])
def test_the_columns_of_the_largest_variance_stay_as_they_are(
    block: int, vectors: WordVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iterate_blocks, "__defaults__", (np.float64, block))
    chosen = sorted(np.argsort(-vectors.matrix.var(0))[:4])
    assert np.array_equal(SelectDims(4)(vectors).matrix, vectors.matrix[:, chosen])
    assert np.array_equal(SelectDims(10)(vectors).matrix, vectors.matrix)


def _slowly(vectors: WordVectors, files: list[tuple[np.ndarray, np.ndarray]], dim: int) -> list[int]:
    """One dimension after another: the one without which the pairs are ordered best."""
    left = [*range(vectors.dim)]
    rows = vectors.matrix.astype(np.float64)
    while len(left) > dim:
        scores = {}
        for gone in left:
            some = [each for each in left if each != gone]
            scores[gone] = np.mean(
                [
                    spearmanr(gold, [1 - cosine(rows[a, some], rows[b, some]) for a, b in pairs])[0]
                    for pairs, gold in files
                ]
            )
        left.remove(max(scores, key=lambda gone: scores[gone]))
    return left


def test_with_pairs_those_go_without_which_the_order_is_best(vectors: WordVectors, tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    files = [(random.integers(0, 80, (count, 2)), random.random(count)) for count in (60, 40)]
    names = tuple(_write(tmp_path / f"{number}.tsv", *each) for number, each in enumerate(files))
    for dim in (3, 7):
        assert np.array_equal(SelectDims(dim, names)(vectors).matrix, vectors.matrix[:, _slowly(vectors, files, dim)])


def test_large_dimensions_without_information_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """People judge by eight quiet dimensions of forty; rounds of several at once find them too."""
    random = np.random.default_rng(2)
    rows = random.normal(size=(300, 40)) * ([1.0] * 8 + [2.0] * 32)
    pairs = random.integers(0, 300, (2000, 2))
    meant = rows[:, :8] / np.linalg.norm(rows[:, :8], axis=1, keepdims=True)
    gold = (meant[pairs[:, 0]] * meant[pairs[:, 1]]).sum(1)
    space = WordVectors([f"w{row}" for row in range(300)], rows)
    name = _write(tmp_path / "pairs.tsv", pairs, gold)
    for share in (16, 4):
        monkeypatch.setattr(module, "_ROUND_SHARE", share)
        assert np.array_equal(SelectDims(8, (name,))(space).matrix, rows[:, :8])
    assert not np.array_equal(SelectDims(8)(space).matrix, rows[:, :8])


def test_the_command_line_names_pairs(vectors: WordVectors) -> None:
    assert read_step("select_dims:dim=5,pairs=a.tsv,pairs=b.tsv") == SelectDims(5, ("a.tsv", "b.tsv"))


def test_what_cannot_be_is_refused(vectors: WordVectors, tmp_path: Path) -> None:
    for wrong in (0, 11):
        with pytest.raises(UsageError, match="1 to 10"):
            SelectDims(wrong)(vectors)
    few = _write(tmp_path / "few.tsv", np.array([[0, 1]] * 19), np.arange(19.0))
    with pytest.raises(UsageError, match="20 pairs of known words"):
        SelectDims(5, (few,))(vectors)
