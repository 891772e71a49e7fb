"""docs/design.md names the layers, packages and modules that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_architecture import LAYERS, PACKAGE

PAGE = Path(__file__).resolve().parents[1] / "docs" / "design.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="a wheel has no documentation pages")


def test_the_layers_are_those_of_the_code() -> None:
    diagram = re.search(r"^```text\n(cli .*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    assert diagram is not None
    layers = [set(re.split(r" · ", re.split(r"\s{2,}", line)[0])) for line in diagram[1].splitlines()]
    assert layers == [set(layer) for layer in LAYERS]


def test_every_module_on_the_page_exists() -> None:
    text = PAGE.read_text("utf-8")
    elsewhere = ("docs/", "tests/", "stillvec/")
    files = {name for name in re.findall(r"`(\w+/\w+\.py)`", text) if not name.startswith(elsewhere)}
    assert files, "modules are written as `package/module.py`"
    assert [name for name in sorted(files) if not (PACKAGE / name).exists()] == []
