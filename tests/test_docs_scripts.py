"""What benchmarks and recipes import from stillvec exists."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted(path for folder in ("benchmarks", "recipes") for path in (ROOT / folder).glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=[f"{path.parent.name}/{path.name}" for path in SCRIPTS])
def test_a_script_imports_what_exists(script: Path) -> None:
    missing = []
    for node in ast.walk(ast.parse(script.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "stillvec":
            module = importlib.import_module(str(node.module))
            missing += [f"{node.module}.{name.name}" for name in node.names if not hasattr(module, name.name)]
    assert missing == []
