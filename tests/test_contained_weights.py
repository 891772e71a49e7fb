"""Rows that contain SIF weights are weighted once, wherever texts are encoded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stillvec import Vocabulary, WordVectors, evaluate
from stillvec.evaluation.text_baselines import SifEncoder
from stillvec.formats.request import digest_vectors
from stillvec.search.text_encoder import TextEncoder

WORDS = ["the", "of", "ice", "snow", "cold", "river", "water", "sea"]
A = 1e-3


@pytest.fixture
def sets() -> tuple[WordVectors, WordVectors]:
    """Vectors, and the same with their weights in the rows, as the notes of `additive` say."""
    vocabulary = Vocabulary(WORDS, [900, 500, 30, 20, 10, 8, 5, 2])
    rows = np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32)
    shares = vocabulary.frequencies()
    plain = WordVectors(vocabulary, rows)
    weighted = rows * (A / (A + shares))[:, None].astype(np.float32)
    return plain, WordVectors(vocabulary, weighted, provenance={"notes": {"smoothing": A}})


TEXTS = ["the ice of the sea", "snow and cold water", "the of", "river water"]


def test_encoders_give_the_same_vectors(sets: tuple[WordVectors, WordVectors]) -> None:
    plain, contained = sets
    for kind in (TextEncoder, SifEncoder):
        one, other = (kind(vectors).encode(TEXTS) for vectors in (plain, contained))
        cosines = np.sum(one * other, axis=1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)
        np.testing.assert_allclose(cosines, 1, atol=1e-5)
    assert TextEncoder(contained).select_salient(["the", "ice"]) == TextEncoder(plain).select_salient(["the", "ice"])


def test_tasks_give_the_same_scores(sets: tuple[WordVectors, WordVectors], tmp_path: Path) -> None:
    (tmp_path / "sentences").mkdir()
    (tmp_path / "glossaries").mkdir()
    pairs = [(one, other, at) for at, one in enumerate(TEXTS) for other in TEXTS]
    lines = ["sentence1,sentence2,score", *(f"{one},{other},{at}" for one, other, at in pairs)]
    (tmp_path / "sentences" / "some.csv").write_text("\n".join(lines))
    entries = ["ice\tthe cold water", "snow\tcold ice of water", "sea\tthe water", "river\twater of the ice and snow"]
    (tmp_path / "glossaries" / "some.tsv").write_text("\n".join(entries))
    report = evaluate({"plain": sets[0], "contained": sets[1]}, tmp_path, "sentences,glossary", resamples=10)
    scores = {(score.vectors, score.metric): score.value for score in report.scores if score.words == "own"}
    for metric in ("spearman-sif", "pearson-sif", "mrr-sif"):
        assert scores["plain", metric] == pytest.approx(scores["contained", metric], abs=1e-4)
    assert scores["plain", "pearson"] != pytest.approx(scores["plain", "pearson-sif"], abs=1e-4)


def test_what_rows_contain_is_in_their_digest(sets: tuple[WordVectors, WordVectors]) -> None:
    contained = sets[1]
    same = WordVectors(contained.vocabulary, contained.matrix)
    assert digest_vectors(contained) != digest_vectors(same)
