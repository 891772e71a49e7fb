"""Packed tables: fewer bytes, and every bit of every number comes back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from stillvec.cli import main
from stillvec.errors import FormatError
from stillvec.formats import load, read_manifest, save, write_folder
from stillvec.formats import matrix_compression as module
from stillvec.formats.matrix_compression import PACKINGS, pack, unpack
from stillvec.formats.tensors import write_tensors
from stillvec.refinement import read_step
from stillvec.vectors import WordVectors

STEPS = {
    "int8": "quantize:to=int8",
    "pq": "quantize:to=pq,parts=9",
    "bits": "bits:length=32",
    "sparse": "prune:sparsity=0.9",
}
SHARES = {"int8": 0.282, "pq": 0.3, "bits": 0.032, "sparse": 0.182}  # of the bytes of the plain table, at most


def _rows(count: int, dim: int = 32, seed: int = 0) -> np.ndarray:
    """Rows of lengths from 1e-6 to 1e6, one of them zero."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(count, dim)) * 10.0 ** random.uniform(-6, 6, (count, 1))
    rows[count // 2] = 0
    return rows.astype(np.float32)


def _vectors(rows: np.ndarray) -> WordVectors:
    return WordVectors([f"w{row}" for row in range(len(rows))], rows)


def _bits(rows: Any) -> bytes:
    return np.ascontiguousarray(rows).tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [*PACKINGS])
