"""Analogies: gensim's own answers on the same vectors, a slow loop for the direction, sections, policies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stillvec import Vocabulary, WordVectors
from stillvec.errors import DatasetError
from stillvec.evaluation import evaluate
from stillvec.evaluation.analogy import Analogy, Form, solve
from stillvec.evaluation.tasks import Items
from stillvec.heads.lookup import Lookup
from stillvec.registry import settings_from

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


def keyed(vectors: WordVectors) -> Any:
    """The same vectors in gensim's class."""
    theirs = pytest.importorskip("gensim.models").KeyedVectors(vectors.dim)
    theirs.add_vectors(list(vectors.words), np.array(vectors.matrix))
    return theirs


def google_file() -> str:
    return str(pytest.importorskip("gensim.test.utils").datapath("questions-words.txt"))


def google_questions() -> Items:
    return Analogy().read(Path(google_file()))


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("restrict", [300_000, 330])
def test_the_accuracy_is_that_of_gensim(tmp_path: Path, lower: bool, restrict: int) -> None:
    vectors = structured_vectors(lower)
    theirs = keyed(vectors)
    path = analogy_folder(tmp_path, google_form()) / "analogy" / "google.txt"
    wanted, sections = theirs.evaluate_word_analogies(str(path), restrict_vocab=restrict, case_insensitive=lower)
    task = Analogy(restrict)
    answers = task.answer(Lookup(vectors), task.read(path))
    right = answers.values["accuracy"]
    assert 0 < right.sum() < answers.covered.sum(), "a test in which all or none is right shows little"
    assert right[answers.covered].mean() == pytest.approx(wanted)
    assert answers.covered.sum() == len(sections[-1]["correct"]) + len(sections[-1]["incorrect"])
    if restrict == 300_000:
        score = evaluate(vectors, tmp_path).scores[0]
        by_section = [len(s["correct"]) / (len(s["correct"]) + len(s["incorrect"])) for s in sections[:-1]]
        assert [detail.value for detail in score.details] == pytest.approx(by_section)
        assert [detail.section for detail in score.details] == ["capitals", "plurals"]


@pytest.mark.parametrize("form", ["3cosadd", "3cosmul"])
def test_each_answer_on_real_vectors_is_that_of_gensim(form: Form, word_pieces: WordVectors) -> None:
    # gensim's evaluate_word_analogies takes the name of a function and calls most_similar all the same
    theirs, questions = keyed(word_pieces), google_questions()
    known = [words for words in questions.texts if all(word in word_pieces for word in words)][::40]
    requested = {"3cosadd": theirs.most_similar, "3cosmul": theirs.most_similar_cosmul}[form]
    lower = [[word.lower() for word in words] for words in known]
    wanted = [requested(positive=[b, c], negative=[a], topn=1)[0][0] for a, b, c, _ in lower]
    rows = np.array([[word_pieces.vocabulary.row(word) for word in words[:3]] for words in known])
    found = solve(Lookup(word_pieces), rows, len(word_pieces), [form])[form]
    assert [word_pieces.words[row] for row in found] == wanted
    assert len(wanted) > 100


def test_the_accuracy_of_the_real_questions_is_that_of_gensim(word_pieces: WordVectors) -> None:
    some = word_pieces.subset(word_pieces.words[:6000])
    theirs = keyed(some)
    wanted, sections = theirs.evaluate_word_analogies(google_file())
    answers = Analogy().answer(Lookup(some), google_questions())
    right = answers.values["accuracy"][answers.covered]
    assert len(right) == sum(len(sections[-1][kind]) for kind in ("correct", "incorrect")) > 500
    assert right.sum() == len(sections[-1]["correct"]) > 50
    assert right.mean() == pytest.approx(wanted)


def test_the_direction_is_that_of_a_slow_loop() -> None:
    vectors = structured_vectors(True)
    units = vectors.matrix / np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
    questions = np.random.default_rng(0).choice(len(vectors), (40, 3))
    questions = questions[[len(set(row)) == 3 for row in questions.tolist()]]

    def slow(a: int, b: int, c: int) -> int:
        cosines = {}
        for d in range(len(vectors)):
            if d not in (a, b, c):
                x, y = units[d] - units[c], units[b] - units[a]
                cosines[d] = x @ y / np.linalg.norm(x) / np.linalg.norm(y)
        return max(cosines, key=lambda d: cosines[d])

    found = solve(Lookup(vectors), questions, len(vectors), ["direction", "3cosadd"])
    assert found["direction"].tolist() == [slow(*row) for row in questions.tolist()]
    assert (found["direction"] != found["3cosadd"]).any()


def test_the_requested_forms_are_the_metrics(tmp_path: Path) -> None:
    folder = analogy_folder(tmp_path, google_form())
    scores = evaluate(structured_vectors(True), folder).scores
    assert [score.metric for score in scores] == ["accuracy", "accuracy-3cosmul", "accuracy-direction"]
    assert all(0 < score.low < score.value < score.high < 1 for score in scores)
    task = settings_from(Analogy, {"forms": ["direction", "3cosmul"]})
    answers = task.answer(Lookup(structured_vectors(True)), task.read(folder / "analogy" / "google.txt"))
    assert [*answers.values] == ["accuracy-direction", "accuracy-3cosmul"]


