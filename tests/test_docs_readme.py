"""The Python of the README type-checks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.slow
def test_the_python_of_the_readme_passes_mypy_strict(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    blocks = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert blocks
    for number, block in enumerate(blocks):
        (tmp_path / f"readme_{number}.py").write_text(block, "utf-8")
    output, errors, status = api.run(["--strict", "--no-incremental", str(tmp_path)])
    assert status == 0, output + errors
