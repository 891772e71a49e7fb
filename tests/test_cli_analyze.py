"""analyze, from the command line: tables, JSON, the figure, words that moved."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stillvec.analysis import geometry, probe, read_labelled, study
from stillvec.cli import main
from stillvec.combination.change import Change
from stillvec.formats import load, save
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

WORDS = [f"w{number}" for number in range(120)]


def _save(path: Path, seed: int) -> Path:
    """One latent space, another noise and rotation a seed; seed 9 swaps two words."""
    latent = np.random.default_rng(0).normal(size=(120, 9)) * np.linspace(2, 0.5, 9)
    random = np.random.default_rng(seed)
    if seed == 9:
        latent[[3, 40]] = latent[[40, 3]]
    rows = (latent + 0.1 * random.normal(size=latent.shape)) @ np.linalg.qr(random.normal(size=(9, 9)))[0]
    save(WordVectors(Vocabulary(WORDS, range(120, 0, -1)), rows.astype(np.float32)), path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return _save(tmp_path / "new", 9)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data" / "similarity").mkdir(parents=True)
    random = np.random.default_rng(1)
    drawn = [*random.integers(0, 120, (2, 60)), random.random(60)]
    lines = [f"w{a}\tw{b}\t{score:.3f}\n" for a, b, score in zip(*drawn, strict=True)]
    for name in ("first", "second"):
        (tmp_path / "data" / "similarity" / f"{name}.tsv").write_text("".join(lines))
    (tmp_path / "data" / "similarity" / "foreign.tsv").write_text("eins\tzwei\t3\n")
    return tmp_path / "data"


def test_tables_say_what_the_space_is_like(folder: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(folder), "--data", str(data), "--points", "3", "--without", "0,2"]) == 0
    out = capsys.readouterr().out
    assert "120 words x 9" in out
    for said in ("hubness: skewness of 10-occurrence", "norm against frequency", "components for 90%"):
        assert said in out
    lines = [line.split() for line in out.splitlines()]
    assert ["k", "variance", "%", "mean", "score", "x", "100"] in lines
    assert [line[0] for line in lines if len(line) == 3 and line[0] in "369"] == ["3", "6", "9"]
    assert any(line[:2] == ["foreign", "-"] for line in lines)
    assert "nan" not in out


def test_json_holds_what_the_functions_say(folder: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--data", str(data), "--points", "3", "--without", "1", "--json", "-"]
    assert main(["analyze", str(folder), *flags]) == 0
    said = json.loads(capsys.readouterr().out)
    vectors = load(folder)
    found = geometry(vectors)
    assert said["geometry"]["hubness"] == found.hubness
    assert tuple(said["geometry"]["variances"]) == found.variances
    studied = study(vectors, data, points=3, without=(1,))
    assert [*said["components"]["cumulative"]] == ["3", "6", "9"]
    assert said["components"]["thirds"]["middle"][0]["value"] == studied.thirds["middle"][0].value
    assert said["components"]["shares"] == studied.shares
    assert "moved" not in said


def test_json_is_written_to_a_file_and_the_tables_are_printed(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", str(folder), "--no-components", "--json", str(tmp_path / "a.json")]) == 0
    assert {*json.loads((tmp_path / "a.json").read_text("utf-8"))} == {"vectors", "geometry"}
    assert "120 words x 9" in capsys.readouterr().out


@pytest.mark.parametrize("ending", ["svg", "png"])
@pytest.mark.parametrize("flags", [[], ["--no-components"]])
def test_the_figure_is_drawn_with_the_same_bytes_twice(
    ending: str, flags: list[str], folder: Path, data: Path, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    files = [tmp_path / f"{number}.{ending}" for number in range(2)]
    for file in files:
        assert main(["analyze", str(folder), "--data", str(data), "--points", "3", *flags, "--out", str(file)]) == 0
    assert files[0].read_bytes() == files[1].read_bytes()
    assert len(files[0].read_bytes()) > 5000
    if ending == "svg":
        text = files[0].read_text("utf-8")
        assert "Mean norm of 10 bands" in text
        assert ("middle third alone" in text) == (not flags)


def test_components_are_probed_with_labelled_texts(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    lines = [f"{number % 3} w{number} w{(7 * number) % 120}\n" for number in range(90)]
    for name in ("first", "second", "third"):
        (tmp_path / f"{name}.txt").write_text("".join(lines))
    flags = [flag for name in ("first", "second", "third") for flag in ("--probe", str(tmp_path / f"{name}.txt"))]
    call = ["analyze", str(folder), "--no-components", *flags]
    assert main([*call, "--out", str(tmp_path / "a.svg")]) == 0
    out = capsys.readouterr().out
    assert "accuracy x 100" in out
    assert {"first", "second", "third"} <= {line.split()[0] for line in out.splitlines()}
    assert (tmp_path / "a.svg").read_text("utf-8").count("of one component alone") == 3
    assert main([*call, "--json", "-"]) == 0
    said = json.loads(capsys.readouterr().out)["probed"]
    assert [each["name"] for each in said] == ["first", "second", "third"]
    wanted = probe(load(folder), *read_labelled(tmp_path / "first.txt"), "first")
    assert tuple(said[0]["each"]) == wanted.each


def test_words_that_moved_since_are_listed(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, a, b = (str(_save(tmp_path / name, seed)) for name, seed in (("old", 1), ("a", 2), ("b", 3)))
    call = ["analyze", str(folder), "--no-components", "--against", old, "-k", "2"]
    assert main([*call, "--control", a, b]) == 0
    out = capsys.readouterr().out
    listed = [line.split()[0] for line in out.split("words that moved")[1].splitlines()[2:4]]
    assert {*listed} == {"w3", "w40"}
    assert "Without --control" not in out
    assert main([*call, "--json", "-"]) == 0
    said = json.loads(capsys.readouterr().out)["moved"]
    moves = Change()(load(old), load(folder))
    assert [each["word"] for each in said] == [*moves.words]
    assert [each["p"] for each in said] == moves.p.tolist()
    assert main(call) == 0
    assert "Without --control" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--out", "figure.pdf"], "figure.pdf"),
        (["--without", "1,x"], "--without: expected numbers"),
        (["--control", "a", "b"], "against"),
        (["--against", "teacher:minilm"], "--against: expected older vectors"),
        (["--data", "/nowhere/at/all"], "/nowhere/at/all"),
        (["--tasks", "similarty"], "did you mean 'similarity'"),
        (["--points", "0"], "points"),
        (["--probe", "/nowhere/at/all"], "/nowhere/at/all"),
        (["--no-components", "--neighbours", "0"], "neighbours"),
    ],
)
def test_a_wrong_call_is_one_sentence(
    flags: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", str(folder), *flags]) in (1, 2)
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


def test_without_test_data_the_geometry_is_still_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("STILLVEC_DATA", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["analyze", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "hubs" in out
    assert "components were not scored" in out


def test_without_matplotlib_the_extra_is_named_before_the_work(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    worked: list[Any] = []
    monkeypatch.setattr("stillvec.cli.analyze_command.analyze", lambda *given, **more: worked.append(given))
    assert main(["analyze", str(folder), "--out", str(tmp_path / "a.png")]) == 1
    assert "stillvec[plot]" in capsys.readouterr().err
    assert worked == []
