"""What a new user meets in the first hour: suggestions, lists of parts, tables, notes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stillvec
from stillvec import WordVectors
from stillvec.baselines import BASELINES
from stillvec.cli import distill_command, main
from stillvec.cli.console import table
from stillvec.combination import COMBINERS
from stillvec.errors import VocabularyError
from stillvec.evaluation import TASKS
from stillvec.heads import HEADS
from stillvec.heads.training_options import OPTIONS
from stillvec.learners import LEARNERS
from stillvec.refinement import STEPS
from stillvec.registry import Registry
from stillvec.vocabulary import Vocabulary


@pytest.fixture
def cased() -> WordVectors:
    words = ["haust", "Haus", "Maus", "HTML", "hausten", "haustier", *(f"haus{letter}" for letter in "bcdefgh")]
    return WordVectors(Vocabulary(words, lowercase=False), np.eye(len(words), dtype=np.float32))


def test_a_word_in_another_case_is_suggested_first(cased: WordVectors) -> None:
    with pytest.raises(VocabularyError, match="did you mean 'Haus' or "):
        cased.nearest("haus")
    with pytest.raises(VocabularyError, match="did you mean 'HTML'"):
        cased.nearest("html")


def test_at_most_three_words_are_suggested(cased: WordVectors) -> None:
    with pytest.raises(VocabularyError) as caught:
        cased.nearest("hausx")
    assert 1 <= str(caught.value).count("'haus") - 1 <= 3
    with pytest.raises(VocabularyError) as caught:
        cased.nearest("xylophone")
    assert "'haus" not in str(caught.value)


def test_the_server_suggests_another_case_first(cased: WordVectors) -> None:
    testclient = pytest.importorskip("fastapi.testclient")
    from stillvec.service.application import create_app
    from stillvec.service.models import ServedModels

    client = testclient.TestClient(create_app(ServedModels({"v": cased})))
    for word, meant in {"haus": "Haus", "html": "HTML", "MAUS": "Maus"}.items():
        assert f"did you mean {meant!r}?" in client.get("/nearest", params={"word": word}).json()["error"]["message"]


@pytest.mark.parametrize(
    ("verb", "flag", "parts"),
    [
        ("distill", "--list-methods", LEARNERS),
        ("train", "--list-methods", BASELINES),
        ("combine", "--list-methods", COMBINERS),
        ("refine", "--list-steps", STEPS),
        ("evaluate", "--list-tasks", TASKS),
        ("fit", "--list-heads", HEADS),
        ("fit", "--list-options", OPTIONS),
    ],
)
def test_parts_are_listed_by_every_command_that_takes_them(
    verb: str, flag: str, parts: Registry[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([verb, flag])
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines if not line.startswith(" ")] == [*parts]
    if flag == "--list-options":  # which share a file
        assert len({*lines}) == len(lines)


def test_a_table_without_column_names_has_no_header_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("rich")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    table("Estimate", ("", ""), [("time", "1 s")])
    without = capsys.readouterr().out
    table("Estimate", ("what", "much"), [("time", "1 s")])
    assert len(without.splitlines()) == len(capsys.readouterr().out.splitlines()) - 2


@pytest.mark.parametrize("flags", [[], ["--no-statistics"], ["--quiet"]])
def test_the_end_of_a_run_names_the_size_of_the_statistics(
    flags: list[str], tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(distill_command, "_MIN_REPORTED", 1)
    (tmp_path / "text.txt").write_text("The baker sells bread. " * 9, "utf-8")
    call = ["distill", str(tmp_path / "text.txt"), "--teacher", model, "--method", "aggregate"]
    assert main([*call, "--out", str(tmp_path / "v"), *flags]) == 0
    assert ("--no-statistics leaves them out" in capsys.readouterr().out) is (not flags)


def test_a_wrong_call_exits_with_2_and_bad_input_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stillvec.save(WordVectors(["ice"], [[1.0, 2.0]]), tmp_path / "v")
    (tmp_path / "bad.vec").write_text("2 3\nice 1 2\n", "utf-8")
    wrong = [
        ["distill", "x", "--contexts", "abc", "--out", str(tmp_path / "o")],
        ["refine", str(tmp_path / "v"), "--step", "nothing", "--out", str(tmp_path / "o")],
        ["refine", str(tmp_path / "v"), "--step", "center", "--out", str(tmp_path / "v")],
    ]
    for call in wrong:
        assert main(call) == 2, call
    for call in (["evaluate", str(tmp_path / "v"), "--tasks", "foo"], ["distil", "x"], ["distill", "--seed", "x"]):
        with pytest.raises(SystemExit, match="2"):
            main(call)
    for bad in (["nearest", str(tmp_path / "bad.vec"), "ice"], ["nearest", str(tmp_path / "v"), "snow"]):
        assert main(bad) == 1, bad
    assert "Traceback" not in capsys.readouterr().err
