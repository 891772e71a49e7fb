"""Benchmarks, recipes and documentation scripts import names that exist."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = sorted(path for folder in ("benchmarks", "recipes", "docs") for path in (ROOT / folder).glob("*.py"))

pytestmark = pytest.mark.skipif(not SCRIPTS, reason="only a checkout has benchmarks and recipes")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_script_imports_names_that_exist(script: Path) -> None:
    missing = []
    for node in ast.walk(ast.parse(script.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("stillvec"):
            module = importlib.import_module(node.module or "")
            missing += [f"{node.module}.{name.name}" for name in node.names if not _exists(module, name.name)]
    assert missing == []


def _exists(module: object, name: str) -> bool:
    if hasattr(module, name):
        return True
    try:
        importlib.import_module(f"{getattr(module, '__name__', '')}.{name}")
    except ModuleNotFoundError:
        return False
    return True
