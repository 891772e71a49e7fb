"""Analogies: gensim's own answers on the same vectors, sections, policies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stillvec import Vocabulary, WordVectors
from stillvec.errors import DatasetError
from stillvec.evaluate import evaluate
from stillvec.evaluate.analogy import Analogy
from stillvec.evaluate.lookup import Lookup

CAPITALS = [
    ("Athens", "Greece"),
    ("Berlin", "Germany"),
    ("Cairo", "Egypt"),
    ("Hanoi", "Vietnam"),
    ("Rome", "Italy"),
]
PLURALS = [("cat", "cats"), ("dog", "dogs"), ("lion", "lions"), ("bird", "birds")]


def google_form(lower: bool = False) -> str:
    lines = []
    for section, pairs in (("capitals", CAPITALS), ("plurals", PLURALS)):
        lines.append(f": {section}")
        lines += [f"{a} {b} {c} {d}" for a, b in pairs for c, d in pairs if a != c]
    return "\n".join(line.lower() if lower else line for line in lines)  # the last line lacks its newline


def structured_vectors(lower: bool, dim: int = 12, others: int = 400, noise: float = 0.45) -> WordVectors:
    """A section is an offset and noise, so that some questions are answered and some are not."""
    generator = np.random.default_rng(4)
    words: dict[str, np.ndarray] = {}
    for pairs in (CAPITALS, PLURALS):
        offset = generator.standard_normal(dim)
        for a, b in pairs:
            words[a] = generator.standard_normal(dim)
            words[b] = words[a] + offset + noise * generator.standard_normal(dim)
    words |= {f"Other{i}": generator.standard_normal(dim) for i in range(others)}
    order = generator.permutation(len(words))
    names = [(w.lower() if lower else w) for w in words]
    matrix = np.stack([*words.values()]).astype(np.float32)
    return WordVectors(Vocabulary([names[i] for i in order]), matrix[order])


def analogy_folder(folder: Path, content: str, name: str = "google.txt") -> Path:
    (folder / "analogy").mkdir(exist_ok=True)
    (folder / "analogy" / name).write_text(content, "utf-8")
    return folder


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("restrict", [300_000, 330])
def test_the_accuracy_is_that_of_gensim(tmp_path: Path, lower: bool, restrict: int) -> None:
    keyed = pytest.importorskip("gensim.models").KeyedVectors
    vectors = structured_vectors(lower)
    theirs = keyed(vectors.dim)
    theirs.add_vectors(list(vectors.words), np.array(vectors.matrix))
    path = analogy_folder(tmp_path, google_form()) / "analogy" / "google.txt"
    wanted, sections = theirs.evaluate_word_analogies(str(path), restrict_vocab=restrict, case_insensitive=lower)
    task = Analogy(restrict)
    answers = task.answer(Lookup(vectors), task.read(path))
    right = answers.values["accuracy"]
    assert 0 < right.sum() < answers.covered.sum(), "a test in which all or none is right shows little"
    assert right[answers.covered].mean() == pytest.approx(wanted)
    assert answers.covered.sum() == len(sections[-1]["correct"]) + len(sections[-1]["incorrect"])
    if restrict == 300_000:
        (score,) = evaluate(vectors, tmp_path).scores
        by_section = [len(s["correct"]) / (len(s["correct"]) + len(s["incorrect"])) for s in sections[:-1]]
        assert [detail.value for detail in score.details] == pytest.approx(by_section)
        assert [detail.section for detail in score.details] == ["capitals", "plurals"]


def test_blocks_and_batches_change_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = structured_vectors(True)
    task = Analogy()
    items = task.read(analogy_folder(tmp_path, google_form()) / "analogy" / "google.txt")
    whole = task.answer(Lookup(vectors), items).values["accuracy"]
    monkeypatch.setattr("stillvec.evaluate.analogy._TABLE", 1)  # the narrowest blocks: 256 candidates
    monkeypatch.setattr("stillvec.evaluate.analogy._BATCH", 3)
    assert np.array_equal(task.answer(Lookup(vectors), items).values["accuracy"], whole)


def test_the_words_of_the_question_and_zero_vectors_are_no_answers(tmp_path: Path) -> None:
    # b - a + c is nearest to c itself, and every other candidate points away from it
    words = ["nothing", "a", "b", "c", "d"]
    vectors = WordVectors(Vocabulary(words), [[0, 0], [1, 0.1], [1, 0.2], [1, 0.3], [-1, 0.1]])
    (score,) = evaluate(vectors, analogy_folder(tmp_path, ": s\na b c d\n")).scores
    assert score.value == 1


def test_unknown_words_are_skipped_or_stood_in_for(tmp_path: Path) -> None:
    vectors = structured_vectors(True, dim=60, others=20, noise=0.0)
    text = google_form() + "\nAthens Greece Missing Egypt\nAthens Greece Cairo Missing\nMissing Greece Cairo Egypt\n"
    folder = analogy_folder(tmp_path, text)
    scores = {policy: evaluate(vectors, folder, unknown=policy).scores[0] for policy in ("skip", "mean", "zero")}
    n = 5 * 4 + 4 * 3
    assert {(s.n_items, s.n_covered) for s in scores.values()} == {(n + 3, n)}
    assert scores["skip"].value == 1
    assert all(n / (n + 3) <= scores[policy].value < 1 for policy in ("mean", "zero"))
    assert scores["skip"].low < scores["skip"].value == scores["skip"].high


def test_a_table_is_read_by_its_header_and_types_are_sections(tmp_path: Path) -> None:
    rows = [f"{i},{'JJ_JJR'},{a},{b},{c},{d}" for i, (a, b) in enumerate(PLURALS) for c, d in PLURALS if a != c]
    folder = analogy_folder(tmp_path, "\n".join([",type,word1,word2,word3,target", *rows]), "msr.csv")
    (score,) = evaluate(structured_vectors(True, dim=60, others=20, noise=0.0), folder).scores
    assert (score.dataset, score.value, score.n_items) == ("msr", 1, 12)
    assert [(d.section, d.n_items) for d in score.details] == [("JJ_JJR", 12)]


def test_a_table_of_relations_is_not_read_as_analogies(tmp_path: Path) -> None:
    table = ",type,word1,word2,word3,target\n0,2c,cat,cats,dog,dogs\n1,10f,cat,cats,lion,lions\n"
    folder = analogy_folder(tmp_path, table, "semeval2012.csv")
    assert Analogy().find(folder) == []
    with pytest.raises(DatasetError, match="no file for the task 'analogy'"):
        evaluate(structured_vectors(True), folder, ["analogy"])