def test_what_the_step_made_is_packed_and_comes_back_bit_for_bit(
    kind: str, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK", 700)
    matrix = read_step(STEPS[kind])(_vectors(_rows(6000).astype(dtype))).matrix
    assert matrix.dtype == dtype
    arrays = pack(matrix, kind)
    assert arrays is not None
    assert sum(array.nbytes for array in arrays.values()) <= SHARES[kind] * matrix.nbytes
    back = unpack(arrays, kind, matrix.shape)
    assert back is not None
    assert back.dtype == dtype
    assert _bits(back) == _bits(matrix)


@pytest.mark.parametrize("seed", range(20))
def test_steps_of_a_row_are_found_again_whatever_its_size(seed: int) -> None:
    """Down to numbers so small that they have lost bits themselves, and become zero."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(500, 8)) * 10.0 ** random.uniform(-46, 37, (500, 1))
    matrix = read_step("quantize:to=int8")(_vectors(rows.astype(np.float32))).matrix
    arrays = pack(matrix, "int8")
    assert arrays is not None
    assert _bits(arrays["codes"] * arrays["scales"][:, None]) == _bits(matrix)


def test_the_codes_of_products_are_those_of_the_step() -> None:
    """Parts that a sample cannot tell apart may fall together; the table they tell is the same."""
    matrix = read_step("quantize:to=pq,parts=5,codes=200")(_vectors(_rows(5000, 18))).matrix
    arrays = pack(matrix, "pq")
    assert arrays is not None
    assert arrays["widths"].tolist() == [4, 4, 4, 3, 3]
    assert arrays["centres"].shape == (200, 18)


@pytest.mark.parametrize("kind", [*PACKINGS])
def test_a_table_that_does_not_fit_stays_plain(kind: str, tmp_path: Path) -> None:
    matrix = _rows(2000)
    assert pack(matrix, kind) is None
    assert pack(np.zeros((2000, 32), np.float16), kind) is None
    assert pack(matrix[:0], kind) is None
    write_folder(_vectors(matrix), tmp_path / "v", {}, packed=kind)
    manifest = read_manifest(tmp_path / "v")
    assert manifest["format"] == 1
    assert "stored" not in manifest
    assert _bits(load(tmp_path / "v").matrix) == _bits(matrix)


@pytest.mark.parametrize("kind", [*PACKINGS])
def test_one_number_or_one_sign_that_does_not_fit_is_seen(kind: str) -> None:
    made = read_step(STEPS[kind])(_vectors(_rows(3000))).matrix
    for change in (np.nextafter(made[2100, 5], np.float32(np.inf)), np.float32(-0.0)):
        matrix = made.copy()
        matrix[2100, 5] = change
        if _bits(matrix) == _bits(made):
            continue
        arrays = pack(matrix, kind)
        assert arrays is None or _bits(unpack(arrays, kind, matrix.shape)) == _bits(matrix)
        if kind == "int8":
            assert arrays is None


@pytest.mark.parametrize(("kind", "share"), [("int8", 0.285), ("pq", 0.33), ("bits", 0.035), ("sparse", 0.185)])
def test_the_verb_writes_a_small_folder_that_loads_as_the_step_made_it(
    kind: str, share: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(_vectors(_rows(6000)), tmp_path / "v")
    assert main(["refine", str(tmp_path / "v"), "--step", STEPS[kind], "--out", str(tmp_path / "small")]) == 0
    assert f"MB as {kind}" in capsys.readouterr().out
    plain, small = ((tmp_path / name / "vectors.safetensors").stat().st_size for name in ("v", "small"))
    assert small < share * plain
    loaded, wanted = load(tmp_path / "small"), read_step(STEPS[kind])(load(tmp_path / "v"))
    assert _bits(loaded.matrix) == _bits(wanted.matrix)
    assert loaded.matrix.dtype == np.float32
    assert not loaded.matrix.flags.writeable
    manifest = read_manifest(tmp_path / "small")
    assert (manifest["format"], manifest["stored"], manifest["dtype"]) == (2, kind, "float32")

    for call in (["nearest", str(tmp_path / "small"), "w1"], ["info", str(tmp_path / "small")]):
        assert main(call) == 0
    assert main(["convert", str(tmp_path / "small"), str(tmp_path / "text.w2v")]) == 0
    assert np.array_equal(load(tmp_path / "text.w2v").matrix, loaded.matrix)


def test_a_step_after_it_is_written_plain(tmp_path: Path) -> None:
    save(_vectors(_rows(3000)), tmp_path / "v")
    small, after = tmp_path / "small", tmp_path / "after"
    assert main(["refine", str(tmp_path / "v"), "--step", STEPS["int8"], "--out", str(small)]) == 0
    assert main(["refine", str(small), "--step", "center", "--out", str(after)]) == 0
    manifest = read_manifest(after)
    assert (manifest["format"], manifest["dtype"]) == (1, "float32")
    assert "stored" not in manifest
    assert [each["step"] for each in manifest["refined"]] == ["quantize", "center"]
    assert main(["refine", str(tmp_path / "v"), "--like", str(small), "--out", str(after), "--force"]) == 0
    assert read_manifest(after)["stored"] == "int8"


def test_the_safetensors_package_reads_the_codes(tmp_path: Path) -> None:
    matrix = read_step(STEPS["int8"])(_vectors(_rows(300))).matrix
    write_folder(_vectors(matrix), tmp_path / "v", {}, packed="int8")
    theirs = safetensors.numpy.load_file(tmp_path / "v" / "vectors.safetensors")
    assert np.array_equal(theirs["codes"] * theirs["scales"][:, None], matrix)


def _broken(arrays: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """Arrays that are none: one lacking, one too short, and numbers that point outside."""
    name = next(iter(arrays))
    wrong = [
        {key: each for key, each in arrays.items() if key != name},
        arrays | {name: arrays[name][1:]},
        arrays | {name: arrays[name].astype(np.int64)},
    ]
    if kind == "pq":
        wrong.append(arrays | {"centres": arrays["centres"][:9]})
        wrong.append(arrays | {"widths": np.full_like(arrays["widths"], -1)})
    if kind == "sparse":
        wrong.append(arrays | {"columns": arrays["columns"] + np.uint16(30)})
        wrong.append(arrays | {"lengths": arrays["lengths"][::-1] + np.uint32(1)})
    return wrong


@pytest.mark.parametrize("kind", [*PACKINGS])
def test_arrays_that_are_none_are_refused_in_one_sentence(kind: str, tmp_path: Path) -> None:
    matrix = read_step(STEPS[kind])(_vectors(_rows(3000))).matrix
    write_folder(_vectors(matrix), tmp_path / "v", {}, packed=kind)
    arrays = pack(matrix, kind)
    assert arrays is not None
    for wrong in _broken(arrays, kind):
        write_tensors(tmp_path / "v" / "vectors.safetensors", wrong)
        with pytest.raises(FormatError, match=f"3000 x 32 .*'{kind}'"):
            load(tmp_path / "v")


def test_a_packing_that_is_unknown_is_refused(tmp_path: Path) -> None:
    save(_vectors(_rows(10)), tmp_path / "v")
    file = tmp_path / "v" / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"stored": "int3", "format": 2}))
    with pytest.raises(FormatError, match="'int3'"):
        load(tmp_path / "v")
