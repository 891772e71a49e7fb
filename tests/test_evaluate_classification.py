"""Sentence classification: the parts of a dataset, the linear probe against scikit-learn, the network, the scores."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import f1_score
from sklearn.neighbors import NearestNeighbors

from stillvec import evaluate
from stillvec.errors import DatasetError, UsageError
from stillvec.evaluation.classification import Classification, macro_f1
from stillvec.evaluation.intervals import Resampling
from stillvec.evaluation.multilabel import Multilabel
from stillvec.evaluation.network_training import CnnSchedule, Convolution
from stillvec.heads.linear_probe import RidgePath, Scaling, logistic, one_hot, predict, select_logistic
from stillvec.heads.lookup import Lookup
from stillvec.heads.neighbour_votes import balance_votes, count_votes
from stillvec.heads.networks import NetworkSettings, PaddedTexts
from stillvec.heads.sequence_batches import Sequences
from stillvec.heads.splits import FOLDS, fifths, parts_beside, rounds, whole_datasets, with_tested_first
from stillvec.heads.text_networks import CnnNetworks
from stillvec.vectors import WordVectors

GOOD, BAD, PLAIN = ("fine", "lovely", "great"), ("dull", "awful", "poor"), ("a", "film", "and", "the", "plot")


@pytest.fixture
def vectors() -> WordVectors:
    generator = np.random.default_rng(1)
    matrix = generator.standard_normal((11, 8)).astype(np.float32)
    matrix[:3, 0] += 3
    matrix[3:6, 0] -= 3
    return WordVectors([*GOOD, *BAD, *PLAIN], matrix)


def _write(path: Path, number: int, seed: int = 0) -> Path:
    generator = np.random.default_rng(seed)
    lines = []
    for at in range(number):
        label = at % 2
        words = [*generator.choice(PLAIN, 4), generator.choice(GOOD if label else BAD)]
        lines.append(f"{label} {' '.join(generator.permutation(words))}")
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_a_dataset_in_parts_is_one_dataset_and_a_file_alone_is_another(tmp_path: Path) -> None:
    for name in ("a.train", "a.dev", "a.test", "b", "c.train", "c.dev", "README"):
        _write(tmp_path / "classification" / f"{name}.txt", 2)
    found = Classification().find(tmp_path)
    assert [path.name for path in found] == ["a.test.txt", "b.txt", "c.train.txt"]
    assert {part: path.name for part, path in parts_beside(found[0]).items()} == {
        "train": "a.train.txt",
        "dev": "a.dev.txt",
        "test": "a.test.txt",
    }
    assert parts_beside(found[2]) == {"train": found[2]}


def test_a_test_file_without_a_training_file_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = _write(tmp_path / "classification" / "a.test.txt", 20)
    assert whole_datasets(path.parent, (".txt",)) == [path]
    with pytest.raises(DatasetError, match="train file of the same name"):
        Classification().read(path)


def test_every_item_is_tested_once_and_never_in_the_round_that_learns_from_it() -> None:
    labels = list("aab" * 30)
    divided = rounds({"train": 90}, labels, Path("x"))
    assert sorted(np.concatenate([each.test for each in divided]).tolist()) == [*range(90)]
    for each in divided:
        assert not set(each.test) & set(each.both)
        assert not set(each.train) & set(each.dev)
        assert len(each.train) == 54
    for label in "ab":
        held = np.bincount(fifths(labels)[np.array(labels) == label], minlength=FOLDS)
        assert held.max() - held.min() <= 1


def test_what_is_tested_comes_first_and_what_is_not_used_is_left_out() -> None:
    quick = rounds({"train": 100}, ["x"] * 100, Path("x"), most=20)
    order, (split,) = with_tested_first(quick)
    assert len(split.train) == 20
    assert len(split.dev) == 5
    assert len(order) == 45
    assert order[split.test].tolist() == quick[0].test.tolist()
    assert order[split.train].tolist() == quick[0].train.tolist()
    assert split.test.max() < len(split.test)


def test_logistic_regression_is_that_of_scikit_learn() -> None:
    generator = np.random.default_rng(0)
    x = generator.standard_normal((150, 6))
    y = (x[:, 0] + generator.standard_normal(150) > 0).astype(int) + (x[:, 1] > 1)
    theirs = LogisticRegression(C=1 / 3, tol=1e-9, max_iter=2000).fit(x, y)
    ours = logistic(x, one_hot(y, 3), 3.0)
    shares = np.exp(x @ ours[:-1] + ours[-1])
    shares /= shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares, theirs.predict_proba(x), atol=2e-3)
    assert (predict(x, ours) == theirs.predict(x)).all()


def test_counts_of_labels_weigh_as_that_many_items() -> None:
    x = np.random.default_rng(0).standard_normal((4, 3))
    seen = np.array([[3.0, 1.0], [0.0, 2.0], [5.0, 0.0], [0.0, 0.0]])
    rows, labels = np.nonzero(seen)
    often = seen[rows, labels].astype(int)
    apart = logistic(np.repeat(x[rows], often, axis=0), one_hot(np.repeat(labels, often), 2), 1.0)
    np.testing.assert_allclose(logistic(x, seen, 1.0), apart, atol=1e-3)


def test_ridge_regression_is_that_of_scikit_learn() -> None:
    generator = np.random.default_rng(0)
    x, y = generator.standard_normal((60, 5)) * [1, 2, 3, 4, 5] + 7, generator.standard_normal((60, 3))
    scaling = Scaling.of(x)
    theirs = Ridge(alpha=10.0).fit(scaling(x), y).predict(scaling(x))
    np.testing.assert_allclose(RidgePath(x, y).predict(x, 10.0), theirs, atol=1e-9)


def test_a_column_that_does_not_vary_says_nothing() -> None:
    x = np.array([[5.0, 1.0], [5.0, 2.0]])
    np.testing.assert_array_equal(Scaling.of(x)(np.array([[9.0, 1.5]])), [[0.0, 0.0]])


def test_the_penalty_is_chosen_on_development_items_alone() -> None:
    generator = np.random.default_rng(3)
    x = generator.standard_normal((60, 40))
    y = (x[:, 0] > 0).astype(np.int64)
    train, dev = np.arange(40), np.arange(40, 60)
    scores = {}
    for penalty in (0.01, 1000.0):
        scaling = Scaling.of(x[train])
        weights = logistic(scaling(x[train]), one_hot(y[train], 2), penalty)
        scores[penalty] = (predict(scaling(x[dev]), weights) == y[dev]).mean()
    best = max(scores, key=lambda each: (scores[each], each))
    scaling, found = select_logistic(x, y, train, dev, [0.01, 1000.0])
    np.testing.assert_allclose(found, logistic(scaling(x), one_hot(y, 2), best), atol=1e-2)


def test_the_network_is_a_convolution_with_the_largest_kept(vectors: WordVectors) -> None:
    sequences = Lookup(vectors).read_texts(["a lovely film", "dull"])
    group = CnnNetworks(_padded(sequences), np.arange(2) + 1, [NetworkSettings(0, 0, 1e-3)])
    ids = group.read(torch.arange(2)[None], 3)
    filters, bias, out, out_bias = (parameter[0] for parameter in group.parameters)
    filters = filters.view(8, 3, 100).permute(2, 0, 1)  # (F, dim, width), torch's order
    for row, length in enumerate((3, 1)):
        text = torch.from_numpy(sequences.scale_table())[ids[0, row, : length + 2]].T[None]
        statistics = torch.relu(torch.nn.functional.conv1d(text, filters, bias)).amax(dim=2)
        torch.testing.assert_close(group.scores(ids)[0, row : row + 1], statistics @ out + out_bias)


def _padded(sequences: Sequences) -> PaddedTexts:
    return PaddedTexts([sequences], torch.device("cpu"), border=1)


def test_frozen_vectors_stay_and_tuned_ones_move_but_for_padding_and_words_not_read(vectors: WordVectors) -> None:
    texts = ["a lovely film", "the dull plot", "great"]
    sequences = Lookup(vectors).read_texts(texts)
    labels = np.array([1, 0, 1])
    for tuned in (False, True):
        work = Convolution(_padded(sequences), labels, tuned=tuned)
        *_, group = work.train(np.array([0, 1]), [NetworkSettings(0, 0, 0.01)], 2)
        read = group.embed(torch.arange(len(sequences.table))[None])[0].detach().numpy()
        moved = (read != sequences.scale_table()).any(axis=1)
        assert moved.any() == tuned
        assert not moved[0]
        assert not moved[sequences.ids[sequences.text == 2]].any()


@pytest.mark.parametrize("model", ["linear", "cnn"])
def test_what_words_tell_is_learnt_and_twice_the_same(model: str, vectors: WordVectors, tmp_path: Path) -> None:
    path = _write(tmp_path / "classification" / "mine.txt", 600)
    task = Classification(model=model, quick=True)
    items = task.read(path)
    first, second = (task.answer(Lookup(vectors), items) for _ in range(2))
    assert len(items) == 120
    for metric, values in first.values.items():
        assert values.tobytes() == second.values[metric].tobytes()
    scores = task.score(items, first, np.arange(120), Resampling(100))
    assert scores[f"accuracy-{model}"].value > 0.9
    assert scores["known-words"].value == 1


def test_a_text_without_known_words_is_not_covered_and_words_are_counted(vectors: WordVectors, tmp_path: Path) -> None:
    path = _write(tmp_path / "classification" / "a.train.txt", 40)
    (tmp_path / "classification" / "a.test.txt").write_text("1 zebra\n0 dull zebra\n1 \n", "utf-8")
    task = Classification(model="linear")
    items = task.read(path.with_name("a.test.txt"))
    answers = task.answer(Lookup(vectors), items)
    assert answers.covered.tolist() == [False, True, False]
    assert task.score(items, answers, np.arange(3), Resampling(0))["known-words"].value == pytest.approx(1 / 3)


def test_seeds_have_a_mean_and_a_spread(vectors: WordVectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stillvec.evaluation.network_training.CnnSchedule", lambda: CnnSchedule((1e-3,), (1, 1)))
    _write(tmp_path / "classification" / "a.train.txt", 40)
    path = _write(tmp_path / "classification" / "a.test.txt", 30, seed=5)
    task = Classification(model="cnn", seeds=3)
    items = task.read(path)
    work = task.answer_steps(Lookup(vectors), items)
    events = []
    while True:
        try:
            events.append(next(work))
        except StopIteration as end:
            answers = end.value
            break
    assert events == sorted(events)
    assert events[-1] == 1
    labels = answers.values["macro-f1-cnn"]
    right = (labels == items.gold[:, None]).mean(axis=0)
    scores = task.score(items, answers, np.arange(30), Resampling(50))
    assert scores["accuracy-cnn"].value == pytest.approx(right.mean())
    assert scores["accuracy-cnn-sd"].value == pytest.approx(right.std(ddof=1))
    assert answers.values["accuracy-cnn"].mean() == pytest.approx(right.mean())


def test_macro_f1_is_that_of_scikit_learn_also_in_a_resample() -> None:
    generator = np.random.default_rng(0)
    gold, labels = generator.integers(0, 4, 50).astype(float), generator.integers(0, 4, (50, 2)).astype(float)
    (weights,) = Resampling(3, 1).weights(50)
    found = macro_f1(weights, gold, labels)
    for row, value in zip(weights.astype(int), found, strict=True):
        drawn = np.repeat(np.arange(50), row)
        theirs = [f1_score(gold[drawn], labels[drawn, seed], average="macro") for seed in (0, 1)]
        assert value == pytest.approx(np.mean(theirs))


def test_lines_in_latin_1_and_utf_8_stand_side_by_side(tmp_path: Path) -> None:
    path = tmp_path / "mixed.txt"
    path.write_bytes("".join(f"{n % 2} crème {n}\n" for n in range(20)).encode() + "1 brûlée\n".encode("latin-1"))
    items = Classification(model="linear").read(path)
    assert items.texts[0] == ("crème 0",)
    assert items.texts[20] == ("brûlée",)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_byte_order_mark_is_no_part_of_the_first_label(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "marked.txt"
    path.write_text("".join(f"{n % 2} crème {n}\n" for n in range(20)), encoding)
    assert Classification(model="linear").read(path).texts[:2] == (("crème 0",), ("crème 1",))
    path.write_bytes(path.read_bytes()[:-1])  # half a character
    with pytest.raises(DatasetError, match=f"expected {encoding.upper()} text"):
        Classification(model="linear").read(path)


def test_random_bytes_are_no_labelled_texts(tmp_path: Path) -> None:
    (tmp_path / "noise.txt").write_bytes(np.random.default_rng(0).bytes(3000))
    for task in (Classification(model="linear"), Multilabel()):
        with pytest.raises(DatasetError, match="binary data"):
            task.read(tmp_path / "noise.txt")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1 good\n0\n", r"x\.txt:2: .*'0'"),
        ("\n", r"x\.txt:1: .*empty"),
        ("1 good\n" * 12, "two labels"),
        ("1 good\n0 bad\n", "10 training items.* 2"),
    ],
)
def test_a_malformed_file_is_an_error(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text(content, "utf-8")
    with pytest.raises(DatasetError, match=message):
        Classification().read(path)


def test_invalid_settings_are_refused() -> None:
    with pytest.raises(UsageError, match="both, cnn, knn, linear"):
        Classification(model="tree")
    with pytest.raises(UsageError, match="seeds"):
        Classification(seeds=0)


def test_real_reviews_are_classified_with_real_vectors(data_folder: Path, word_pieces: WordVectors) -> None:
    task = Classification(model="linear", quick=True)
    items = task.read(data_folder / "classification" / "cr.txt")
    answers = task.answer(Lookup(word_pieces), items)
    scores = task.score(items, answers, np.flatnonzero(answers.covered), Resampling(0))
    assert scores["accuracy-linear"].value > 0.7


def test_neighbours_vote_as_those_of_scikit_learn() -> None:
    generator = np.random.default_rng(2)
    train, x = generator.standard_normal((60, 5)), generator.standard_normal((25, 5))
    labels = np.repeat([0, 1, 2], [40, 15, 5])
    votes = count_votes(train, labels, x, 7, 3)
    nearest = NearestNeighbors(n_neighbors=7, metric="cosine").fit(train).kneighbors(x, return_distance=False)
    expected = np.stack([(labels[nearest] == label).sum(axis=1) for label in range(3)], axis=1)
    np.testing.assert_allclose(votes, expected, atol=1e-4)
    np.testing.assert_allclose(balance_votes(votes, labels), votes / [40, 15, 5])


def test_balanced_votes_pay_where_the_test_is_balanced_and_training_is_not() -> None:
    """Counts as in Coria et al. (2020); 16 dimensions, a class a Gaussian."""
    sizes = np.array([74, 811, 118, 282, 143, 1772])
    scores = []
    for seed in range(3):
        generator = np.random.default_rng(seed)
        centres = generator.standard_normal((6, 16)) * 0.75
        labels, gold = np.repeat(np.arange(6), sizes), np.repeat(np.arange(6), 60)
        train, x = (centres[y] + generator.standard_normal((len(y), 16)) for y in (labels, gold))
        votes = count_votes(train, labels, x, 10, 6)
        said = votes.argmax(axis=1), balance_votes(votes, labels).argmax(axis=1)
        scores.append([f1_score(gold, column, average="macro") for column in said])
    plain, balanced = np.mean(scores, axis=0)
    assert balanced > plain + 0.1


def test_nearest_neighbours_are_metrics_with_their_control(vectors: WordVectors, tmp_path: Path) -> None:
    task = Classification(model="knn+linear", k=3)
    items = task.read(_write(tmp_path / "classification" / "films.txt", 60))
    answers = task.answer(Lookup(vectors), items)
    scores = task.score(items, answers, np.arange(60), Resampling(0, 0))
    assert scores["accuracy-knn"].value > 0.9
    assert scores["macro-f1-knn-balanced"].value > 0.9
    assert scores["accuracy-majority"].value == pytest.approx(0.5)
    assert not task.ranks_by("macro-f1-majority")
    assert task.ranks_by("macro-f1-knn-balanced")
    matrix = Lookup(vectors).encode_texts([text for (text,) in items.all_texts])
    split = items.rounds[0]
    ours = answers.values["macro-f1-knn"][split.test, 0]
    labels = np.array(items.labels)
    votes = count_votes(matrix[split.both], labels[split.both], matrix[split.test], 3, 2)
    np.testing.assert_array_equal(ours, votes.argmax(axis=1))


def test_what_the_neighbours_say_does_not_depend_on_test_labels(vectors: WordVectors, tmp_path: Path) -> None:
    for part, number in (("train", 40), ("test", 20)):
        _write(tmp_path / "classification" / f"films.{part}.txt", number, seed=number)
    task = Classification(model="knn+linear", center=True)
    path = tmp_path / "classification" / "films.test.txt"
    before = task.answer(Lookup(vectors), task.read(path)).values
    path.write_text("".join(f"{1 - int(line[0])}{line[1:]}\n" for line in path.read_text().splitlines()))
    after = task.answer(Lookup(vectors), task.read(path)).values
    for metric in ("macro-f1-knn", "macro-f1-knn-balanced", "macro-f1-linear"):
        np.testing.assert_array_equal(before[metric], after[metric])


def test_a_teacher_and_a_mix_of_its_layers_classify_texts(model: str, tmp_path: Path) -> None:
    for part, number in (("train", 60), ("test", 20)):
        _write(tmp_path / "classification" / f"films.{part}.txt", number, seed=number)
    sources = {"layer": f"teacher:{model}@1", "mix": f"teacher:{model}@mix"}
    report = evaluate(sources, tmp_path, "classification:model=linear+cnn+knn", quick=True, resamples=10)
    scores = {(score.vectors, score.metric): score for score in report.scores}
    for name in sources:
        assert scores[name, "known-words"].value == 1
        assert {metric for of, metric in scores if of == name} >= {f"accuracy-{kind}" for kind in ("cnn", "knn")}
    assert scores["layer", "accuracy-linear"].value > 0.7  # a model of random weights


def test_datasets_on_which_models_are_trained_at_once_have_the_scores_of_one_after_the_other(
    vectors: WordVectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed, name in enumerate("abc"):
        _write(tmp_path / "classification" / f"{name}.txt", 60, seed)
    (tmp_path / "classification" / "d.txt").write_text("only one label\n", "utf-8")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    reports, at_once = [], []
    for n_cores in (1, 3):
        monkeypatch.setattr(os, "cpu_count", lambda n_cores=n_cores: n_cores)
        threads: set[int] = set()
        answer = Classification.answer_steps

        def watch(self: Classification, *rest: Any, threads: set[int] = threads, answer: Any = answer) -> Any:
            threads.add(threading.get_ident())
            return answer(self, *rest)

        with monkeypatch.context() as context:
            context.setattr(Classification, "answer_steps", watch)
            reports.append(evaluate(vectors, tmp_path, "classification:model=linear+cnn", quick=True, resamples=10))
        at_once.append(len(threads))
    assert reports[0] == reports[1]
    assert len(reports[0].errors) == 1
    assert at_once[0] == 1 < at_once[1]
