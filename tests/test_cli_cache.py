"""stillvec cache lists and clears what is ours, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from error_checks import raises

from stillvec.cli import main
from stillvec.errors import UsageError
from stillvec.files.temporary_names import name_machine
from stillvec.files.user_cache import clear_cache, list_cache

MINE = ("mine.txt", "app/store.json", "maps/europe.npz", "answers/exam.json", "training-plan.safetensors")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with one entry of some kinds, files of others, and what a killed process left."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    root, room = tmp_path / "cached", tmp_path / "room"
    part = f"{name_machine()}.{ended.pid}.0123abcd"
    living = f".b.{name_machine()}.{os.getppid()}.0123abcd.part/store.json"
    name = "0123456789abcdef"
    ours = (f"{name}/store.json", f"training-{name}.safetensors", f"answers/{name}.npz", f".a.{part}.part/x", living)
    for name in (*ours, *MINE):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x" * 1000)
    (room / f".stillvec.{part}.tmp").mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(room))
    return root


def test_the_list_names_every_kind(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kinds = sorted(entry.kind for entry in list_cache(cache))
    assert kinds == ["answers", "checkpoints", "contexts", "leftovers", "leftovers"]
    assert main(["cache", "--context-cache", str(cache)]) == 0
    assert "checkpoints" in capsys.readouterr().out


def test_clearing_removes_leftovers_and_on_request_all_but_nothing_else(cache: Path) -> None:
    assert main(["cache", "--context-cache", str(cache), "--clear"]) == 0
    assert sorted(entry.kind for entry in list_cache(cache)) == ["answers", "checkpoints", "contexts"]
    assert clear_cache(["contexts"], cache, older_than=1.0) == []
    assert main(["cache", "--context-cache", str(cache), "--clear", "all"]) == 0
    assert list_cache(cache) == []
    left = sorted(str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file())
    assert left[1:] == sorted(MINE)
    assert left[0].startswith(".b."), "of a living run"


def test_an_unknown_kind_is_refused(cache: Path) -> None:
    with raises(UsageError, code="unknown-name"):
        clear_cache(["context"], cache)
