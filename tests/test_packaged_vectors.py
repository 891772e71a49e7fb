"""Vectors by name, from a package of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import stillvec
from stillvec.cli import main
from stillvec.errors import FormatError
from stillvec.formats.packaged_vectors import PACKAGED_VECTORS, find_packaged


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[stillvec.WordVectors]:
    """An installed package with the vectors "klingon"."""
    vectors = stillvec.WordVectors(["one", "two", "three"], np.eye(3, dtype=np.float32))
    folder = tmp_path / "site" / "stillvec_klingon"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    stillvec.save(vectors, folder / "vectors")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setitem(PACKAGED_VECTORS, "klingon", "stillvec_klingon")
    monkeypatch.chdir(tmp_path)
    return vectors


def test_packaged_vectors_are_loaded_by_their_name(package: stillvec.WordVectors) -> None:
    assert stillvec.load("klingon").words == package.words


def test_the_name_means_the_package_and_a_folder_of_that_name_is_given_as_a_path(package: stillvec.WordVectors) -> None:
    other = stillvec.WordVectors(["local"], np.ones((1, 2), np.float32))
    stillvec.save(other, "./klingon")
    assert stillvec.load("klingon").words == package.words
    assert list(stillvec.load("./klingon").words) == ["local"]
    assert list(stillvec.load(Path("klingon")).words) == ["local"]


def test_commands_take_the_name(package: stillvec.WordVectors, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nearest", "klingon", "one", "-k", "1"]) == 0
    assert "cosine" in capsys.readouterr().out


def test_a_package_that_is_not_installed_is_named_with_the_cure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(PACKAGED_VECTORS, "klingon", "stillvec_klingon_absent")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FormatError) as caught:
        stillvec.load("klingon")
    assert "stillvec-klingon-absent" in str(caught.value)
    (tmp_path / "klingon").mkdir()
    assert find_packaged("klingon") is None  # nothing is replaced: the folder is meant


PACKAGE = Path(__file__).parents[1] / "packages/english/stillvec_english/vectors"


@pytest.mark.skipif(not PACKAGE.is_dir(), reason="not a checkout")
def test_the_english_vectors_fit_into_a_wheel_of_thirty_megabytes_and_find_related_words() -> None:
    vectors = stillvec.load(PACKAGE)
    assert sum(file.stat().st_size for file in PACKAGE.iterdir()) < 30e6
    assert len(vectors) > 60_000
    near = [word for word, _ in vectors.nearest("volcano", k=10)]
    assert {"lava", "eruption", "magma"} & {*near}
    assert vectors.similarity("fire", "flame") > vectors.similarity("fire", "tuesday") + 0.2
