"""Specificity of texts: norms, information and length against independent computations; thresholds from training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from stillvec import Vocabulary, WordVectors, evaluate
from stillvec.errors import DatasetError
from stillvec.evaluation.specificity import Specificity, best_threshold, frequency_ranks
from stillvec.heads.lookup import Lookup

WORDS = [f"w{number}" for number in range(20)]


def _vectors() -> WordVectors:
    counts = np.arange(1, 21)  # the last word is the most frequent
    matrix = np.random.default_rng(0).normal(size=(20, 5)).astype(np.float32)
    return WordVectors(Vocabulary(WORDS, counts), matrix)


def _texts(n: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice([*WORDS, "unknown"], random.integers(2, 9))) for _ in range(n)]


def _write(folder: Path, name: str, texts: list[str], ratings: list[float]) -> Path:
    (folder / "specificity").mkdir(exist_ok=True)
    path = folder / "specificity" / name
    path.write_text("".join(f"{text}\t{rating}\n" for text, rating in zip(texts, ratings, strict=True)), "utf-8")
    return path


def test_scores_are_correlations_of_norms_length_and_information(tmp_path: Path) -> None:
    texts, ratings = _texts(40, 1), np.random.default_rng(2).normal(size=40).tolist()
    _write(tmp_path, "a.tsv", texts, ratings)
    vectors = _vectors()
    expected: dict[str, list[float]] = {"information": [], "length": [], "norm-sum": [], "norm-mean": []}
    for text in texts:
        words = text.split()
        known = [vectors[word] for word in words if word != "unknown"]
        expected["information"].append(sum(np.log(20 if w == "unknown" else 20 - WORDS.index(w)) for w in words))
        expected["length"].append(len(words))
        expected["norm-sum"].append(float(np.linalg.norm(sum(known))))
        expected["norm-mean"].append(float(np.linalg.norm(np.mean(known, axis=0))))
    scores = {score.metric: score for score in evaluate(vectors, tmp_path, ["specificity"], resamples=20).scores}
    assert [*scores][:2] == ["information", "length"]  # what needs no vectors is printed first
    for name, values in expected.items():
        assert scores[name].value == pytest.approx(spearmanr(values, ratings).statistic, abs=1e-6)
    assert "norm-sum-given-length" in scores
    assert not any(name.startswith(("accuracy", "auc")) for name in scores)


def test_a_vocabulary_without_counts_is_in_the_order_of_frequency() -> None:
    assert frequency_ranks(Vocabulary(("a", "b", "c"))).tolist() == [1, 2, 3]
    assert frequency_ranks(Vocabulary(("a", "b", "c"), np.array([3, 9, 5]))).tolist() == [3, 1, 2]


@pytest.mark.parametrize("seed", range(4))
def test_a_threshold_is_the_best_of_all(seed: int) -> None:
    random = np.random.default_rng(seed)
    score, gold = random.integers(0, 6, 12).astype(float), random.integers(0, 2, 12).astype(float)
    tried = [-1.0, *np.unique(score), np.inf]
    right = [int(((score >= threshold) == (gold == 1)).sum()) for threshold in tried]
    assert ((score >= best_threshold(score, gold)) == (gold == 1)).sum() == max(right)


def _binary(folder: Path) -> Path:
    for name, n in (("n.train.tsv", 60), ("n.test.tsv", 50)):
        texts = _texts(n, n)
        noise = np.random.default_rng(n).normal(size=n)
        ratings = [float(len(text.split()) + size > 5) for text, size in zip(texts, noise, strict=True)]
        path = _write(folder, name, texts, ratings)
    return path


def test_thresholds_come_from_the_training_texts(tmp_path: Path) -> None:
    task, path = Specificity(), _binary(tmp_path)
    assert task.find(tmp_path) == [path]
    items, lookup = task.read(path), Lookup(_vectors())
    answers = task.answer(lookup, items)
    swapped = replace(items, gold=1 - items.gold, labels=(*(1 - items.gold), *items.labels[50:]))
    others = task.answer(lookup, swapped)
    for name in ("accuracy-information", "accuracy-norm-sum"):
        np.testing.assert_array_equal(answers.values[name], ~others.values[name])
    scores = {score.metric: score.value for score in evaluate(_vectors(), tmp_path, ["specificity"]).scores}
    lengths = np.array([len(text.split()) for (text,) in items.texts])
    pairs = [(a > b) + (a == b) / 2 for a in lengths[items.gold == 1] for b in lengths[items.gold == 0]]
    assert scores["auc-length"] == pytest.approx(np.mean(pairs))
    assert scores["accuracy-length"] == pytest.approx(answers.values["accuracy-length"].mean())
    right = answers.values["given-length:length"]
    assert scores["accuracy-length-given-length"] == pytest.approx(np.nanmean(right))
    trained = np.array([len(text.split()) for (text,) in items.more])
    labels = np.array(items.labels[50:])
    for length in range(2, 9):  # the majority label of the training texts with one more word
        longer = labels[trained == length + 1]
        of_length = lengths == length
        if len({*longer}) == 2 and longer.mean() != 0.5:
            expected = (items.gold[of_length] == 1) == (longer.mean() > 0.5)
            np.testing.assert_array_equal(right[of_length] == 1, expected)


@pytest.mark.parametrize("line", ["a text", "a text\tx", "\t3", "a text\tnan"])
def test_a_malformed_rating_is_reported_with_its_line(line: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(f"# a text that begins with a sign\t3\n{line}\n", "utf-8")
    with pytest.raises(DatasetError) as caught:
        Specificity().read(path)
    assert (caught.value.code, caught.value.line) == ("unexpected-value", 2)
