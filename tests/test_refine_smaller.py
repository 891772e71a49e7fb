"""Quantisation and pruning: against closed forms, scipy's own search, and what people say of words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.cluster.vq import kmeans2, vq
from scipy.sparse import csr_matrix
from scipy.stats import norm

from stillvec.cli import main
from stillvec.errors import UsageError
from stillvec.evaluation import evaluate
from stillvec.formats import load, read_manifest, save
from stillvec.refinement.prune import Prune
from stillvec.refinement.quantize import ProductCodes, Quantize
from stillvec.refinement.steps import measure_loss
from stillvec.vectors import WordVectors

ROWS, DIM = 4000, 300


@pytest.fixture(scope="module")
def gaussian() -> WordVectors:
    matrix = np.random.default_rng(0).standard_normal((ROWS, DIM), np.float32)
    return WordVectors([str(row) for row in range(ROWS)], matrix)


def _mean_cosine(before: Any, after: Any) -> float:
    lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    return float(((before * after).sum(1) / lengths).mean())


@pytest.mark.parametrize("scope", ["matrix", "row", "column"])
@pytest.mark.parametrize("sparsity", [0.3, 0.4, 0.6, 0.9])
def test_pruning_a_gaussian_table_costs_what_the_closed_form_says(
    sparsity: float, scope: Any, gaussian: WordVectors
) -> None:
    """Sheet 18: t = Φ⁻¹((1+s)/2); cosine √(1-(s-2tφ(t))), by chance √(1-s); removed share of |w| 1-e^(-t²/2)."""
    after = Prune(sparsity, scope)(gaussian).matrix
    edge = norm.ppf((1 + sparsity) / 2)
    assert (after == 0).mean() == pytest.approx(sparsity, abs=0.002)
    wanted = np.sqrt(1 - (sparsity - 2 * edge * norm.pdf(edge)))
    assert _mean_cosine(gaussian.matrix, after) == pytest.approx(wanted, abs=0.005)
    left = np.abs(after).sum() / np.abs(gaussian.matrix).sum()
    assert 1 - left == pytest.approx(1 - np.exp(-(edge**2) / 2), abs=0.005)
    control = Prune(sparsity, scope, "chance")(gaussian).matrix
    assert _mean_cosine(gaussian.matrix, control) == pytest.approx(np.sqrt(1 - sparsity), abs=0.005)


def test_what_is_left_of_a_row_a_column_or_the_table_is_its_largest(gaussian: WordVectors) -> None:
    few = WordVectors(gaussian.words[:40], gaussian.matrix[:40, :30])
    for scope, lines in (("row", few.matrix), ("column", few.matrix.T), ("matrix", few.matrix.reshape(1, -1))):
        after = Prune(0.7, scope)(few).matrix  # type: ignore[arg-type]
        pruned = {"row": after, "column": after.T, "matrix": after.reshape(1, -1)}[scope]
        for line, left in zip(lines, pruned, strict=True):
            count = len(line) - round(0.7 * len(line))
            assert sorted(np.abs(left[left != 0])) == sorted(np.abs(line))[-count:]


def test_of_numbers_that_are_alike_exactly_so_many_go() -> None:
    alike = WordVectors(["a", "b", "c", "d"], np.ones((4, 5), np.float32))
    for share in (0.0, 0.25, 0.5, 1.0):
        assert (Prune(share)(alike).matrix == 0).sum() == round(20 * share)


def test_nine_tenths_pruned_a_sparse_table_takes_less_than_a_quarter(gaussian: WordVectors) -> None:
    left = csr_matrix(Prune(0.9)(gaussian).matrix)
    assert left.data.nbytes + left.indices.nbytes + left.indptr.nbytes < gaussian.matrix.nbytes / 4


def test_int8_is_off_by_half_a_step_of_the_row_at_most(gaussian: WordVectors) -> None:
    after = Quantize("int8")(gaussian).matrix
    steps = np.abs(gaussian.matrix).max(1) / 127
    assert (np.abs(after - gaussian.matrix).max(1) <= steps * 0.5001).all()
    assert max(len(np.unique(row)) for row in after[:50]) <= 255
    assert np.allclose(after / steps[:, None], np.rint(after / steps[:, None]), atol=1e-4)


def test_fp16_is_kept_in_half_the_bytes(gaussian: WordVectors, tmp_path: Path) -> None:
    after = Quantize("fp16")(gaussian)
    assert after.matrix.dtype == np.float16
    assert np.array_equal(after.matrix, gaussian.matrix.astype(np.float16))
    for name, vectors in (("half", after), ("whole", gaussian)):
        save(vectors, tmp_path / name)
    half, whole = ((tmp_path / name / "vectors.safetensors").stat().st_size for name in ("half", "whole"))
    assert half < 0.51 * whole
    assert np.array_equal(load(tmp_path / "half").matrix, after.matrix)
    with pytest.raises(UsageError, match="65504"):
        Quantize("fp16")(WordVectors(["a"], [[1e5]]))


@pytest.mark.parametrize("parts", [1, 3, 5])
def test_each_part_of_a_product_code_is_the_nearest_centre(parts: int) -> None:
    """scipy's search says the same, and its k-means does not do better by more than a twentieth."""
    rows = np.random.default_rng(1).normal(size=(900, 16)).astype(np.float32)
    codes = ProductCodes.learn(rows, parts, 32, 0)
    ours = theirs = 0.0
    for part, columns in enumerate(np.array_split(np.arange(16), parts)):
        found, distances = vq(rows[:, columns], codes.centres[part])
        assert np.array_equal(codes.codes[:, part], found)
        ours += float((distances**2).sum())
        theirs += float(
            (vq(rows[:, columns], kmeans2(rows[:, columns], 32, 15, minit="points", seed=0)[0])[1] ** 2).sum()
        )
    assert float(((codes.decode() - rows) ** 2).sum()) == pytest.approx(ours, rel=1e-3)
    assert ours < 1.05 * theirs


