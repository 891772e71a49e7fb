"""What `make setup` installs is pinned and checked by its hash, and nothing is executed from the current folder."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONSTRAINTS = [ROOT / "constraints.txt", ROOT / "constraints-cuda.txt"]

pytestmark = pytest.mark.skipif(not CONSTRAINTS[0].exists(), reason="not a checkout of the repository")


def _entries(path: Path) -> list[str]:
    return path.read_text("utf-8").replace("\\\n", " ").splitlines()


def _name(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0]).lower()


@pytest.mark.parametrize("path", CONSTRAINTS, ids=lambda path: path.name)
def test_every_pin_has_hashes(path: Path) -> None:
    pattern = re.compile(r"[a-z0-9.-]+==[\w.+!]+( +--hash=sha256:[0-9a-f]{64})+ *")
    assert [entry[:60] for entry in _entries(path) if not pattern.fullmatch(entry)] == []


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    required = project["build-system"]["requires"] + project["project"]["dependencies"]
    required += [line for extra in project["project"]["optional-dependencies"].values() for line in extra]
    assert {*map(_name, required)} - {*map(_name, _entries(CONSTRAINTS[0]))} == {"stillvec"}


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_setup_installs_nothing_without_a_hash(tmp_path: Path) -> None:
    command = ["make", "--dry-run", "--always-make", "setup", f"VENV={tmp_path}"]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    installs = [line for line in lines if "pip install" in line]
    assert len(installs) > 1
    for line in installs:
        assert "--no-build-isolation" in line
        assert "--require-hashes" in line or line.endswith("--no-deps -e .")
