"""Statistics are written while vectors are computed: the folder is the same, and nothing is left when it fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_corpus import sentences
from tiny_teachers import write_tiny_model

from stillvec.cli import main
from stillvec.files import file_digest
from stillvec.formats import early_statistics
from stillvec.formats.stillvec_folder import verify_folder
from stillvec.pipeline import result_folders


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_tiny_model(tmp_path / "teacher", "bert")
    (tmp_path / "text.txt").write_text("\n".join(sentences(60)), "utf-8")
    return tmp_path


def _distill(out: str, *flags: str) -> int:
    call = ["distill", "text.txt", "--teacher", "teacher", "--min-count", "1", "--contexts", "2", "--out", out, *flags]
    return main([*call, "--quiet"])


def test_the_statistics_are_those_that_are_written_afterwards(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    methods = ["--method", "auto,aggregate"]
    assert _distill("after", *methods) == 0
    moved: list[Path] = []
    move = early_statistics.EarlyStatistics.move
    monkeypatch.setattr(result_folders, "_EARLY_BYTES", 0)
    monkeypatch.setattr(
        early_statistics.EarlyStatistics, "move", lambda self, path: (moved.append(path), move(self, path))[1]
    )
    assert _distill("beside", *methods) == 0
    assert len(moved) == 2
    for name in ("auto", "aggregate"):
        one, other = (file_digest(folder / out / name / "statistics.safetensors") for out in ("after", "beside"))
        assert one == other
        assert "statistics.safetensors" in verify_folder(folder / "beside" / name)
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".")) == []
    assert sorted(path.name for path in (folder / "beside").iterdir()) == ["aggregate", "auto"]


def test_nothing_is_written_before_where_no_statistics_are_wanted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result_folders, "_EARLY_BYTES", 0)
    monkeypatch.setattr(result_folders, "EarlyStatistics", None)
    assert _distill("out", "--no-statistics") == 0
    assert not (folder / "out" / "statistics.safetensors").exists()


def test_a_full_disk_is_one_sentence_and_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def fill(*_: object) -> None:
        raise OSError(28, "No space left on device", "disk")

    monkeypatch.setattr(result_folders, "_EARLY_BYTES", 0)
    monkeypatch.setattr(early_statistics, "write_tensors", fill)
    assert _distill("out") == 1
    assert "No space left on device" in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == ["teacher", "text.txt"]


def test_a_folder_that_cannot_be_made_is_reported_at_the_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(13, "Permission denied")

    monkeypatch.setattr(result_folders, "_EARLY_BYTES", 0)
    monkeypatch.setattr(early_statistics, "early_folder", refuse)
    assert _distill("out") == 0
    assert "statistics.safetensors" in verify_folder(folder / "out")


def test_arrays_are_recognized_by_identity() -> None:
    arrays = {"one": np.zeros(3), "two": np.ones(2)}
    writer = early_statistics.EarlyStatistics.__new__(early_statistics.EarlyStatistics)
    writer._arrays = dict(arrays)
    assert writer.has(arrays)
    assert not writer.has({**arrays, "two": np.ones(2)})
    assert not writer.has({"one": arrays["one"]})
