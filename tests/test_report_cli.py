"""stillvec evaluate --report: a page, tables, both; a wrong name is told before the work."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_sets import data, sets

from stillvec import save
from stillvec.cli import main


def folder_of(tmp_path: Path) -> list[str]:
    for name, vectors in sets(["one", "two"]).items():
        save(vectors, tmp_path / name)
    return [
        "evaluate",
        str(tmp_path / "one"),
        str(tmp_path / "two"),
        "--data",
        str(data(tmp_path)),
        "--no-cache",
        "--quiet",
    ]


def test_several_reports_are_written_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, table = tmp_path / "r.html", tmp_path / "r.csv"
    assert main([*folder_of(tmp_path), "--report", str(page), "--report", str(table)]) == 0
    assert "one" in page.read_text("utf-8")
    assert table.read_text("utf-8").startswith("vectors,task,dataset,")
    stdout = capsys.readouterr().out.replace("\n", "")
    assert page.name in stdout
    assert table.name in stdout


def test_a_report_of_no_known_form_is_refused_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*folder_of(tmp_path), "--report", str(tmp_path / "r.pdf")]) == 2
    output = capsys.readouterr()
    assert "r.pdf" in output.err.replace("\n", " ")
    assert output.out == ""
    assert not (tmp_path / "r.pdf").exists()
