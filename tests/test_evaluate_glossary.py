"""The task `glossary`: ranks against a slow loop, the words of a term removed, common terms, controls, bad files."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from stillvec import Vocabulary, WordVectors
from stillvec.errors import DatasetError
from stillvec.evaluation import evaluate
from stillvec.evaluation.glossary import Glossary, count_letters, remove_term

ENTRIES = [
    ("ice", "frozen water"),
    ("snow", "frozen water that falls"),
    ("fire", "hot light"),
    ("hot spring", "warm water that springs from the ground"),
    ("Fire", "a light that burns"),
    ("steam", "warm water in the air"),
]
WORDS = ["ice", "snow", "fire", "hot", "spring", "steam", "frozen", "water", "falls", "light", "warm", "burns", "air"]


@pytest.fixture
def vectors() -> WordVectors:
    return WordVectors(WORDS, np.random.default_rng(0).standard_normal((len(WORDS), 6)))


def write(folder: Path, entries: list[tuple[str, str]]) -> Path:
    (folder / "glossaries").mkdir(exist_ok=True)
    (folder / "glossaries" / "weather.tsv").write_text(
        "term\tdefinition\n" + "".join(f"{a}\t{b}\n" for a, b in entries)
    )
    return folder


def slow_ranks(vectors: WordVectors, entries: list[tuple[str, str]]) -> list[int]:
    terms = [*dict.fromkeys(term.lower() for term, _ in entries)]

    def mean(text: str) -> np.ndarray:
        rows = np.mean([vectors[word] for word in text.lower().split() if word in vectors], axis=0)
        return rows / np.linalg.norm(rows)

    ranks = []
    for term, definition in entries:
        cosines = {other: float(mean(remove_term(term, definition)) @ mean(other)) for other in terms}
        ranks.append(1 + sum(value > cosines[term.lower()] for value in cosines.values()))
    return ranks


def test_ranks_are_those_of_a_slow_loop_over_all_terms(tmp_path: Path, vectors: WordVectors) -> None:
    report = evaluate(vectors, write(tmp_path, ENTRIES), "glossary")
    found = {score.metric: score.value for score in report.scores}
    ranks = np.array(slow_ranks(vectors, ENTRIES))
    assert found["mrr"] == pytest.approx(np.mean(1 / ranks))
    assert found["hits@1"] == np.mean(ranks == 1)
    assert found["hits@10"] == 1
    assert found["mrr-random"] == pytest.approx(np.mean([1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]))  # fire twice
    assert 0 < found["mrr-spelling"] <= 1
    assert report.scores[0].n_covered == 6


def test_frequent_words_count_less_with_sif_weights(tmp_path: Path, vectors: WordVectors) -> None:
    counts = [2000 if word == "water" else 1 for word in WORDS]
    counted = WordVectors(Vocabulary(WORDS, counts), vectors.matrix)
    report = evaluate(counted, write(tmp_path, ENTRIES), "glossary", resamples=0)
    weights = 1e-3 / (1e-3 + np.array(counts) / sum(counts))
    weighted = WordVectors(WORDS, vectors.matrix * weights[:, None])
    found = {score.metric: score.value for score in report.scores}
    assert found["mrr-sif"] == pytest.approx(np.mean(1 / np.array(slow_ranks(weighted, ENTRIES))))
    assert found["mrr"] == pytest.approx(np.mean(1 / np.array(slow_ranks(vectors, ENTRIES))))


def test_the_words_of_the_term_are_taken_out_of_the_definition() -> None:
    assert remove_term("hot spring", "a Spring, springing up hot: hotter water") == "a , up : hotter water"
    assert remove_term("DNA", "dna is a molecule") == "is a molecule"
    assert remove_term("ice", "Ice.") == ""


def test_sets_are_ranked_among_the_terms_that_both_cover(tmp_path: Path, vectors: WordVectors) -> None:
    data = write(tmp_path, ENTRIES)
    small = vectors.subset([word for word in WORDS if word != "steam"])
    report = evaluate({"all": vectors, "small": small}, data, "glossary")
    common = [entry for entry in ENTRIES if entry[0] != "steam"]
    values = {(score.vectors, score.words): score for score in report.scores if score.metric == "mrr"}
    assert values["all", "common"].value == values["small", "own"].value
    assert values["all", "common"].value == pytest.approx(np.mean(1 / np.array(slow_ranks(vectors, common))))
    assert values["small", "own"].n_covered == 5
    assert {pair.metric for pair in report.comparisons} == {"mrr", "hits@1", "hits@10"}


def test_spelling_finds_terms_whose_letters_are_in_the_definition() -> None:
    terms, definitions = count_letters(["photon", "neuron"], ["photographic things", "neural cells", ""])
    cosines = (definitions @ terms.T).toarray()
    assert cosines[0, 0] > cosines[0, 1] == 0
    assert cosines[1, 1] > cosines[1, 0]
    assert not cosines[2].any()


def test_files_may_be_compressed_and_bad_lines_are_named(tmp_path: Path, vectors: WordVectors) -> None:
    write(tmp_path, ENTRIES)
    plain = tmp_path / "glossaries" / "weather.tsv"
    before = evaluate(vectors, tmp_path, "glossary", resamples=0).scores
    packed = plain.with_suffix(".tsv.gz")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    assert evaluate(vectors, tmp_path, "glossary", resamples=0).scores == before
    plain.write_text("ice\tfrozen water\nsnow\n")
    with pytest.raises(DatasetError) as caught:
        Glossary().read(plain)
    assert (caught.value.code, caught.value.line) == ("unexpected-value", 2)
    plain.write_text("ice\tice\n")
    with pytest.raises(DatasetError):
        Glossary().read(plain)
