"""Vectors carry how they were made through every function that changes, stores or loads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stillvec
from stillvec.errors import UsageError
from stillvec.formats import read_manifest, write_folder
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

HISTORY: dict[str, Any] = {
    "method": "auto",
    "settings": {"layer": 2},
    "teacher": {"name": "minilm", "digest": "ab12"},
    "corpus": {"words": 900, "sources": ["a.txt"]},
    "seed": 7,
}


@pytest.fixture
def vectors() -> WordVectors:
    matrix = np.random.default_rng(0).normal(size=(400, 16)).astype(np.float32)
    vocabulary = Vocabulary([f"w{row}" for row in range(400)], range(400, 0, -1))
    return WordVectors(vocabulary, matrix, provenance=HISTORY)


@pytest.fixture
def folder(vectors: WordVectors, tmp_path: Path) -> Path:
    stillvec.save(vectors, tmp_path / "v")
    return tmp_path / "v"


def _history(provenance: Any) -> dict[str, Any]:
    return {key: provenance[key] for key in HISTORY if key in provenance}


def test_a_folder_keeps_its_manifest_when_it_is_loaded_and_saved(folder: Path, tmp_path: Path) -> None:
    stillvec.save(stillvec.load(folder), tmp_path / "again")
    assert read_manifest(tmp_path / "again") == read_manifest(folder)
    assert _history(read_manifest(folder)) == HISTORY


def test_a_manifest_keeps_keys_that_is_unknown(vectors: WordVectors, tmp_path: Path) -> None:
    write_folder(vectors, tmp_path / "v", {"method": "old", "remark": {"x": [1, 2]}})
    stillvec.save(stillvec.load(tmp_path / "v"), tmp_path / "again")
    assert read_manifest(tmp_path / "again")["remark"] == {"x": [1, 2]}


def test_a_subset_and_other_vectors_of_the_same_words_keep_it(vectors: WordVectors) -> None:
    assert vectors.subset(["w3", "w1"]).provenance == HISTORY
    assert vectors.with_matrix(vectors.matrix * 2).provenance == HISTORY
    assert vectors.with_matrix(vectors.matrix, provenance={"a": 1}).provenance == {"a": 1}


def test_refined_vectors_say_each_step_after_what_was_there(vectors: WordVectors) -> None:
    once = stillvec.refine(vectors, "center")
    twice = stillvec.refine(once, "pca:dim=4")
    assert _history(twice.provenance) == HISTORY
    assert [step["step"] for step in twice.provenance["refined"]] == ["center", "pca"]
    assert twice.provenance["refined"][1]["settings"] == {"dim": 4}
    assert "refined" not in vectors.provenance


@pytest.mark.parametrize(
    ("last", "packing"), [("quantize", "int8"), ("quantize:to=pq,codes=8", "pq"), ("prune:sparsity=0.6", "sparse")]
)
def test_saving_keeps_the_packing_that_the_last_step_allows(
    last: str, packing: str, vectors: WordVectors, tmp_path: Path
) -> None:
    refined = stillvec.refine(vectors, "center", last)
    stillvec.save(refined, tmp_path / "v")
    manifest = read_manifest(tmp_path / "v")
    assert (manifest["stored"], manifest["refined"][-1]["stored"]) == (packing, packing)
    back = stillvec.load(tmp_path / "v")
    assert np.array_equal(back.matrix, refined.matrix)
    stillvec.save(back, tmp_path / "again")
    assert read_manifest(tmp_path / "again") == manifest
    stillvec.save(stillvec.refine(back, "center"), tmp_path / "plain")
    assert "stored" not in read_manifest(tmp_path / "plain")


def test_a_subset_of_packed_rows_is_packed_too(vectors: WordVectors, tmp_path: Path) -> None:
    stillvec.save(stillvec.refine(vectors, "quantize").subset(["w1", "w5"]), tmp_path / "v")
    assert read_manifest(tmp_path / "v")["stored"] == "int8"


def test_vectors_of_a_foreign_file_say_which(vectors: WordVectors, tmp_path: Path) -> None:
    stillvec.save(vectors, tmp_path / "v.vec.gz")
    assert (tmp_path / "v.vec.gz").is_file()
    assert stillvec.load(tmp_path / "v.vec.gz").provenance == {"source": "v.vec.gz"}


def test_the_ending_chooses_the_format(vectors: WordVectors, tmp_path: Path) -> None:
    stillvec.save(vectors, tmp_path / "v.vec")
    assert (tmp_path / "v.vec").read_text().startswith("400 16\n")
    stillvec.save(vectors, tmp_path / "v.vec", format="word2vec-binary", force=True)
    assert b"\x00" in (tmp_path / "v.vec").read_bytes()
    with pytest.raises(UsageError) as refused:
        stillvec.save(vectors, tmp_path / "v.unknown")
    assert refused.value.code == "unknown-ending"
