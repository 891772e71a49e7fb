"""stillvec refine and stillvec.refine: chains of steps, saved with the vectors and run on others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stillvec
from stillvec import Vocabulary, WordVectors
from stillvec.cli import main
from stillvec.combination import COMBINERS
from stillvec.errors import UsageError
from stillvec.files import file_digest
from stillvec.formats import load, read_manifest, save, write_folder
from stillvec.refinement import STEPS, read_step
from stillvec.refinement.all_but_the_top import AllButTheTop
from stillvec.refinement.center import Center
from stillvec.refinement.normalize import Normalize
from stillvec.refinement.retrofit import Retrofit


@pytest.fixture
def vectors() -> WordVectors:
    words = ["king", "queen", "man", "woman", "雪"]
    matrix = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    return WordVectors(Vocabulary(words, range(5, 0, -1)), matrix)


@pytest.fixture
def lexicon(tmp_path: Path) -> Path:
    (tmp_path / "list.txt").write_text("king queen\nman woman\n")
    return tmp_path / "list.txt"


def test_steps_are_read_with_their_settings() -> None:
    assert read_step("center") == Center()
    assert read_step("all_but_the_top:directions=3") == AllButTheTop(3)
    assert read_step("retrofit:lexicon=a:b.txt,lexicon=c.txt, sweeps=4") == Retrofit(("a:b.txt", "c.txt"), 4)
    assert read_step(Normalize()) == Normalize()
    assert read_step({"step": "retrofit", "settings": {"lexicon": ["a"], "parts": []}}) == Retrofit(("a",))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [("centre", "did you mean 'center'"), ("center:x", "key=value"), ("retrofit", "'lexicon'"),
     ("pca:dims=3", "did you mean 'dim'"), ("pca:dim=few", "a whole number"),
     ("pca:dim=3,dim=4", "a whole number"), ("retrofit:lexicon=a,parts=nouns", "'noun' or 'verb'")],
)  # fmt: skip
def test_an_unknown_step_is_refused_with_the_reason(wrong: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        read_step(wrong)


def test_refine_is_one_step_after_another(vectors: WordVectors, lexicon: Path) -> None:
    wanted = Normalize()(Retrofit((str(lexicon),), sweeps=3)(Center()(vectors)))
    after = stillvec.refine(vectors, "center", f"retrofit:lexicon={lexicon},sweeps=3", Normalize())
    assert np.array_equal(after.matrix, wanted.matrix)
    assert after.vocabulary == vectors.vocabulary


def test_the_verb_does_the_same_and_keeps_how_the_vectors_were_made(
    vectors: WordVectors, lexicon: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_folder(vectors, tmp_path / "v", {"method": "aggregate", "corpus": {"words": 7}})
    steps = ["center", f"retrofit:lexicon={lexicon}", "normalize"]
    call = ["refine", str(tmp_path / "v"), "--out", str(tmp_path / "r"), *(f"--step={step}" for step in steps)]
    assert main(call) == 0
    assert "center: 5 words x 4\n" in capsys.readouterr().out
    assert np.array_equal(load(tmp_path / "r").matrix, stillvec.refine(vectors, *steps).matrix)
    manifest = read_manifest(tmp_path / "r")
    assert manifest["method"] == "aggregate"
    assert [each["step"] for each in manifest["refined"]] == ["center", "retrofit", "normalize"]
    assert manifest["refined"][1]["settings"]["lexicon"] == [str(lexicon)]
    assert manifest["refined"][1]["files"] == {str(lexicon): file_digest(lexicon)}


def test_the_chain_of_one_folder_is_run_on_other_vectors(vectors: WordVectors, lexicon: Path, tmp_path: Path) -> None:
    save(vectors, tmp_path / "v")
    first, again = tmp_path / "first", tmp_path / "again"
    assert main(["refine", str(tmp_path / "v"), "--step", f"retrofit:lexicon={lexicon}", "--out", str(first)]) == 0
    assert main(["refine", str(first), "--step", "normalize", "--out", str(again)]) == 0
    chain = read_manifest(again)["refined"]
    assert [each["step"] for each in chain] == ["retrofit", "normalize"]

    others = WordVectors(vectors.vocabulary, np.random.default_rng(1).normal(size=(5, 6)).astype(np.float32))
    save(others, tmp_path / "others.vec", format="word2vec")
    call = ["refine", str(tmp_path / "others.vec"), "--like", str(again), "--step", "center"]
    assert main([*call, "--out", str(tmp_path / "o")]) == 0
    wanted = stillvec.refine(load(tmp_path / "others.vec"), *chain, "center")
    assert np.array_equal(load(tmp_path / "o").matrix, wanted.matrix)
    assert read_manifest(tmp_path / "o")["source"] == "others.vec"


def test_what_is_wrong_is_said_before_vectors_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "r")
    save(WordVectors(["a"], [[1.0]]), tmp_path / "plain")
    for call, sentence in (
        (["--step", "centre"], "did you mean 'center'"),
        ([], "at least one step"),
        (["--like", str(tmp_path / "plain")], "were not refined"),
    ):
        assert main(["refine", str(tmp_path / "nowhere"), "--out", out, *call]) == 2
        assert sentence in capsys.readouterr().err
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("x")
    assert main(["refine", str(tmp_path / "plain"), "--step", "normalize", "--out", str(tmp_path / "full")]) == 2
    assert "manifest.json" in capsys.readouterr().err
    assert not Path(out).exists()


def test_vectors_are_not_refined_onto_themselves(vectors: WordVectors, tmp_path: Path, capsys: Any) -> None:
    save(vectors, tmp_path / "v")
    (tmp_path / "link").symlink_to("v")
    for out in ("v", "link", "../" + tmp_path.name + "/v"):
        call = ["refine", str(tmp_path / "v"), "--step", "normalize", "--out", str(tmp_path / out)]
        assert main([*call, "--force"]) == 2
        assert "also an input" in capsys.readouterr().err
        assert main(call) == 2
    assert np.array_equal(load(tmp_path / "v").matrix, vectors.matrix)


def test_a_lexicon_that_teaches_nothing_is_noted(
    vectors: WordVectors, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(vectors, tmp_path / "v")
    (tmp_path / "list.txt").write_text("apples oranges\n")
    call = ["refine", str(tmp_path / "v"), "--step", f"retrofit:lexicon={tmp_path / 'list.txt'}"]
    assert main([*call, "--out", str(tmp_path / "r")]) == 0
    assert "No edge of" in "".join(capsys.readouterr())
    assert json.loads((tmp_path / "r" / "manifest.json").read_text())["refined"]


@pytest.mark.parametrize(
    ("verb", "flag", "known"), [("refine", "--list-steps", STEPS), ("combine", "--list-methods", COMBINERS)]
)
def test_all_steps_are_listed_with_their_settings(
    verb: str, flag: str, known: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([verb, flag])
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines[::2]] == [*known]
    assert all(line.startswith("    ") and len(line) > 20 for line in lines[1::2])
    listed = dict(line.partition(":")[::2] for line in lines[::2])
    if verb == "refine":
        assert (listed["quantize"], listed["center"]) == ("to=int8,[parts=],codes=256,seed=0", "")
        assert listed["select_dims"] == "dim=,[pairs=]"
    else:
        assert listed["svd"] == "[dim=],power=1,[weights=],words=union"


def test_an_old_flag_works_and_is_named_in_one_line() -> None:
    call = [sys.executable, "-m", "stillvec", "refine", "--steps"]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    assert "center" in done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("stillvec: ")
    assert "--list-steps" in line