def test_with_a_centre_for_every_row_nothing_is_lost() -> None:
    few = WordVectors(["a", "b", "c"], np.random.default_rng(2).normal(size=(3, 7)).astype(np.float32))
    assert np.array_equal(Quantize("pq", parts=2)(few).matrix, few.matrix)


def test_the_loss_is_what_was_turned_and_what_went(gaussian: WordVectors) -> None:
    for step in (Prune(0.5), Quantize("int8"), Quantize("pq", parts=150, codes=16)):
        after = step(gaussian)
        measured = step.loss(gaussian, after)
        assert measured["mean cosine"] == pytest.approx(_mean_cosine(gaussian.matrix, after.matrix), abs=1e-6)
        lost = ((gaussian.matrix - after.matrix) ** 2).sum() / (gaussian.matrix**2).sum()
        assert measured["lost squares"] == pytest.approx(lost, rel=1e-4)
    zeros = WordVectors(["a"], [[0.0, 0.0]])
    assert measure_loss(zeros, zeros) == {"mean cosine": 0.0, "lost squares": 0.0}


def test_the_verb_tells_the_loss_and_keeps_it(
    gaussian: WordVectors, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(gaussian, tmp_path / "v")
    assert main(["refine", str(tmp_path / "v"), "--step", "prune:sparsity=0.6", "--out", str(tmp_path / "p")]) == 0
    assert "mean cosine 0.93" in capsys.readouterr().out
    assert read_manifest(tmp_path / "p")["refined"][0]["loss"]["mean cosine"] == pytest.approx(0.9334, abs=0.005)


def test_real_vectors_stand_a_little_of_each(word_pieces: WordVectors, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sheet 18: 30% by magnitude costs .01 at most and less than chance; so do fp16 and int8."""
    pytest.importorskip("gensim")
    monkeypatch.delenv("STILLVEC_DATA", raising=False)  # the packaged sets are meant
    steps = {"int8": Quantize(), "fp16": Quantize("fp16"), "pruned": Prune(0.3)}
    steps |= {f"{by}{share}": Prune(share, by=by) for by in ("magnitude", "chance") for share in (0.3, 0.6, 0.9)}  # type: ignore[arg-type]
    report = evaluate(
        {"whole": word_pieces} | {name: step(word_pieces) for name, step in steps.items()}, tasks=["similarity"]
    )
    found: dict[str, float] = {}
    for score in report.scores:
        if score.dataset == "wordsim353" and score.words == "own":
            found[score.vectors] = score.value
    assert found["whole"] > 0.3
    for name in ("int8", "fp16", "pruned"):
        assert found[name] > found["whole"] - 0.01, found
    for share in (0.3, 0.6, 0.9):
        assert found[f"magnitude{share}"] > found[f"chance{share}"], found


def test_invalid_settings_are_refused(gaussian: WordVectors) -> None:
    with pytest.raises(UsageError, match="0 to 1"):
        Prune(1.5)
    for wrong in (Quantize("pq", parts=301), Quantize("pq", parts=0), Quantize("pq", codes=257)):
        with pytest.raises(UsageError):
            wrong(gaussian)
