"""Names of files that are not UTF-8 are escaped in what is written, and never end a run."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from tiny_corpus import sentences

import stillvec
from stillvec.cli import main

NAME = os.fsdecode(b"caf\xe9")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="file names are text elsewhere")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / f"{NAME}.txt"
    path.write_text("\n".join(sentences(30)), "utf-8")
    return path


def manifest(folder: Path) -> str:
    written = (folder / "manifest.json").read_bytes().decode("utf-8")
    (folder / "README.md").read_bytes().decode("utf-8")
    json.loads(written)
    return written


def test_every_verb_takes_names_that_are_not_utf8(
    text: Path, tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"{NAME}-out"
    distil = ["distill", str(text), "--teacher", model, "--method", "x2static:epochs=1", "--min-count", "1", "--quiet"]
    assert main([*distil, "--context-cache", str(tmp_path / f"{NAME}-store"), "--out", str(out)]) == 0
    assert r"caf\\xe9.txt" in manifest(out)
    assert json.loads(manifest(out))["corpus"]["sources"] == [r"caf\xe9.txt"]
    capsys.readouterr()
    words = tmp_path / f"{NAME}.vec"
    assert main(["convert", str(out), str(words)]) == 0
    assert "caf" in capsys.readouterr().out
    refined = tmp_path / "refined"
    assert main(["refine", str(words), "--step", "center", "--out", str(refined)]) == 0
    assert json.loads(manifest(refined))["source"] == r"caf\xe9.vec"
    both = tmp_path / "both"
    assert main(["combine", str(out), str(words), "--method", "average", "--out", str(both)]) == 0
    assert r"caf\\xe9.vec" in manifest(both)
    assert main(["info", str(text)]) == main(["info", str(words)]) == main(["nearest", str(words), "the"]) == 0


def test_training_takes_names_that_are_not_utf8(text: Path, tmp_path: Path) -> None:
    pytest.importorskip("gensim")
    stillvec.train(text, method="skipgram:epochs=1", dim=4, min_count=1, out=tmp_path / "out")
    assert r"caf\\xe9.txt" in manifest(tmp_path / "out")


def test_a_lexicon_may_have_such_a_name(text: Path, tmp_path: Path, model: str) -> None:
    vectors = stillvec.distill(text, teacher=model, method="aggregate", min_count=1)
    lexicon = tmp_path / f"{NAME}.lexicon"
    lexicon.write_text(" ".join(vectors.words[:3]) + "\n")
    stillvec.refine(vectors, f"retrofit:lexicon={lexicon}", out=tmp_path / "refined")
    assert r"\\xe9" in manifest(tmp_path / "refined")


def test_a_missing_file_of_such_a_name_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in (["info"], ["nearest", "x"], ["train", "--out", "o"]):
        assert main([verb[0], str(tmp_path / f"{NAME}.txt"), *verb[1:]]) in (1, 2)
        assert "Traceback" not in capsys.readouterr().err
