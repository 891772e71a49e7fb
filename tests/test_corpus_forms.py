"""JSON lines, Parquet and CoNLL-U as corpora."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from error_checks import raises

from stillvec.corpus import Corpus
from stillvec.errors import CorpusError, MissingExtra


def _read(path: Path, content: str, **how: Any) -> list[str]:
    path.write_text(content, encoding="utf-8")
    return list(Corpus(path, **how).paragraphs())


def _lines(*records: object) -> str:
    return "\n".join(json.dumps(record) for record in records)


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.ndjson", "unnamed"])
def test_the_text_of_json_lines_is_read_without_naming_the_field(name: str, tmp_path: Path) -> None:
    assert _read(tmp_path / name, _lines({"text": "one\ntwo", "id": 3}, {"text": "three"})) == [
        "one",
        "two",
        "three",
    ]


def test_compressed_json_lines_are_json_lines(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b'{"body": "packed"}\n'))
    assert list(Corpus(tmp_path, field="body").paragraphs()) == ["packed"]


def test_a_dotted_field_reaches_into_records_but_a_plain_key_goes_first(tmp_path: Path) -> None:
    records = _lines({"a": {"b": "inner"}}, {"a.b": "plain", "a": {"b": "inner"}}, {"a": {"b": ["x", "y"]}})
    assert _read(tmp_path / "a.jsonl", records, field="a.b") == ["inner", "plain", "x", "y"]


def test_records_without_the_field_are_passed_over_if_others_have_it(tmp_path: Path) -> None:
    assert _read(tmp_path / "a.jsonl", _lines({"id": 1}, {"text": None}, {"text": "x"}, {})) == ["x"]


def test_half_a_surrogate_pair_in_json_is_replaced(tmp_path: Path) -> None:
    assert _read(tmp_path / "a.jsonl", '{"text": "a \\ud800 b\\u0000c"}') == ["a \ufffd b c"]


def test_an_unknown_field_names_the_nearest(tmp_path: Path) -> None:
    with raises(CorpusError, code="unknown-name", path=tmp_path / "a.jsonl", match="'txt'.*'text'"):
        _read(tmp_path / "a.jsonl", _lines({"id": 1, "text": "x"}), field="txt")


def test_an_unknown_field_names_all_if_none_is_near(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="author, body"):
        _read(tmp_path / "a.jsonl", _lines(*[{"body": "x", "author": "y"}] * 1000))


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ('{"text": "x"', "not-json", "column"),
        ("[", "not-json", "jq"),
        ("[1, 2]", "unexpected-value", "a list"),
        ('{"text": 3}', "unexpected-value", "'text'.*a number"),
        ("[" * 100_000, "not-json", "nested"),
    ],
)
def test_a_line_that_is_not_a_record_is_named_with_its_number(line: str, code: str, said: str, tmp_path: Path) -> None:
    with raises(CorpusError, code=code, path=tmp_path / "a.jsonl", line=3, match=said):
        _read(tmp_path / "a.jsonl", '{"text": "fine"}\n\n' + line + "\n")


def _parquet(path: Path, columns: dict[str, Any], **how: Any) -> Path:
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(arrow.table(columns), path, **how)
    return path


def test_a_column_of_parquet_is_read_over_all_row_groups(tmp_path: Path) -> None:
    texts = [f"text {n}" for n in range(5000)]
    path = _parquet(tmp_path / "a.parquet", {"id": range(5000), "text": texts}, row_group_size=700)
    assert list(Corpus(path).paragraphs()) == texts


def test_parquet_holds_nulls_lists_structs_and_paragraphs(tmp_path: Path) -> None:
    columns = {"a": [{"b": "x\ny"}, None, {"b": None}], "c": [["l", "m"], [], None]}
    path = _parquet(tmp_path / "unnamed", columns)
    assert list(Corpus(path, field="a.b").paragraphs()) == ["x", "y"]
    assert list(Corpus(path, field="c").paragraphs()) == ["l", "m"]


def test_an_unknown_column_names_the_nearest(tmp_path: Path) -> None:
    path = _parquet(tmp_path / "a.parquet", {"contents": ["x"], "meta": [{"title": "y"}]})
    with raises(CorpusError, code="unknown-name", path=path, match="'contents'"):
        list(Corpus(path, field="content").paragraphs())
    with raises(CorpusError, code="unknown-name", path=path, match=r"'meta\.title'"):
        list(Corpus(path, field="meta.titel").paragraphs())


def test_a_column_without_text_is_named(tmp_path: Path) -> None:
    path = _parquet(tmp_path / "a.parquet", {"text": [1, 2]})
    with raises(CorpusError, code="unexpected-value", path=path, match="'text'.*a number"):
        list(Corpus(path).paragraphs())


def test_a_file_that_is_not_parquet_is_named(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    with raises(CorpusError, code="bad-parquet", path=tmp_path / "a.parquet"):
        _read(tmp_path / "a.parquet", "hello, this is text")


def test_a_truncated_parquet_file_is_named(tmp_path: Path) -> None:
    path = _parquet(tmp_path / "a.parquet", {"text": ["x"] * 1000})
    path.write_bytes(path.read_bytes()[:-20])
    with raises(CorpusError, code="bad-parquet", path=path):
        list(Corpus(path).paragraphs())


@pytest.mark.parametrize(
    ("module", "name", "extra"), [("zstandard", "a.zst", "zstd"), ("pyarrow", "a.parquet", "parquet")]
)
def test_a_missing_package_is_named_with_its_extra(
    module: str, name: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / name).write_bytes(b"\x28\xb5\x2f\xfd" if extra == "zstd" else b"PAR1")
    with pytest.raises(MissingExtra, match=rf"stillvec\[{extra}\]"):
        list(Corpus(tmp_path / name).paragraphs())


ROW = "{}\t{}\t_\t_\t_\t_\t_\t_\t_\t{}"


def _conllu(*rows: tuple[str, str, str]) -> str:
    return "\n".join(ROW.format(*row) for row in rows)


def test_conllu_gives_its_paragraphs(tmp_path: Path) -> None:
    hello = _conllu(("1", "Hello", "_"))
    first = f"# newdoc\n# newpar\n# text = Hello.\n{hello}\n\n# text = You.\n{hello}"
    content = f"{first}\n\n# newpar id = 2\n# text = Bye.\n{hello}"
    assert _read(tmp_path / "a.conllu", content) == ["Hello. You.", "Bye."]


def test_conllu_without_paragraphs_or_texts_gives_its_forms_a_sentence_each(tmp_path: Path) -> None:
    first = _conllu(("1", "Vamos", "_"), ("2-3", "al", "_"), ("2", "a", "_"), ("3", "el", "_"), ("3.1", "no", "_"))
    second = _conllu(("1", "mar", "SpaceAfter=No"), ("2", ".", "_"))
    assert _read(tmp_path / "a.conllu", f"{first}\n\n{second}\n\n") == ["Vamos al", "mar."]


def test_a_short_line_of_conllu_is_named(tmp_path: Path) -> None:
    with raises(CorpusError, path=tmp_path / "a.conllu", line=2, match="10 columns.*got 2"):
        _read(tmp_path / "a.conllu", "# text = x\n1\tx\n")
