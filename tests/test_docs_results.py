"""Tables of measured numbers in the documentation name what makes them, and it exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
SOURCE = re.compile(r"(?:recipes|benchmarks)/[\w*-]+\.\w+|stillvec [a-z]+ |stillvec serve|make tables ONLY=")

pytestmark = pytest.mark.skipif(not (ROOT / "recipes").exists(), reason="a wheel has no recipes")


def split_sections(page: Path) -> Iterator[str]:
    """The text between headings, without code blocks."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    return iter(re.split(r"^(?=#+ )", text, flags=re.M))


def has_measurements(section: str) -> bool:
    """Whether half of the rows of a table have a decimal number in a cell."""
    tables = re.findall(r"^\|.*\n\|[-|: ]+\n((?:\|.*\n)+)", section, re.M)
    rows = [table.splitlines() for table in tables]
    return any(2 * sum(bool(re.search(r"\|[* ]*[-+(]?\d+\.\d", row)) for row in table) >= len(table) for table in rows)


def test_tables_of_measurements_are_found() -> None:
    sections = [section for section in split_sections(ROOT / "docs" / "results.md") if has_measurements(section)]
    assert len(sections) > 10
    assert not has_measurements("## Flags\n| flag | default |\n|---|---|\n| `--contexts` | 20 |\n")


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_a_table_of_measurements_names_its_source(page: Path) -> None:
    sections = [section for section in split_sections(page) if has_measurements(section)]
    assert [section.splitlines()[0] for section in sections if not SOURCE.search(section)] == []


@pytest.mark.parametrize("page", [*PAGES, *sorted((ROOT / "recipes").glob("*.*"))], ids=lambda page: page.name)
def test_the_recipes_and_benchmarks_that_a_page_names_exist(page: Path) -> None:
    named = set(re.findall(r"(?:recipes|benchmarks)/[\w*-]+\.(?:toml|py)\b", page.read_text("utf-8")))
    assert {name for name in named if not [*ROOT.glob(name)]} == set()
