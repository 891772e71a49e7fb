"""Every recipe of recipes/ can be run: what it needs is checked as by `stillvec run --dry-run`."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest
from tiny_corpus import sentences

from stillvec.cli import main

RECIPES = sorted((Path(__file__).resolve().parents[1] / "recipes").glob("*.toml"))


@pytest.fixture
def inputs(tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with what the scripts of recipes/ write and the data folder that the environment names."""
    text = "\n".join(sentences(48))
    (tmp_path / "data" / "corpora").mkdir(parents=True)
    (tmp_path / "data" / "corpora" / "a.txt.xz").write_bytes(lzma.compress(text.encode()))
    (tmp_path / "out" / "sizes").mkdir(parents=True)
    for name in ("words.txt", "tuples/words.txt"):
        (tmp_path / "out" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "out" / name).write_text("farmer\nriver\n", "utf-8")
    for every in (64, 32, 16, 8, 4, 2, 1):
        (tmp_path / "out" / "sizes" / f"every-{every}.txt").write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STILLVEC_DATA", str(tmp_path / "data"))
    for name in ("MINILM", "MPNET", "GRANITE", "SMOLLM", "FLAIR"):
        (tmp_path / name).symlink_to(model)  # different teachers can be joined
        monkeypatch.setenv(f"STILLVEC_{name}", str(tmp_path / name))
    return tmp_path


@pytest.mark.skipif(not RECIPES, reason="a wheel has no recipes")
@pytest.mark.parametrize("recipe", RECIPES, ids=[recipe.name for recipe in RECIPES])
def test_a_recipe_passes_the_dry_run(recipe: Path, inputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if "parser = " in recipe.read_text("utf-8"):
        spacy = pytest.importorskip("spacy")
        pipeline = spacy.blank("en")
        pipeline.add_pipe("parser").add_label("nsubj")
        pipeline.initialize()
        pipeline.to_disk(inputs / "out" / "parser")
    assert main(["run", str(recipe), "--dry-run"]) == 0
    assert "1. " in capsys.readouterr().out
