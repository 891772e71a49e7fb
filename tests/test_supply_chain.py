"""What `make setup` installs is pinned and checked by its hash, and nothing is executed from the current folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch

import stillvec
from stillvec.cli import main
from stillvec.encoding.context_store import ContextWriter
from stillvec.errors import _UNSUPPORTED
from stillvec.files.private_files import private_file

ROOT = Path(__file__).parents[1]
CONSTRAINTS = [ROOT / name for name in ("constraints.txt", "constraints-cuda.txt", "constraints-databases.txt")]

checkout = pytest.mark.skipif(not CONSTRAINTS[0].exists(), reason="not a checkout of the repository")


def _entries(path: Path) -> list[str]:
    return path.read_text("utf-8").replace("\\\n", " ").splitlines()


def _name(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0]).lower()


@checkout
@pytest.mark.parametrize("path", CONSTRAINTS, ids=lambda path: path.name)
def test_every_pin_has_hashes(path: Path) -> None:
    pattern = re.compile(r"[a-z0-9.-]+==[\w.+!]+( +--hash=sha256:[0-9a-f]{64})+ *")
    assert [entry[:60] for entry in _entries(path) if not pattern.fullmatch(entry)] == []


@checkout
def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    required = project["build-system"]["requires"] + project["project"]["dependencies"]
    required += [line for extra in project["project"]["optional-dependencies"].values() for line in extra]
    assert {*map(_name, required)} - {*map(_name, _entries(CONSTRAINTS[0]))} == {"stillvec"}
    required = project["dependency-groups"]["databases"] + project["project"]["dependencies"]
    assert {*map(_name, required)} - {*map(_name, _entries(CONSTRAINTS[2]))} == set()


@checkout
def test_what_has_no_release_for_a_supported_python_is_left_out_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    supported = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert supported == ["3.11", "3.12", "3.13", "3.14"]
    required = project["dependencies"] + [line for extra in project["optional-dependencies"].values() for line in extra]
    for package, (major, minor) in _UNSUPPORTED.items():
        lines = [line for line in required if _name(line) == package]
        assert lines
        assert all(f"python_version < '{major}.{minor}'" in line for line in lines)


@checkout
@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_setup_installs_nothing_without_a_hash(tmp_path: Path) -> None:
    command = ["make", "--dry-run", "--always-make", "setup", f"VENV={tmp_path}"]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    installs = [line for line in lines if "pip install" in line]
    assert len(installs) > 1
    for line in installs:
        assert "--no-build-isolation" in line
        assert "--require-hashes" in line or line.endswith("--no-deps -e . -e packages/english")


def test_nothing_is_imported_from_the_current_folder(tmp_path: Path) -> None:
    for name in ("torch", "numpy", "rich", "sitecustom"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('executed')\n")
    (tmp_path / "v.vec").write_text("1 2\nice 1 2\n")
    source = Path(stillvec.__file__).parents[1]
    command = [sys.executable, "-m", "stillvec", "info", "v.vec"]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_torch_does_not_cache_code_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "")  # restored at the end
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    monkeypatch.setenv("STILLVEC_CACHE", str(tmp_path / "cache"))
    assert main(["completion", "bash"]) == 0
    assert Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).parent == tmp_path / "cache"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
def test_what_is_derived_from_a_corpus_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    writer = ContextWriter(tmp_path / "cache" / "store", 2, states=False)
    writer.add(np.array([0]), np.array([1]), torch.ones(1, 2))
    writer.close()
    with private_file(tmp_path / "other" / "parses.conllu") as part:
        part.write_text("a")
    private = ("cache", "cache/store", "other", "other/parses.conllu")
    assert [oct((tmp_path / name).stat().st_mode & 0o077) for name in private] == ["0o0"] * 4
