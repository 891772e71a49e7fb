"""The card beside vectors: made of the manifest alone, true for every way to make vectors, and its commands run."""

from __future__ import annotations

import importlib
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from tiny_corpus import sentences

from stillvec.baselines import BASELINES
from stillvec.cli import main
from stillvec.combination import COMBINERS
from stillvec.formats import load, read_manifest, save, write_folder
from stillvec.formats.model_card import METHODS, PAPERS, card
from stillvec.learners import LEARNERS
from stillvec.refinement import STEPS
from stillvec.vectors import WordVectors

PLAIN = {"format": 1, "stillvec": "0.1.0", "words": 2, "dim": 3, "dtype": "float32", "lowercase": True}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory, model: str) -> Path:
    """Vectors made in all ways there are, each with a card."""
    folder = tmp_path_factory.mktemp("cards")
    (folder / "cache").mkdir()
    for name, some in (("a", sentences(48)[:24]), ("b", sentences(48)[24:]), ("all", sentences(48))):
        (folder / f"{name}.txt").write_text("\n".join(some), "utf-8")
    (folder / "alike.txt").write_text("dog cat\n", "utf-8")
    given = ["--teacher", model, "--method", "aggregate", "--min-count", "1", "--seed", "3", "--quiet"]
    calls = {
        "distilled": ["distill", "all.txt", *given],
        "one": ["distill", "a.txt", *given],
        "two": ["distill", "b.txt", *given],
        "added": ["distill", "b.txt", *given, "--add-to", "one"],
        "merged": ["merge", "one", "two"],
        "trained": ["train", "all.txt", "--method", "glove:epochs=2,dim=8", "--threads", "1", "--min-count", "1"],
        "refined": [
            "refine",
            "distilled",
            "--step",
            "center",
            "--step",
            "retrofit:lexicon=alike.txt",
            "--step",
            "normalize",
        ],
        "combined": ["combine", "distilled", "trained", "--method", "svd:dim=6,weights=1,2"],
        "packed": ["refine", "trained", "--step", "quantize:to=int8"],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("STILLVEC_CACHE", str(folder / "cache"))
        for out, call in calls.items():
            assert main([*call, "--out", out]) == 0
    return folder


def front(text: str) -> dict[str, Any]:
    _, matter, _ = text.split("---\n", 2)
    found = yaml.safe_load(matter)
    assert isinstance(found, dict)
    return found


def blocks(text: str, kind: str = "") -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.M | re.S)


def commands(text: str) -> Iterator[list[str]]:
    for line in blocks(text.partition("## Reproduce")[2])[0].splitlines():
        yield shlex.split(line)[1:]


WAYS = ("distilled", "added", "merged", "trained", "refined", "combined", "packed")


@pytest.mark.parametrize("name", WAYS)
def test_every_result_has_a_card_that_is_made_of_its_manifest(name: str, directory: Path) -> None:
    text = (directory / name / "README.md").read_text("utf-8")
    manifest = read_manifest(directory / name)
    assert text == card(manifest)
    assert front(text)["library_name"] == "stillvec"
    assert manifest["method"] in front(text)["tags"]
    assert f"# {manifest['words']:,} word vectors by {manifest['method']}\n" in text
    assert str(directory) not in text
    assert str(directory.parent) not in text, "no place of the machine"
    assert "\n\n\n" not in text


