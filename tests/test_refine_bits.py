"""Binary codes: against a slow computation bit by bit, and what search by Hamming distance must find."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stillvec.cli import main
from stillvec.errors import UsageError
from stillvec.formats import load, read_manifest, save
from stillvec.numerics import count_differing_bits, hamming, pack_signs, unit_rows
from stillvec.refinement.bits import Bits
from stillvec.vectors import WordVectors


def _space(count: int = 900, dim: int = 24, seed: int = 0) -> WordVectors:
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(count, dim)) * np.linspace(3, 0.3, dim) @ random.normal(size=(dim, dim)) + 1
    return WordVectors([f"w{row}" for row in range(count)], matrix.astype(np.float32))


def _angle_correlation(vectors: WordVectors, codes: WordVectors) -> float:
    """How well the Hamming distances of random pairs follow the cosines of the centred vectors."""
    units = unit_rows(vectors.matrix)
    units = unit_rows(units - units.mean(0))
    a, b = np.random.default_rng(1).integers(0, len(units), (2, 4000))
    similar = (codes.matrix[a] * codes.matrix[b]).sum(1)
    return float(np.corrcoef((units[a] * units[b]).sum(1), similar)[0, 1])


@pytest.mark.parametrize("by", ["itq", "rotation", "planes"])
def test_codes_are_signs_that_follow_the_cosines(by: str) -> None:
    vectors = _space()
    found = {length: Bits(length, by)(vectors) for length in (8, 24, 96)}  # type: ignore[arg-type]
    for length, codes in found.items():
        assert codes.matrix.shape == (900, length)
        assert set(np.unique(codes.matrix)) == {-1, 1}
    kept = [_angle_correlation(vectors, codes) for codes in found.values()]
    assert kept == sorted(kept)
    assert kept[-1] > 0.8


def test_planes_disagree_as_often_as_the_angle_says() -> None:
    """Charikar 2002: two vectors are on different sides of a random plane with the probability angle / π."""
    matrix = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [-1, -1, 0], [-1, -1, 0.0]])
    codes = Bits(6000, "planes")(WordVectors([*"abcde"], matrix)).matrix
    units = unit_rows(matrix)
    units = unit_rows(units - units.mean(0))
    wanted = np.arccos(np.clip(units @ units.T, -1, 1)) / np.pi
    assert np.abs((codes[:, None] != codes[None]).mean(2) - wanted).max() < 0.03


def test_itq_is_nearer_to_its_signs_than_a_random_rotation() -> None:
    """On corners of a cube, turned at random, it finds the corners again."""
    random = np.random.default_rng(1)
    corners = random.choice([-1.0, 1.0], (2000, 6))
    turned = corners @ np.linalg.qr(random.normal(size=(6, 6)))[0]
    vectors = WordVectors([str(row) for row in range(2000)], turned)
    itq, other = (Bits(6, by)(vectors).matrix for by in ("itq", "rotation"))  # type: ignore[arg-type]
    agreement = np.abs(corners.T @ itq / 2000)
    assert np.sort(agreement.max(1))[0] > 0.99
    assert np.sort(np.abs(corners.T @ other / 2000).max(1))[0] < 0.95


@pytest.mark.parametrize("length", [5, 64, 100, 128])
def test_count_differing_bits_are_those_of_a_slow_count(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).choice([-1.0, 1.0], (50, length))
    packed = pack_signs(rows)
    assert packed.shape == (50, -(-length // 64))
    slow = [[sum(x != y for x, y in zip(a, b, strict=True)) for b in rows] for a in rows[:10]]
    for fast in (True, False):
        if not fast:
            monkeypatch.setattr(hamming, "np", _NumpyBefore2())
        assert [count_differing_bits(packed, code).tolist() for code in packed[:10]] == slow


class _NumpyBefore2:
    def __getattr__(self, name: str) -> object:
        if name == "bitwise_count":
            raise AttributeError(name)
        return getattr(np, name)


def test_search_uses_the_bits_and_finds_what_cosines_find(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = Bits(48)(_space())
    units = unit_rows(codes.matrix)
    cosines = units @ units.T
    near, batch = codes.nearest("w3", 900), codes.nearest_batch(["w3", "w7"], 20)
    order = [row for row in np.lexsort((np.arange(900), -cosines[3].round(5))).tolist() if row != 3]
    assert [word for word, _ in near] == [f"w{row}" for row in order]
    assert [cosine for _, cosine in near] == pytest.approx(cosines[3][order].tolist(), abs=1e-6)
    assert batch[0] == near[:20]
    assert codes.similarity("w3", "w7") == pytest.approx(float(cosines[3, 7]))
    calls: list[int] = []
    monkeypatch.setattr(
        "stillvec.row_search.count_differing_bits", lambda *given: calls.append(1) or count_differing_bits(*given)
    )
    codes.nearest("w3")
    assert calls
    calls.clear()
    mixed = codes.matrix[3] + codes.matrix[7]  # not a code: compared by products
    assert codes.nearest(mixed, 900)[0][1] == pytest.approx(float((units @ unit_rows(mixed)).max()), abs=1e-6)
    assert not calls
    _space().nearest("w3")
    assert not calls


def test_the_command_writes_one_bit_per_number_and_says_what_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(_space(), tmp_path / "v")
    assert main(["refine", str(tmp_path / "v"), "--step", "bits:length=128", "--out", str(tmp_path / "b")]) == 0
    assert "neighbours kept 0." in capsys.readouterr().out
    assert 0.3 < read_manifest(tmp_path / "b")["refined"][0]["loss"]["neighbours kept"] < 1
    assert (tmp_path / "b" / "vectors.safetensors").stat().st_size < 900 * 16 + 400
    assert main(["convert", str(tmp_path / "b"), str(tmp_path / "again")]) == 0
    assert read_manifest(tmp_path / "again")["stored"] == "bits"
    assert load(tmp_path / "again").nearest("w5") == load(tmp_path / "b").nearest("w5")


def test_invalid_settings_are_refused() -> None:
    with pytest.raises(UsageError, match="length"):
        Bits(0)
    with pytest.raises(UsageError, match="16,384"):
        Bits(100_000)
    with pytest.raises(UsageError, match="itq"):
        Bits(by="itg")  # type: ignore[arg-type]
