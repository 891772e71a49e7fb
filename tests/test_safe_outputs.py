"""Nothing is overwritten silently: existing results, inputs as outputs, finished runs, and what cannot be mixed."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from error_checks import raises
from tiny_corpus import sentences

import stillvec
from stillvec import WordVectors
from stillvec.cli import main
from stillvec.errors import AlreadyFinished, StillvecWarning, UsageError
from stillvec.formats import load, read_manifest, read_statistics
from stillvec.teachers import Teacher

TEXTS = sentences(96)
SETTINGS = ["--min-count", "1", "--contexts", "3", "--method", "aggregate", "--quiet"]
Distil = Callable[..., int]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with texts."""
    for name, lines in {"one": TEXTS[:48], "two": [*TEXTS[48:], "A lonely walrus whistles."]}.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(lines), "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def distil(folder: Path, model: str) -> Distil:
    def call(text: str, out: str, *more: str, settings: list[str] = SETTINGS) -> int:
        return main(["distill", f"{text}.txt", "--teacher", model, "--out", out, *settings, *more])

    return call


@pytest.fixture
def nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("the teacher was run")

    monkeypatch.setattr(Teacher, "states", fail)


def contents(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()} if path.is_dir() else {"": path.read_bytes()}


@pytest.fixture
def vectors() -> WordVectors:
    return WordVectors(["ice", "snow", "sea", "fire"], np.arange(16, dtype=np.float32).reshape(4, 4) ** 0.5)


# ---- what exists


def test_an_existing_result_is_described_and_not_replaced(distil: Distil, folder: Path, capsys: Any) -> None:
    assert distil("one", "v") == 0
    before = contents(folder / "v")
    assert distil("one", "v", "--max-words", "9") == 2
    stderr = capsys.readouterr().err
    size = f"{len(load('v')):,} words x {load('v').dim}"
    assert stderr.count("\n") == 1
    for part in ("v exists", size, "aggregate", read_manifest("v")["made"][:10], "statistics", "--force"):
        assert part in stderr
    assert contents(folder / "v") == before
    assert distil("one", "v", "--max-words", "9", "--force") == 0
    assert len(load("v")) == 9


def test_every_verb_refuses_what_exists(folder: Path, vectors: WordVectors) -> None:
    stillvec.save(vectors, "v")
    stillvec.save(vectors.with_provenance({"other": True}), "other")
    stillvec.save(vectors.subset(["ice", "sea"]), "old")
    stillvec.save(vectors.subset(["ice", "sea"]), "old.vec")
    calls: dict[str, Callable[..., object]] = {
        "refine": lambda **given: stillvec.refine("v", "center", out="old", **given),
        "combine": lambda **given: stillvec.combine(["v", "other"], "average", out="old", **given),
        "convert": lambda **given: stillvec.convert("v", "old", **given),
        "convert to a file": lambda **given: stillvec.convert("v", "old.vec", **given),
        "save": lambda **given: stillvec.save(vectors, "old", **given),
        "save to a file": lambda **given: stillvec.save(vectors, "old.vec", **given),
    }
    for name, call in calls.items():
        with raises(UsageError, code="exists", match="2 words|bytes"):
            call()
        assert len(load("old.vec" if "file" in name else "old")) == 2, name
    for name, call in calls.items():
        call(force=True)
        assert len(load("old.vec" if "file" in name else "old")) == 4, name


def test_an_empty_file_and_an_empty_folder_are_free(folder: Path, vectors: WordVectors) -> None:
    (folder / "new.vec").touch()
    (folder / "new").mkdir()
    stillvec.save(vectors, "new.vec")
    stillvec.save(vectors, "new")
    assert len(load("new.vec")) == len(load("new")) == 4


# ---- an output is never its own input


def test_no_verb_writes_onto_its_input(folder: Path, vectors: WordVectors) -> None:
    stillvec.save(vectors, "v")
    stillvec.save(vectors, "v.vec")
    (folder / "link").symlink_to("v")
    calls: list[Callable[[], object]] = [
        lambda: stillvec.refine("v", "center", out="./v", force=True),
        lambda: stillvec.refine("v.vec", "center", like="link", out="v", force=True),
        lambda: stillvec.combine(["v.vec", "v"], "average", out="link", force=True),
        lambda: stillvec.convert("v.vec", "./v.vec", force=True),
        lambda: stillvec.convert("link", "v", force=True),
    ]
    before = contents(folder / "v"), contents(folder / "v.vec")
    stillvec.refine("v", "center", out="refined")
    shutil.copy("refined/manifest.json", "v/manifest.json")  # so that `like` has a step
    for call in calls:
        with raises(UsageError, code="own-input"):
            call()
    shutil.copy("v/README.md", "v/README.md.bak")
    assert contents(folder / "v.vec") == before[1]
    assert contents(folder / "v")["vectors.safetensors"] == before[0]["vectors.safetensors"]


