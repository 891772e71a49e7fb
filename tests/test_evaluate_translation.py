"""Translation: ranks by a slow loop, coverage, several right answers, files that are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stillvec.cli import main
from stillvec.combination.align import Align
from stillvec.errors import DatasetError
from stillvec.evaluation import evaluate
from stillvec.evaluation.translation import Translation
from stillvec.formats import save
from stillvec.heads.lookup import Lookup
from stillvec.vectors import WordVectors

PAIRS = [("dog", "hund"), ("dog", "köter"), ("cat", "katze"), ("sea", "meer"), ("elk", "elch"), ("yak", "jak")]


@pytest.fixture
def vectors() -> WordVectors:
    """Both languages; German lacks jak, English elk, and there are words that nobody asks about."""
    random = np.random.default_rng(0)
    german = ["hund", "köter", "katze", "meer", "elch", *(f"wort{number}" for number in range(20))]
    english = ["dog", "cat", "sea", "yak", *(f"word{number}" for number in range(15))]
    words = [f"de:{word}" for word in german] + [f"en:{word}" for word in english]
    return WordVectors(words, random.normal(size=(len(words), 3)))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "translation").mkdir()
    (tmp_path / "translation" / "en-de.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS), "utf-8")
    return tmp_path


def _slow_rank(vectors: WordVectors, word: str, right: list[str], csls: bool) -> int:
    """1 + how many words of the other language score above the best right answer."""

    def cosine(a: str, b: str) -> float:
        return vectors.similarity(a, b)

    english = [each for each in vectors.words if each.startswith("en:")]
    german = [each for each in vectors.words if each.startswith("de:")]

    def score(candidate: str) -> float:
        near = sorted((cosine(candidate, each) for each in english), reverse=True)[:10]
        mine = sorted((cosine(word, each) for each in german), reverse=True)[:10]
        return 2 * cosine(word, candidate) - (sum(near) / 10 + sum(mine) / 10 if csls else 0)

    best = max(map(score, right))
    return 1 + sum(score(each) > best + 1e-6 for each in german)


@pytest.mark.parametrize("retrieval", ["csls", "cosine"])
def test_ranks_are_those_of_a_slow_loop(retrieval: Any, vectors: WordVectors, data: Path) -> None:
    task = Translation(retrieval)
    items = task.read(data / "translation" / "en-de.tsv")
    answers = task.answer(Lookup(vectors), items)
    assert [words[0] for words in items.texts] == ["en:dog", "en:cat", "en:sea", "en:elk", "en:yak"]
    assert answers.covered.tolist() == [True, True, True, False, False]
    slow = [
        _slow_rank(vectors, words[0], [*words[1:]], retrieval == "csls")
        for words in (("en:dog", "de:hund", "de:köter"), ("en:cat", "de:katze"), ("en:sea", "de:meer"))
    ]
    assert np.allclose(answers.values["mrr"][:3], 1 / np.array(slow))
    assert max(slow) > 1
    assert (answers.values["p@1"][:3] == (np.array(slow) == 1)).all()


def test_scores_carry_coverage_and_intervals(vectors: WordVectors, data: Path) -> None:
    scores = {score.metric: score for score in evaluate(vectors, data, ["translation"]).scores}
    assert {*scores} == {"mrr", "p@1"}
    for score in scores.values():
        assert (score.n_items, score.n_covered) == (5, 3)
        assert score.low <= score.value <= score.high
    assert evaluate(vectors, data, ["translation"], oov="zero").scores[0].value <= scores["mrr"].value


def test_vectors_without_tags_are_not_covered(data: Path) -> None:
    plain = WordVectors(["dog", "hund"], np.eye(2))
    score = evaluate(plain, data, ["translation"]).scores[0]
    assert (score.n_covered, np.isnan(score.value)) == (0, True)


def test_few_candidates_leave_rarer_answers_out(vectors: WordVectors, data: Path) -> None:
    task = Translation(restrict=3)
    answers = task.answer(Lookup(vectors), task.read(data / "translation" / "en-de.tsv"))
    assert answers.covered.tolist() == [True, True, False, False, False]


def test_aligned_languages_translate_from_the_command_line(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    random = np.random.default_rng(1)
    latent = random.normal(size=(200, 10))
    english = WordVectors([f"e{number}" for number in range(200)], latent)
    german = WordVectors(
        [f"d{number}" for number in range(200)], latent @ np.linalg.qr(random.normal(size=(10, 10)))[0]
    )
    (tmp_path / "seed.txt").write_text("".join(f"e{number} d{number}\n" for number in range(30)))
    lines = "".join(f"e{number} d{number}\n" for number in range(30, 200))
    (data / "translation" / "en-de.tsv").unlink()
    (data / "translation" / "en-de.test.txt").write_text(lines)
    save(Align(tmp_path / "seed.txt", tags=("en", "de"))(english, german), tmp_path / "both")
    assert main(["evaluate", str(tmp_path / "both"), "--data", str(data), "--tasks", "translation"]) == 0
    out = capsys.readouterr().out
    assert "translation: mrr, p@1 x 100" in out
    assert "en-de.test mrr   100 [ 100,  100] 100%" in out


@pytest.mark.parametrize(
    ("name", "content", "line", "message"),
    [
        ("words.tsv", "a\tb\n", None, "two languages"),
        ("en-de.tsv", "a\tb\tc\n", 1, "3 fields"),
        ("en-de.tsv", "a b\nc\n", 2, "1 field"),
        ("en-de.tsv", "\n", 1, "empty"),
    ],
)
def test_an_invalid_file_is_named(name: str, content: str, line: int | None, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DatasetError, match=message) as caught:
        Translation().read(tmp_path / name)
    assert (caught.value.path, caught.value.line) == (str(tmp_path / name), line)
