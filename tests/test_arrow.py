"""Vectors to and from Arrow, without files: pyarrow and pandas here, Polars and DuckDB in `test_databases.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stillvec
from stillvec import Vocabulary, WordVectors, arrow_stream
from stillvec.errors import FormatError, UsageError

arrow = pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")

WORDS = ["ice", "new york", "χιόνι", "雪"]


def vectors(dtype: Any = np.float32) -> WordVectors:
    rows = np.random.default_rng(0).normal(size=(len(WORDS), 5)).astype(dtype)
    return WordVectors(Vocabulary(WORDS, [9, 4, 1, 0], lowercase=True), rows)


def assert_equal(read: WordVectors, expected: WordVectors) -> None:
    assert read.vocabulary == expected.vocabulary
    assert np.array_equal(read.matrix, np.asarray(expected.matrix, np.float32))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_arrow_tables_and_data_frames_give_the_same_vectors_again(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_stream, "BATCH_ROWS", 3)
    table = arrow.table(vectors(dtype))
    assert [(field.name, str(field.type)) for field in table.schema] == [
        ("word", "string"),
        ("count", "int64"),
        ("vector", "fixed_size_list<item: float>[5]"),
    ]
    for source in (table, vectors(dtype), table.to_reader()):
        assert_equal(stillvec.load(source), vectors(dtype))
    frame = pandas.DataFrame({"word": WORDS, "count": [9, 4, 1, 0], "vector": [*vectors(dtype).matrix.astype("f4")]})
    assert_equal(stillvec.load(frame), vectors(dtype))
    assert_equal(stillvec.load(frame.set_index("word")), vectors(dtype))
    assert stillvec.load(frame).provenance == {"source": "DataFrame"}


def test_the_matrix_is_not_copied() -> None:
    whole = vectors()
    column = arrow.table(whole).column("vector").chunk(0).flatten()
    assert np.shares_memory(column.to_numpy(), whole.matrix)


def test_any_kind_of_list_and_of_string_is_read() -> None:
    rows = vectors().matrix.tolist()
    for kind in (arrow.list_(arrow.float64()), arrow.large_list(arrow.float32()), arrow.list_(arrow.float16(), 5)):
        for text in (arrow.string(), arrow.large_string(), arrow.string_view()):
            table = arrow.table({"vector": arrow.array(rows, kind), "word": arrow.array(WORDS, text)})
            assert stillvec.load(table).words == tuple(WORDS)


def test_the_verbs_take_a_data_frame() -> None:
    table = arrow.table(vectors())
    assert_equal(stillvec.refine(table, "normalize"), stillvec.refine(vectors(), "normalize"))
    assert stillvec.combine([table, table], "concat").dim == 10


@pytest.mark.parametrize(
    "columns",
    [
        {"word": ["a"]},
        {"word": ["a", "a"], "vector": [[1.0], [2.0]]},
        {"word": ["a", None], "vector": [[1.0], [2.0]]},
        {"word": ["a", "b"], "vector": [[1.0], [2.0, 3.0]]},
        {"word": ["a", "b"], "vector": [[1.0], [np.nan]]},
        {"word": ["a"], "vector": ["b"]},
        {"word": [["a"]], "vector": [[1.0]]},
        {"word": [], "vector": []},
    ],
)
def test_a_table_of_other_columns_is_refused(columns: dict[str, list[Any]]) -> None:
    with pytest.raises(FormatError, match="Table"):
        stillvec.load(arrow.table(columns))


def test_what_is_neither_path_nor_table_is_refused() -> None:
    for thing in (5, None, vectors().matrix):
        with pytest.raises(UsageError, match="load"):
            stillvec.load(thing)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="path"):
        stillvec.load(arrow.table(vectors()), format="parquet")