@pytest.mark.parametrize("name", ["distilled", "merged", "trained", "refined", "combined", "packed"])
def test_the_commands_of_a_card_make_the_same_vectors_again(
    name: str, directory: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run as they stand, but for the place of the teacher, which a card does not tell."""
    monkeypatch.chdir(directory)
    for words in commands((directory / name / "README.md").read_text("utf-8")):
        words = [model if word == Path(model).name else word for word in words]
        words = [f"again-{word}" if word in ("FOLDER", "REFINED") else word for word in words]
        assert main([*words, "--force"]) == 0
    again = load(words[words.index("--out") + 1])
    assert again.words == load(directory / name).words
    assert np.array_equal(again.matrix, load(directory / name).matrix)


@pytest.mark.parametrize("name", ["distilled", "combined"])
def test_the_code_of_a_card_reads_the_vectors(name: str, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (directory / name / "README.md").read_text("utf-8")
    ours, plain = (block.replace("FOLDER", str(directory / name)) for block in blocks(text, "python"))
    known: dict[str, Any] = {}
    exec(ours, known)
    exec(plain, known)
    assert capsys.readouterr().out.startswith(f"({load(directory / name).dim},)")
    assert tuple(known["words"]) == known["vectors"].words
    assert np.array_equal(known["matrix"], known["vectors"].matrix)


def test_a_card_tells_corpora_steps_and_what_a_lexicon_means(directory: Path) -> None:
    text = (directory / "merged" / "README.md").read_text("utf-8")
    assert "| text | a.txt, " in text
    assert "| text | b.txt, " in text
    text = (directory / "added" / "README.md").read_text("utf-8")
    assert "| text | a.txt, " in text
    assert "--add-to one" in text
    text = (directory / "refined" / "README.md").read_text("utf-8")
    assert "1. Refined by `center`: the mean vector subtracted." in text
    assert "lexicon: its pairs are no fair test" in text
    assert "Faruqui, Dodge" in text
    assert "Bommasani" in text
    text = (directory / "combined" / "README.md").read_text("utf-8")
    assert "| combined from | trained, " in text
    assert "Pennington" in text, "what a space was made by is cited too"
    assert "compressed as int8" in (directory / "packed" / "README.md").read_text("utf-8")
    assert "teacher" not in (directory / "trained" / "README.md").read_text("utf-8").replace("no teacher", "")


def test_vectors_without_provenance_have_a_card_that_says_so(tmp_path: Path) -> None:
    save(WordVectors(["ice"], [[1.0, 2.0]]), tmp_path / "v")
    assert "How they were made is not recorded." in (tmp_path / "v" / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        ({"teacher": {"name": "minilm"}}, "The teacher, sentence-transformers/all-MiniLM-L6-v2, is under Apache-2.0."),
        ({"teacher": {"name": "./minilm"}}, "The teacher, minilm, has a licence that is not recorded here."),
        ({"teacher": {"name": "org/model"}}, "The teacher, org/model, has a licence that is not recorded here."),
        ({"teacher": {"name": "/home/me/model"}}, "The teacher, model, has a licence that is not recorded here."),
        ({"distillation": {"method": "auto:dictionary=/home/me/g.tsv,dim=3"}}, "auto:dictionary=g.tsv,dim=3 --out"),
        ({"distillation": {"method": "auto:dim=3,additive"}}, "several folders"),
        ({"method": "new", "settings": {"files": ["/home/me/a", "b"]}}, "`files=a|b`"),
        ({"corpus": {"sources": ["a|b\n# c"], "words": 5}}, "| text | a\\|b # c, 5 words |"),
        ({"language": "de"}, 'language: "de"'),
        ({"subwords": {"minn": 3}}, "by its spelling"),
        ({"method": "align", "settings": {"tags": ["en", "de"]}}, 'language: ["en", "de"]'),
        ({"teacher": "x", "read": [], "settings": 3, "refined": [7], "corpus": None}, "How they were made"),
    ],
)  # fmt: skip
def test_any_manifest_has_a_card(manifest: dict[str, Any], expected: str) -> None:
    text = card({**PLAIN, **manifest})
    assert expected in text
    assert "/home/me" not in text
    front(text)


def test_scores_of_an_evaluation_stand_in_the_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_folder(WordVectors(["ice", "snow"], [[1, 2], [2, 1]]), tmp_path / "v", {})
    score = {"task": "similarity", "dataset": "men", "metric": "spearman", "value": 0.7512, "low": 0.7, "high": 0.8}
    score |= {"n_items": 3000, "n_covered": 2990, "words": "own"}
    sets = [{"vectors": name, "scores": [score | {"value": value}]} for name, value in (("v", 0.7512), ("w", 0.1))]
    (tmp_path / "scores.json").write_text(json.dumps(sets), "utf-8")
    assert main(["info", str(tmp_path / "v"), "--card", "--scores", str(tmp_path / "scores.json")]) == 0
    text = capsys.readouterr().out
    assert "| similarity | men | spearman | 0.751 | 0.700 to 0.800 | 2,990 of 3,000 |" in text
    assert "0.100" not in text
    assert main(["info", str(tmp_path / "v"), "--card"]) == 0
    assert capsys.readouterr().out == (tmp_path / "v" / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ("{", "expected scores"),
        ("[]", "those of nothing"),
        ('[{"vectors": "x", "scores": []}, {"vectors": "y", "scores": []}]', "of x, y"),
    ],
)
def test_scores_of_others_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], scores: str, message: str
) -> None:
    write_folder(WordVectors(["ice"], [[1, 2]]), tmp_path / "v", {})
    (tmp_path / "s.json").write_text(scores, "utf-8")
    assert main(["info", str(tmp_path / "v"), "--card", "--scores", str(tmp_path / "s.json")]) == 1
    said = capsys.readouterr()
    assert message in said.err
    assert said.out == ""


def test_parts_from_a_paper_cite_it_and_every_citation_is_used() -> None:
    importlib.import_module("stillvec.verbs.transformation")  # which registers a combiner that trains
    registries = (LEARNERS, BASELINES, STEPS, COMBINERS)
    parts = {(registry, name): registry[name] for registry in registries for name in registry}
    assert {key for part in parts.values() for key in getattr(part, "PAPERS", ())} == {*PAPERS}
    for (registry, name), part in parts.items():
        facts = (part.SUMMARY, getattr(part, "PAPERS", ()))
        if registry in (LEARNERS, BASELINES):
            assert METHODS[name] == facts
        first_line = (importlib.import_module(part.__module__).__doc__ or "").splitlines()[0]
        if re.search(r"\b(19|20)\d\d\b", first_line):
            assert facts[1], name
    assert {*METHODS} == {*LEARNERS, *BASELINES}