def test_blocks_and_batches_change_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = structured_vectors(True)
    forms: list[Form] = ["3cosadd", "3cosmul", "direction"]
    questions = np.random.default_rng(0).choice(len(vectors), (70, 3))
    whole = solve(Lookup(vectors), questions, len(vectors), forms)
    monkeypatch.setattr("stillvec.evaluation.analogy._TABLE", 1)  # the narrowest blocks: 256 candidates
    monkeypatch.setattr("stillvec.evaluation.analogy._BATCH", 3)
    parts = solve(Lookup(vectors), questions, len(vectors), forms)
    assert all(np.array_equal(parts[form], whole[form]) for form in forms)
    assert max(whole["3cosadd"]) > 256


def test_of_equal_candidates_in_two_blocks_the_first_is_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stillvec.evaluation.analogy._TABLE", 1)
    points = np.random.default_rng(0).standard_normal((300, 4)).astype(np.float32)
    twice = WordVectors([f"w{number}" for number in range(600)], np.concatenate([points, points]))
    forms: list[Form] = ["3cosadd", "3cosmul"]
    found = solve(Lookup(twice), np.array([[301, 302, 303], [410, 420, 430]]), 600, forms)
    assert all((rows < 300).all() for rows in found.values())


def test_a_candidate_opposite_to_a_wins_by_3cosmul_as_in_gensim() -> None:
    # (1 + cos) / 2 of it and a is as good as zero, and little over 1e-6 is more than much over a half
    rows = [[1, 0, 0], [0.98, 0.2, 0], [0.98, 0, 0.2], [0.9, 0.9, 0.1], [-1, 0.001, 0.001]]
    vectors = WordVectors(["a", "b", "c", "near", "opposite"], rows)
    found = solve(Lookup(vectors), np.array([[0, 1, 2]]), 5, ["3cosadd", "3cosmul"])
    assert keyed(vectors).most_similar_cosmul(positive=["b", "c"], negative=["a"], topn=1)[0][0] == "opposite"
    assert {form: vectors.words[row[0]] for form, row in found.items()} == {"3cosadd": "near", "3cosmul": "opposite"}


def test_the_words_of_the_question_and_zero_vectors_are_no_answers(tmp_path: Path) -> None:
    # b - a + c is nearest to c itself, and every other candidate points away from it
    words = ["nothing", "a", "b", "c", "d"]
    vectors = WordVectors(Vocabulary(words), [[0, 0], [1, 0.1], [1, 0.2], [1, 0.3], [-1, 0.1]])
    scores = evaluate(vectors, analogy_folder(tmp_path, ": s\na b c d\n")).scores
    assert [score.value for score in scores] == [1, 1, 1]


def test_unknown_words_are_skipped_or_replaced(tmp_path: Path) -> None:
    vectors = structured_vectors(True, dim=60, others=20, noise=0.0)
    text = google_form() + "\nAthens Greece Missing Egypt\nAthens Greece Cairo Missing\nMissing Greece Cairo Egypt\n"
    folder = analogy_folder(tmp_path, text)
    scores = {policy: evaluate(vectors, folder, oov=policy).scores[0] for policy in ("skip", "mean", "zero")}
    n = 5 * 4 + 4 * 3
    assert {(s.n_items, s.n_covered) for s in scores.values()} == {(n + 3, n)}
    assert scores["skip"].value == 1
    assert all(n / (n + 3) <= scores[policy].value < 1 for policy in ("mean", "zero"))
    assert scores["skip"].low < scores["skip"].value == scores["skip"].high


def test_a_table_is_read_by_its_header_and_types_are_sections(tmp_path: Path) -> None:
    rows = [f"{i},{'JJ_JJR'},{a},{b},{c},{d}" for i, (a, b) in enumerate(PLURALS) for c, d in PLURALS if a != c]
    folder = analogy_folder(tmp_path, "\n".join([",type,word1,word2,word3,target", *rows]), "msr.csv")
    score, *_ = evaluate(structured_vectors(True, dim=60, others=20, noise=0.0), folder).scores
    assert (score.dataset, score.value, score.n_items) == ("msr", 1, 12)
    assert [(d.section, d.n_items) for d in score.details] == [("JJ_JJR", 12)]


def test_a_table_of_relations_is_not_read_as_analogies(tmp_path: Path) -> None:
    table = ",type,word1,word2,word3,target\n0,2c,cat,cats,dog,dogs\n1,10f,cat,cats,lion,lions\n"
    folder = analogy_folder(tmp_path, table, "semeval2012.csv")
    assert Analogy().find(folder) == []
    with pytest.raises(DatasetError, match="analogy/"):
        evaluate(structured_vectors(True), folder, ["analogy"])
