"""Label probes compared: F1, kappa and tests as by scikit-learn and SciPy, restarts, agreement, reports."""

from __future__ import annotations

import json
import math
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import f_oneway, pearsonr, ttest_1samp
from sklearn.metrics import cohen_kappa_score, f1_score

from stillvec import WordVectors, evaluate
from stillvec.evaluation import Report
from stillvec.evaluation.intervals import holm
from stillvec.evaluation.label_probes import (
    MAJORITY,
    RANDOM,
    LabelProbe,
    Predictions,
    cohen_kappa,
    correct_tests,
    study_probes,
)
from stillvec.evaluation.label_tables import MEASURES
from stillvec.evaluation.labels import Labels
from stillvec.heads import networks
from stillvec.report import write_report
from stillvec.vocabulary import Vocabulary

KINDS = ["upos", "relation", "parent", "grandparent"]
NAMES = ("a", "b", "c", "d")


def predictions() -> Predictions:
    generator = np.random.default_rng(0)
    gold = generator.integers(0, 3, 120)  # the label d never occurs

    def say(share: float, n_restarts: int) -> np.ndarray:
        wrong = generator.random((120, n_restarts)) < share
        return np.where(wrong, generator.integers(0, 4, (120, n_restarts)), gold[:, None])

    by_set = {"x": say(0.2, 3), "y": say(0.6, 3), RANDOM: say(0.9, 3), MAJORITY: say(0.4, 1)}
    return Predictions(NAMES, gold, np.repeat(np.arange(20), 6), by_set)


def test_f1_and_accuracy_are_those_of_scikit_learn() -> None:
    given = predictions()
    probe = study_probes("toy", "upos", given)
    assert [*probe.labels] == sorted("abc", key=lambda name: -int((given.gold == NAMES.index(name)).sum()))
    for name, rows in given.by_set.items():
        assert probe.accuracies[name] == pytest.approx((rows == given.gold[:, None]).mean(axis=0))
        for at, said in enumerate(rows.T):
            expected = f1_score(given.gold, said, labels=[0, 1, 2], average=None)
            assert [probe.f1[name][label][at] for label in "abc"] == pytest.approx(expected)


def test_agreement_is_the_mean_over_pairs_of_restarts() -> None:
    given = predictions()
    probe = study_probes("toy", "upos", given)
    pairs = {(pair.a, pair.b): pair for pair in probe.agreements}
    assert len(pairs) == 4 + 3 + 2 + 0  # with itself, unless there is one restart only
    for a, b in (("x", "y"), ("x", "x"), ("y", MAJORITY)):
        restarts = [(at, (at + 1) % given.by_set[b].shape[1]) for at in range(3)]
        columns = [(given.by_set[a][:, i], given.by_set[b][:, j]) for i, j in restarts]
        assert pairs[a, b].kappa == pytest.approx(np.mean([cohen_kappa_score(x, y) for x, y in columns]))
        assert pairs[a, b].same == pytest.approx(np.mean([x == y for x, y in columns]))
        right = [(x == y) & (x == given.gold) for x, y in columns]
        assert pairs[a, b].both_right == pytest.approx(np.mean(right))
        f1 = [[f1_score(given.gold, said, labels=[0, 1, 2], average=None) for said in pair] for pair in columns]
        assert pairs[a, b].r_labels == pytest.approx(np.mean([pearsonr(x, y)[0] for x, y in f1]))
        sentences = [[(said == given.gold).reshape(20, 6).mean(axis=1) for said in pair] for pair in columns]
        assert pairs[a, b].r_sentences == pytest.approx(np.mean([pearsonr(x, y)[0] for x, y in sentences]))
    matrix = probe.matrix()
    np.testing.assert_array_equal(matrix, matrix.T)
    assert matrix[0, 1] == pairs["x", "y"].kappa
    assert math.isnan(matrix[3, 3])


def test_tests_over_restarts_are_those_of_scipy() -> None:
    probe = study_probes("toy", "upos", predictions())
    expected = ttest_1samp(probe.accuracies["x"], probe.accuracies[MAJORITY][0])
    assert (probe.t_tests["x"].statistic, probe.t_tests["x"].p) == pytest.approx((expected.statistic, expected.pvalue))
    assert [*probe.t_tests] == ["x", "y"]
    variance = f_oneway(probe.accuracies["x"], probe.accuracies["y"])
    assert probe.anova is not None
    assert (probe.anova.statistic, probe.anova.p) == pytest.approx((variance.statistic, variance.pvalue))
    both = correct_tests([probe, probe])
    ps = [test.p for test in probe.t_tests.values()]
    corrected = [test.p_corrected for part in both for test in part.t_tests.values()]
    assert corrected == holm(np.array([*ps, *ps])).tolist()
    assert both[0].anova is not None
    assert both[0].anova.p_corrected == min(1, 2 * probe.anova.p)


def test_agreement_is_undefined_without_words_or_variety() -> None:
    none = np.zeros(0, np.int64)
    assert np.isnan(cohen_kappa(none, none, 2)).all()
    assert cohen_kappa(np.zeros(5, np.int64), np.zeros(5, np.int64), 2)[0] == 1
    assert math.isnan(cohen_kappa(np.zeros(5, np.int64), np.zeros(5, np.int64), 2)[1])
    assert holm(np.array([0.03, np.nan, 0.01])).tolist() == pytest.approx([0.03, np.nan, 0.02], nan_ok=True)