def test_the_corpus_is_not_replaced(folder: Path, distil: Distil, capsys: Any) -> None:
    (folder / "README.md").write_text("\n".join(TEXTS), "utf-8")
    assert main(["train", "README.md", "--method", "sent2vec", "--min-count", "1", "--out", ".", "--force"]) == 2
    assert "README.md" in capsys.readouterr().err
    assert (folder / "README.md").read_text("utf-8") == "\n".join(TEXTS)


def test_reports_do_not_replace_the_vectors(folder: Path, vectors: WordVectors, capsys: Any) -> None:
    stillvec.save(vectors, "v.vec")
    before = contents(folder / "v.vec")
    (folder / "data" / "similarity").mkdir(parents=True)
    (folder / "data" / "similarity" / "a.tsv").write_text("ice\tsnow\t9\nice\tfire\t1\nsea\tsnow\t4\n")
    calls = [["evaluate", "v.vec", "--data", "data", "--json", "v.vec"], ["analyze", "v.vec", "--json", "v.vec"]]
    calls += [["analyze", "--explain", "s.json", "--by", "f.tsv", "--json", "s.json"]]
    for call in calls:
        assert main(call) == 2
        assert "also an input" in capsys.readouterr().err
    assert contents(folder / "v.vec") == before


# ---- a finished run


def test_a_finished_distillation_is_not_computed_again(
    distil: Distil, folder: Path, capsys: Any, request: pytest.FixtureRequest
) -> None:
    assert distil("one", "v") == 0
    before = contents(folder / "v")
    request.getfixturevalue("nobody_reads")
    capsys.readouterr()
    assert distil("one", "v") == 0
    stdout = capsys.readouterr().out
    assert "already finished" in stdout
    assert "Wrote" not in stdout
    assert "The teacher read" not in stdout
    assert contents(folder / "v") == before
    (folder / "moved.txt").write_bytes((folder / "one.txt").read_bytes())
    assert distil("moved", "v") == 0, "the same text under another name"


OTHER = {
    "a setting": ["--seed", "3"],
    "a word": ["--include-words", "words.txt"],
    "capitals": ["--cased"],
    "no statistics": ["--no-statistics"],
    "a method's setting": ["--method", "aggregate:pieces=first"],
    "a precision": ["--precision", "bf16"],
}


@pytest.mark.parametrize("case", [*OTHER])
def test_another_request_is_not_taken_for_finished(case: str, distil: Distil, folder: Path) -> None:
    (folder / "words.txt").write_text("walrus\n", "utf-8")
    assert distil("one", "v") == 0
    assert distil("one", "v", *OTHER[case]) == 2


def test_other_text_and_another_teacher_are_named(distil: Distil, folder: Path, capsys: Any) -> None:
    from tiny_teachers import write_tiny_model

    write_tiny_model(folder / "other", "bert", seed=1)
    assert distil("one", "v") == 0
    assert distil("two", "v") == 2
    assert "another text" in capsys.readouterr().err
    assert distil("one", "v", "--teacher", "other") == 2
    assert "another teacher" in capsys.readouterr().err


def test_a_run_of_several_methods_is_finished_when_all_are(distil: Distil, folder: Path, capsys: Any) -> None:
    methods = ["--method", "aggregate,aggregate:pieces=first"]
    assert distil("one", "v", *methods) == 0
    before = contents(folder / "v" / "aggregate")
    shutil.rmtree("v/aggregate-2")
    assert distil("one", "v", *methods) == 0
    assert (folder / "v" / "aggregate-2" / "manifest.json").is_file()
    assert contents(folder / "v" / "aggregate")["vectors.safetensors"] == before["vectors.safetensors"]
    capsys.readouterr()
    assert distil("one", "v", *methods) == 0
    assert capsys.readouterr().out.count("already finished") == 2


