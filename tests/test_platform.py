"""Windows and macOS: every module imports and a corpus is distilled without modules and calls of POSIX."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT_POSIX = """
import builtins, importlib, importlib.util, os, pkgutil, sys
import torch, transformers
from transformers import BertModel  # before the calls are taken away

POSIX = ("resource", "fcntl", "pwd", "grp", "termios", "tty", "pty")
import_module = builtins.__import__

def guarded(name, globals=None, *rest):  # only our own imports: other libraries guard theirs
    if name in POSIX and str((globals or {}).get("__name__", "")).startswith("stillvec"):
        raise ModuleNotFoundError(name, name=name)
    return import_module(name, globals, *rest)

builtins.__import__ = guarded
import stillvec
from stillvec.cli import main

triton = ["stillvec.encoding.triton_segment_sum", "stillvec.learners.triton_logistic_step"]
skipped = ["stillvec.__main__"] + triton * (not importlib.util.find_spec("triton"))
for module in pkgutil.walk_packages(stillvec.__path__, "stillvec."):
    if module.name not in skipped:
        importlib.import_module(module.name)
for name in ("sysconf", "fork", "sched_getaffinity"):
    delattr(os, name)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the suite itself is the test")
def test_everything_imports_and_distills_without_posix(tmp_path: Path, model: str) -> None:
    (tmp_path / "text.txt").write_text("The house by the sea is old. The dog sleeps in the sun. " * 4, "utf-8")
    call = ["distill", "text.txt", "--teacher", model, "--min-count", "1", "--out", "vectors", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX, *call], cwd=tmp_path, env=os.environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "vectors" / "manifest.json").is_file()