def write_treebank(folder: Path, n_sentences: int = 120) -> Path:
    """A grammar of four rules: determiners, adjectives, nouns, verbs, each with six words."""
    generator = np.random.default_rng(1)
    lines = []
    for _ in range(n_sentences):
        tags = ["DET", *["ADJ"] * int(generator.integers(0, 2)), "NOUN", "VERB", "DET", "NOUN"]
        verb = tags.index("VERB") + 1
        for at, tag in enumerate(tags, 1):
            noun = next(place for place in range(at, len(tags) + 1) if tags[place - 1] in ("NOUN", "VERB"))
            head = {"VERB": 0, "NOUN": verb}.get(tag, noun)
            relation = {"VERB": "root", "DET": "det", "ADJ": "amod"}.get(tag, "nsubj" if at < verb else "obj")
            word = f"{tag.lower()}{generator.integers(0, 6)}"
            lines.append(f"{at}\t{word}\t{word}\t{tag}\t_\t_\t{head}\t{relation}\t_\t_")
        lines.append("")
    (folder / "tagging").mkdir(parents=True)
    (folder / "tagging" / "toy.conllu").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


def correlate_labels(x: Any, seen: Any, judged: Any, hidden: int, seed: int) -> Any:
    """A fast probe in the place of the perceptron: the label whose words have the most similar vectors."""
    noise = 0.01 * np.random.default_rng(seed).standard_normal(seen.shape[1])
    return (x @ (x.T @ seen / seen.sum()) + noise * np.square(x).mean()).argmax(axis=1)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = write_treebank(tmp_path_factory.mktemp("labels"))
    generator = np.random.default_rng(2)
    words = [f"{tag}{at}" for tag in ("det", "adj", "noun", "verb") for at in range(6)]
    matrix = np.repeat(3 * np.eye(4, 12), 6, axis=0) + 0.3 * generator.standard_normal((24, 12))
    real = WordVectors(Vocabulary(words), matrix.astype(np.float32))
    shuffled = real.with_matrix(np.tile(matrix[:1], (24, 1)).astype(np.float32))  # all words alike: no information
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(networks, "perceptron", correlate_labels)
        return evaluate({"real": real, "equal": shuffled}, folder, "labels:seeds=2", resamples=20)


def test_evaluate_reports_restarts_labels_and_agreement(report: Report) -> None:
    assert [probe.kind for probe in report.label_probes] == KINDS
    upos = report.label_probes[0]
    assert upos.names == ("real", "equal", RANDOM, MAJORITY)
    assert set(upos.labels) == {"DET", "ADJ", "NOUN", "VERB"}
    assert upos.n_words == sum(upos.labels.values())
    assert np.mean(upos.accuracies["real"]) > 0.95
    values = {score.metric: score for score in report.by("real") if score.words == "own"}
    assert values["upos-probe"].value == pytest.approx(np.mean(upos.accuracies["real"]))
    assert values["upos-probe-sd"].value == pytest.approx(np.std(upos.accuracies["real"], ddof=1))
    assert values["upos-majority"].value == pytest.approx(upos.accuracies[MAJORITY][0])


def test_restarts_agree_and_vectors_without_information_do_not(report: Report) -> None:
    upos = report.label_probes[0]
    pairs = {(pair.a, pair.b): pair for pair in upos.agreements}
    assert pairs["real", "real"].kappa > 0.95
    assert pairs["real", MAJORITY].kappa > 0.9
    assert pairs["real", "equal"].kappa < 0.1
    frequent = max(upos.labels.values()) / upos.n_words
    assert upos.accuracies["equal"] == (frequent, frequent)  # nothing beyond the most frequent label


def test_probes_survive_saving_and_are_in_every_report(report: Report, tmp_path: Path) -> None:
    assert Report.loads(report.dumps()).dumps() == report.dumps()
    assert Report.loads(report.dumps()).label_probes[0].f1 == report.label_probes[0].f1
    first = report.to_json()[0]
    content = json.loads(json.dumps(first["label_probes"], allow_nan=False))
    assert [probe["kind"] for probe in content] == KINDS
    assert isinstance(LabelProbe.from_json(content[0]), LabelProbe)
    assert "Cohen's kappa" in str(report)
    write_report(report, {}, tmp_path / "r.md")
    text = (tmp_path / "r.md").read_text("utf-8")
    assert "| upos NOUN |" in text
    assert "| grandparent real |" in text
    write_report(report, {}, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "Label probes" in page
    assert all(unescape(page).count(measure) == 2 for measure in MEASURES.values())  # caption and label of a table
    assert "NOUN (" in page  # a dot of the scatter plot
    assert re.findall(r'--heat:[^"]*"[^>]*>–<', page) == []  # no colour without a value


def test_constituents_give_the_labels_above_a_word(tmp_path: Path) -> None:
    (tmp_path / "trees").mkdir()
    trees = ["(TOP(S(NP (PRP It))(VP (VBZ works)(PP (IN in)(NP (NNP Rome))))))", "(TOP(INTJ (UH yes)))"]
    (tmp_path / "trees/toy.txt").write_text("\n".join(trees * 5), "utf-8")
    task = Labels(of="constituents")
    (path,) = task.find(tmp_path)
    items = task.read(path)
    by_text = dict(zip(items.texts, items.labels, strict=False))
    assert by_text["It", "works", "in", "Rome"] == (
        ("PRP", "NP", "S", "none"),
        ("VBZ", "VP", "S", "none"),
        ("IN", "PP", "VP", "S"),
        ("NNP", "NP", "PP", "VP"),
    )
    assert by_text["yes",] == (("UH", "INTJ", "none", "none"),)
    vectors = WordVectors(["it", "works", "in", "rome", "yes"], np.eye(5, 6, dtype=np.float32))
    report = evaluate({"a": vectors}, tmp_path, "labels:of=constituents,seeds=1,hidden=4", resamples=0)
    assert [probe.kind for probe in report.label_probes] == ["tag", "parent", "grandparent", "great-grandparent"]