def test_every_layer_is_recognized(distil: Distil, folder: Path, capsys: Any) -> None:
    assert distil("one", "v", "--layer", "all") == 0
    capsys.readouterr()
    assert distil("one", "v", "--layer", "all") == 0
    assert capsys.readouterr().out.count("already finished") == len([*Path("v").iterdir()])
    assert distil("one", "v", "--layer", "all", "--seed", "1") == 2


def test_a_finished_training_is_not_computed_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call = ["train", "one.txt", "--method", "sent2vec", "--min-count", "1", "--out", "t", "--threads", "1", "--quiet"]
    assert main(call) == 0
    before = contents(folder / "t")
    assert main(call) == 0
    assert contents(folder / "t") == before
    assert main([*call, "--dim", "7"]) == 2
    (folder / "one.txt").write_text("Other text is here.\n" * 9, "utf-8")
    assert main(call) == 2
    assert contents(folder / "t") == before


def test_finished_vectors_are_returned_with_a_warning(folder: Path, vectors: WordVectors) -> None:
    stillvec.save(vectors, "v")
    stillvec.save(vectors.subset(["sea", "ice"]), "w")
    calls: dict[str, Callable[..., WordVectors]] = {
        "r": lambda **given: stillvec.refine("v", "center", out="r", **given),
        "c": lambda **given: stillvec.combine(["v", "w"], "concat", out="c", **given),
        "s": lambda **given: stillvec.convert("v", "s", **given),
        "s.vec": lambda **given: stillvec.convert("v", "s.vec", **given),
        "s.npy": lambda **given: stillvec.convert("v", "s.npy", **given),
    }
    for out, call in calls.items():
        first, before = call(), contents(Path(out))
        with pytest.warns(AlreadyFinished) as caught:
            again = call()
        assert caught[0].message.path == out  # type: ignore[union-attr]
        assert np.array_equal(first.matrix, again.matrix)
        assert contents(Path(out)) == before
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call(force=True)
    stillvec.save(vectors.subset(["ice", "snow"]), "v", force=True)
    for call in calls.values():
        with raises(UsageError, code="exists"):
            call()


def test_changed_vectors_are_not_taken_for_those_of_the_request(folder: Path, vectors: WordVectors) -> None:
    """A subset of a result keeps its provenance, but not what the folder is recognized by."""
    stillvec.save(vectors, "v")
    refined = stillvec.refine("v", "center", out="r")
    stillvec.save(load("r").subset(["ice"]), "copy")
    stillvec.save(refined, "again")
    for out in ("copy", "again"):
        with raises(UsageError, code="exists"):
            stillvec.refine("v", "center", out=out)


RECIPE = """
[[distill]]
corpus = ["one.txt"]
teacher = "$TINY_TEACHER"
method = "aggregate"
min-count = 1
out = "v"

[[refine]]
in = "v"
steps = ["center"]
out = "r"

[[convert]]
in = "r"
out = "r.vec"
"""


