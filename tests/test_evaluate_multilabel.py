"""Several labels per text: files, the regressions against scikit-learn, the scores, and what selects."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from stillvec import WordVectors
from stillvec.errors import DatasetError
from stillvec.evaluation.intervals import Resampling
from stillvec.evaluation.multilabel import Multilabel, gold_matrix
from stillvec.heads.linear_probe import fit_sigmoids, predict_sigmoids
from stillvec.heads.lookup import Lookup

TOPICS = {"grain": ("wheat", "corn"), "money": ("bank", "rate"), "ship": ("port", "sail")}


@pytest.fixture
def vectors() -> WordVectors:
    matrix = np.random.default_rng(0).standard_normal((6, 8)) * 0.3
    matrix[np.arange(6), np.arange(6) // 2] += 3
    return WordVectors([word for words in TOPICS.values() for word in words], matrix)


def _write(folder: Path, name: str, number: int) -> Path:
    generator = np.random.default_rng(number)
    (folder / "multilabel").mkdir(exist_ok=True)
    lines = []
    for _ in range(number):
        labels = generator.permutation([*TOPICS])[: generator.integers(1, 3)]
        words = [generator.choice(TOPICS[label]) for label in labels for _ in range(2)]
        lines.append(f"{','.join(labels)} {' '.join(words)}")
    path = folder / "multilabel" / f"{name}.txt.gz"
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))
    return path


def test_the_regressions_are_those_of_scikit_learn() -> None:
    generator = np.random.default_rng(3)
    x = generator.standard_normal((80, 4))
    labels = x[:, :3] + generator.standard_normal((80, 3)) > 0
    weights = fit_sigmoids(x, labels, 2.0)
    for column in range(3):
        theirs = LogisticRegression(C=1 / 2.0, tol=1e-8).fit(x, labels[:, column])
        np.testing.assert_allclose(weights[:-1, column], theirs.coef_[0], atol=2e-3)
        np.testing.assert_allclose(predict_sigmoids(x, weights)[:, column], theirs.predict_proba(x)[:, 1], atol=2e-3)


def test_the_scores_are_those_of_scikit_learn(vectors: WordVectors, tmp_path: Path) -> None:
    _write(tmp_path, "news.train", 80)
    task = Multilabel()
    items = task.read(_write(tmp_path, "news.test", 40))
    answers = task.answer(Lookup(vectors), items)
    scores = task.score(items, answers, np.arange(40), Resampling(50, 0))
    gold = gold_matrix(items)[:40]
    assert gold.sum(axis=1).tolist() == items.gold.tolist()
    for model in ("linear", "majority"):
        said = answers.values[f"labels-{model}"]
        for average in ("micro", "macro"):
            score = scores[f"{average}-f1-{model}"]
            assert score.value == pytest.approx(f1_score(gold, said, average=average, zero_division=0))
            assert score.low <= score.value <= score.high
    assert scores["micro-f1-linear"].value > 0.95
    assert scores["micro-f1-majority"].value < 0.6
    assert not task.ranks_by("macro-f1-majority")


def test_test_labels_have_no_part_in_the_threshold(vectors: WordVectors, tmp_path: Path) -> None:
    _write(tmp_path, "news.train", 60)
    path = _write(tmp_path, "news.test", 30)
    task = Multilabel()
    before = task.answer(Lookup(vectors), task.read(path)).values["labels-linear"]
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    path.write_bytes(gzip.compress("".join(f"grain,money,ship {line.split(' ', 1)[1]}\n" for line in lines).encode()))
    np.testing.assert_array_equal(task.answer(Lookup(vectors), task.read(path)).values["labels-linear"], before)


@pytest.mark.parametrize(("text", "line"), [("a,b x\n,c y\n", 2), ("a x\n\nb,, y\n", 3), ("a\n", 1)])
def test_a_malformed_line_is_reported_with_its_number(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "bad.txt"
    path.write_text(text)
    with pytest.raises(DatasetError) as caught:
        Multilabel().read(path)
    assert (caught.value.path, caught.value.line) == (str(path), line)
