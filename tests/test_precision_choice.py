"""Which precision a teacher is read in on a CPU."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tiny_teachers import write_tiny_model  # noqa: E402

from stillvec import distill  # noqa: E402
from stillvec.teachers import load_teacher, loader, precision_choice  # noqa: E402
from stillvec.teachers.precision_choice import computes_bf16  # noqa: E402


@pytest.fixture
def with_bf16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "computes_bf16", lambda: True)
    monkeypatch.setattr(precision_choice, "_MIN_DIM", 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("processor : 0\nflags\t\t: fpu avx2 avx512_bf16\n", True),
        ("processor : 0\nFeatures\t: fp asimd bf16\n", True),
        ("processor : 0\nflags\t\t: fpu avx2 avx512f\n", False),
        ("", False),
    ],
)
def test_the_cpu_says_whether_it_has_bf16(text: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda self: text)
    assert computes_bf16() is expected


def test_bf16_is_taken_where_states_agree_and_the_manifest_says_so(tmp_path: Path, with_bf16: None) -> None:
    write_tiny_model(tmp_path / "model", "bert")
    distill(
        ["the river is cold and the bread is warm"] * 3,
        teacher=str(tmp_path / "model"),
        method="aggregate",
        min_count=1,
        out=tmp_path / "out",
    )
    facts = json.loads((tmp_path / "out" / "manifest.json").read_text("utf-8"))["teacher"]
    assert facts["precision"] == "bf16"
    assert 0.99 <= facts["bf16_agreement"] <= 1


def test_where_states_do_not_agree_the_weights_are_those_of_fp32(
    tmp_path: Path, with_bf16: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tiny_model(tmp_path, "bert")
    monkeypatch.setattr(loader, "AGREEMENT", 2.0)
    chosen, exact = load_teacher(str(tmp_path)), load_teacher(str(tmp_path), precision="fp32")
    assert chosen.precision == "fp32"
    assert chosen.agreement is not None
    ids = torch.arange(8, 20)[None]
    states = [teacher.states(ids, None, [teacher.depth])[teacher.depth].numpy() for teacher in (chosen, exact)]
    np.testing.assert_array_equal(*states)


def test_a_model_that_fails_in_bf16_is_read_in_fp32(
    tmp_path: Path, with_bf16: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("not implemented for 'BFloat16'")

    write_tiny_model(tmp_path, "bert")
    monkeypatch.setattr(precision_choice, "_states", fail)
    assert load_teacher(str(tmp_path)).precision == "fp32"


def test_a_small_teacher_and_a_precision_that_is_given_are_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tiny_model(tmp_path, "bert")
    monkeypatch.setattr(loader, "computes_bf16", lambda: True)
    assert (load_teacher(str(tmp_path)).precision, load_teacher(str(tmp_path)).agreement) == ("fp32", None)
    monkeypatch.setattr(precision_choice, "_MIN_DIM", 1)
    assert load_teacher(str(tmp_path), precision="fp32").agreement is None