@pytest.mark.usefixtures("folder")
def test_a_finished_recipe_says_so(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: Any, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("TINY_TEACHER", model)
    Path("recipe.toml").write_text(RECIPE, "utf-8")
    call = ["run", "recipe.toml", "--quiet"]
    assert main(call) == 0
    before = [contents(Path(name)) for name in ("v", "r", "r.vec")]
    request.getfixturevalue("nobody_reads")
    capsys.readouterr()
    assert main(call) == 0
    output = capsys.readouterr().out
    assert output.count("already finished") == 3
    assert "Wrote" not in output
    Path("recipe.toml").write_text(RECIPE.replace("center", "normalize"), "utf-8")
    assert main(call) == 2, "before the first step"
    assert [contents(Path(name)) for name in ("v", "r", "r.vec")] == before
    assert main([*call, "--force"]) == 0, "what is finished is kept, and what differs is replaced"
    assert contents(Path("v")) == before[0]
    assert [step["step"] for step in read_manifest("r")["refined"]] == ["normalize"]
    assert contents(Path("r.vec")) != before[2]


# ---- --add-to and merge


def test_settings_that_are_not_given_are_those_of_the_earlier_result(distil: Distil, model: str) -> None:
    given = ["--cased", "--layer", "1", "--dim", "5", "--seed", "4", "--max-words", "70"]
    methods = ["--method", "additive,aggregate:pieces=first"]
    assert distil("one", "v", *given, *methods) == 0
    assert main(["distill", "two.txt", "--add-to", "v/aggregate", "--out", "more", "--quiet"]) == 0
    first, more = read_manifest("v/aggregate"), read_manifest("more")
    assert more["settings"] == first["settings"]
    assert more["distillation"] == first["distillation"] | {"method": "aggregate:pieces=first"}
    assert more["teacher"]["name"] == model
    assert {"The", "the"} <= {*load("more").words} or "The" in load("more").words
    assert more["lowercase"] is False
    assert distil("two", "again", "--add-to", "v/aggregate", settings=["--method", "aggregate", "--contexts", "9"]) == 0
    again = read_manifest("again")
    assert again["settings"] == first["settings"]
    assert again["distillation"]["contexts"] == 9
    added = stillvec.distill("two.txt", add_to="v/aggregate")
    assert np.array_equal(added.matrix, load("more").matrix)


def test_every_layer_of_a_run_can_be_added_to(distil: Distil) -> None:
    assert distil("one", "v", "--layer", "all") == 0
    assert main(["distill", "two.txt", "--add-to", "v/aggregate-layer-1", "--out", "more", "--quiet"]) == 0
    assert read_manifest("more")["settings"]["layer"] == "1"


def test_cased_and_lower_cased_results_are_not_mixed(distil: Distil, folder: Path, capsys: Any) -> None:
    assert distil("one", "lower") == 0
    assert distil("two", "cased", "--cased") == 0
    capsys.readouterr()
    assert distil("two", "mixed", "--cased", "--add-to", "lower") == 2
    assert "case-sensitive" in capsys.readouterr().err
    assert main(["merge", "lower", "cased", "--out", "mixed"]) == 2
    assert "case-sensitive" in capsys.readouterr().err
    with raises(UsageError, code="conflict"):
        stillvec.distill("two.txt", add_to="cased", lowercase=True)
    assert not (folder / "mixed").exists()


def test_the_same_text_added_twice_gives_a_warning(distil: Distil, folder: Path, capsys: Any) -> None:
    assert distil("one", "v") == 0
    assert distil("one", "w") == 0
    assert distil("two", "x") == 0
    capsys.readouterr()
    assert main(["distill", "one.txt", "--add-to", "v", "--out", "twice", "--quiet"]) == 0
    assert "one.txt" in capsys.readouterr().err
    (folder / "all").mkdir()
    for name in ("one", "two"):
        (folder / "all" / f"{name}-copy.txt").write_bytes((folder / f"{name}.txt").read_bytes())
    assert main(["distill", "all", "--add-to", "v", "--out", "partly", "--quiet"]) == 0
    stderr = capsys.readouterr().err
    assert "one-copy.txt" in stderr
    assert "two-copy.txt" not in stderr
    assert main(["distill", "two.txt", "--add-to", "twice", "--out", "good", "--quiet"]) == 0
    assert capsys.readouterr().err == ""
    with pytest.warns(StillvecWarning, match="twice"):
        stillvec.merge(["v", "w"])
    with pytest.warns(StillvecWarning, match="twice"):
        stillvec.merge(["x", "good"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stillvec.merge(["v", "x"])


def test_the_card_of_a_grown_result_is_true(distil: Distil, folder: Path) -> None:
    (folder / "words.txt").write_text("zebra\n", "utf-8")
    (folder / "third.txt").write_text("A zebra whistles. A gnu sings.\n", "utf-8")
    assert distil("one", "v", "--include-words", "words.txt") == 0
    assert read_manifest("v")["read"]["words_without_context"] == 1
    assert distil("third", "grown", "--add-to", "v") == 0
    manifest, card = read_manifest("grown"), Path("grown/README.md").read_text("utf-8")
    alone = int((read_statistics("grown")["states/sum:alone"] > 0).sum())
    assert manifest["read"]["words_without_context"] == alone == 0
    assert "without context" not in card.partition("## How to use")[0].partition("## How they")[2]
    n_sentences = read_manifest("v")["read"]["sentences"] + manifest["read"]["sentences"]
    assert f"read {n_sentences:,} sentences" in card
    assert distil("one", "w") == 0
    assert main(["merge", "w", "grown", "--out", "merged"]) == 0
    assert json.loads(Path("merged/manifest.json").read_text("utf-8"))["read"]["words_without_context"] == 0
