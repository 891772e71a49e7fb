"""Senses: clusters of a word's states, found where they are, and read from a folder with their examples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stillvec import Vocabulary, WordVectors
from stillvec.errors import FormatError
from stillvec.formats import read_senses, write_folder
from stillvec.learners.senses import TEXTS, Senses, encode_texts, measure_separation
from stillvec.numerics import unit_rows
from stillvec.statistics import KEYS, SIZE, WORDS, Statistics


def make_sample() -> Statistics:
    """40 contexts of each of two words in 16 dimensions: those of the first are around two directions, 25 and 15."""
    generator = np.random.default_rng(0)
    centres = 3 * np.eye(16)
    rows = [*[centres[0]] * 25, *[centres[1]] * 15, *[centres[2]] * 40] + generator.normal(size=(80, 16)) * 0.2 + 1
    lengths = np.linalg.norm(rows, axis=1)
    texts = [f"text {number} é" for number in range(80)]
    arrays = {WORDS: np.repeat(np.arange(2, dtype=np.int32), 40), KEYS: np.arange(80), SIZE: np.array([64])}
    arrays |= {"sample:states": (rows / lengths[:, None]).astype(np.float16), "sample:lengths": lengths}
    return Statistics(Vocabulary(["bank", "river"], [40, 40]), arrays | {TEXTS: encode_texts(texts)})


def test_senses_are_the_means_of_the_clusters_and_most_words_have_one(tmp_path: Path) -> None:
    sample = make_sample()
    result = Senses().finish({"sample": sample})
    states = sample["sample:states"].astype(np.float32) * sample["sample:lengths"][:, None]
    assert np.allclose(result.vectors["bank"], states[:40].mean(0), atol=1e-3)
    write_folder(result.vectors, tmp_path / "out", {}, model=result.model)
    senses = read_senses(tmp_path / "out")
    assert senses is not None
    assert (senses.words, len(senses), senses.find("river")) == (["bank"], 2, [])
    first, second = senses.find("bank")
    assert (first.number, first.share, second.share) == (1, 25 / 40, 15 / 40)
    assert np.allclose(first.vector, states[:25].mean(0), atol=1e-3)
    assert np.allclose(second.vector, states[25:40].mean(0), atol=1e-3)
    assert {int(text.split()[1]) for text in first.examples} < {*range(25)}
    assert {int(text.split()[1]) for text in second.examples} < {*range(25, 40)}


def test_separation_is_that_of_a_slow_loop() -> None:
    units = unit_rows(np.random.default_rng(1).normal(size=(9, 4)), np.float64)
    labels = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2])
    differences = []
    for row, label in enumerate(labels):
        means = [units[[at for at in np.flatnonzero(labels == each) if at != row]].mean(0) for each in range(3)]
        cosines = [units[row] @ mean / np.linalg.norm(mean) for mean in means]
        differences.append(cosines[label] - max(cosines[each] for each in range(3) if each != label))
    assert measure_separation(units, labels) == pytest.approx(np.mean(differences))


@pytest.mark.parametrize("setting", [{"most": 1}, {"least_share": 0.5}, {"least_contexts": 16}, {"separation": 2.0}])
def test_a_word_has_one_vector_where_a_limit_forbids_more(setting: dict[str, float]) -> None:
    result = Senses(**setting).finish({"sample": make_sample()})  # type: ignore[arg-type]
    assert result.notes == {"ambiguous_words": 0, "senses": 0}


def test_texts_are_cut_between_characters() -> None:
    assert bytes(encode_texts(["é" * 200])[0]).decode() == "é" * 96
    assert bytes(encode_texts([" a "])[0]).rstrip(b"\0") == b"a"


def test_folders_without_senses_have_none_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    vectors = WordVectors(["a"], [[1.0, 2.0]])
    write_folder(vectors, tmp_path / "plain", {})
    assert read_senses(tmp_path / "plain") is None
    write_folder(vectors, tmp_path / "damaged", {}, model={"senses.words": np.array([0])})
    with pytest.raises(FormatError):
        read_senses(tmp_path / "damaged")
