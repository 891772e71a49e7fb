"""How additive sentence vectors are: errors on synthetic targets, changes of labels in trees, polarity flips."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr

from stillvec import WordVectors, evaluate
from stillvec.errors import DatasetError, UsageError
from stillvec.evaluation.composition import Composition, measure_changes, measure_errors
from stillvec.evaluation.flips import Flips
from stillvec.evaluation.intervals import Resampling, partial_spearman
from stillvec.heads.lookup import Lookup
from stillvec.heads.sequence_batches import SPECIAL, Sequences
from stillvec.heads.splits import Round
from stillvec.heads.trees import parse_tree
from stillvec.training.bag_regression import Bags, mean_text, solve_bags

EXAMPLES = [  # of the paper's table 4, with their impurity
    (
        "(4 (0 (2 If) (0 (2 (2 (2 Steven) (2 (2 Soderbergh) (2 's))) (2 (2 `) (2 (2 Solaris) (2 ')))) (0 (2 "
        "is) (0 (2 a) (0 failure))))) (1 (2 it) (0 (0 (2 is) (0 (2 a) (1 (4 glorious) (0 failure)))) (2 .))))",
        2.51,
    ),
    ("(3 (3 Cool) (2 ?))", 0.33),
    ("(2 (2 Nothing) (2 (2 (2 is) (2 (2 (2 black) (2 and)) (2 white))) (2 .)))", 0.0),
    (
        "(2 (2 (3 (3 (2 A) (2 (3 (2 (2 sober) (2 and)) (2 affecting)) (2 chronicle))) (2 (2 of) (2 (2 the) (2 "
        "leveling)))) (1 (2 effect) (1 (2 of) (1 loss)))) (2 .))",
        0.0,
    ),
    (
        "(4 (2 (2 (2 A) (2 coda)) (2 (2 in) (2 (2 (2 (2 every) (2 sense)) (2 ,)) (2 (2 The) (2 (1 Pinochet) "
        "(2 Case)))))) (2 (2 (2 splits) (2 (2 time) (3 (2 between) (2 (2 (2 a) (2 (2 minute-by-minute) (2 "
        "account))) (2 (2 of) (2 (2 (2 (2 (2 the) (2 (2 British) (2 (2 court) (2 's)))) (2 (2 extradition) (2 "
        "(2 chess) (2 game)))) (2 and)) (3 (2 (2 the) (2 (2 regime) (2 's))) (2 (2 talking-head) (2 "
        "survivors))))))))) (2 .)))",
        1.95,
    ),
]


@pytest.mark.parametrize(("tree", "impurity"), EXAMPLES)
def test_the_impurity_of_a_tree_is_that_of_the_paper(tree: str, impurity: float) -> None:
    changes = measure_changes(parse_tree(tree))
    assert changes is not None
    assert changes.impurity == pytest.approx(impurity, abs=0.007)


def test_node_switching_weights_the_changes_by_height() -> None:
    changes = measure_changes(parse_tree("(4 (1 (2 a) (0 (0 b) (4 c))) (3 d))"))
    assert changes is not None
    heights_and_switches = [(3, abs(4 - (1 + 3) / 2)), (2, abs(1 - (2 + 0) / 2)), (1, abs(0 - (0 + 4) / 2))]
    assert changes.wns == pytest.approx(sum(height * switch for height, switch in heights_and_switches) / 3)
    assert changes.impurity == pytest.approx(abs(4 - (4 + 1 + 2 + 0 + 0 + 4 + 3) / 7))
    assert measure_changes(parse_tree("(S (NP a) (VP b))")) is None


def _sentences(n: int = 600, n_words: int = 200, seed: int = 0) -> tuple[Sequences, NDArray[np.float32]]:
    """Random sentences of 4 to 12 words, and the sum of a vector per word."""
    random = np.random.default_rng(seed)
    lengths = random.integers(4, 13, n)
    ids = SPECIAL + random.integers(0, n_words, int(lengths.sum()))
    table = random.normal(size=(SPECIAL + n_words, 50)).astype(np.float32)
    sequences = Sequences(table, ids, np.cumsum(lengths))
    return sequences, sequences.means()


def _split(n: int = 600) -> Round:
    return Round(np.arange(200, n - 100), np.arange(n - 100, n), np.arange(200))


def test_the_error_of_additive_targets_is_zero_and_rises_with_noise() -> None:
    sequences, targets = _sentences()
    noise = np.random.default_rng(1).normal(size=targets.shape).astype(np.float32)
    means = []
    for size in (0, 0.5, 1):
        errors = measure_errors(sequences, targets + size * targets.std() * noise, _split(), 1)
        assert errors.covered.all()
        means.append((errors.plain.mean(), errors.centred.mean()))
    assert means[0][0] <= 0.002
    assert means[0][1] <= 0.002
    assert means[0][0] + 0.02 < means[1][0]
    assert means[1][0] + 0.02 < means[2][0]


def test_nothing_is_fitted_to_the_tested_sentences() -> None:
    sequences, targets = _sentences(n_words=900)
    changed = targets.copy()
    changed[:50] = 7
    before, after = (measure_errors(sequences, vectors, _split(), 3) for vectors in (targets, changed))
    np.testing.assert_array_equal(before.plain[50:], after.plain[50:])
    assert not np.allclose(before.plain[:50], after.plain[:50])
    in_sample = measure_errors(sequences, targets, replace(_split(), test=_split().train), 3)
    assert in_sample.centred.mean() < before.centred.mean() - 0.05  # what an error in-sample would hide


def test_words_of_bags_are_the_solution_of_the_normal_equations() -> None:
    random = np.random.default_rng(2)
    lengths = random.integers(1, 6, 40)
    words = random.integers(0, 12, int(lengths.sum()))
    shares = np.repeat(1 / lengths, lengths).astype(np.float32)
    a = np.zeros((40, 12))
    np.add.at(a, (np.repeat(np.arange(40), lengths), words), shares)
    c = random.normal(size=(40, 5))
    bags, products = Bags(words, shares, lengths, 12), (a.T @ c).astype(np.float32)
    solution, residual = solve_bags(bags, products, 0.3, 30)
    expected = np.linalg.solve(a.T @ a + 0.3 * np.eye(12), a.T @ (c - c.mean(axis=0)))
    np.testing.assert_allclose(solution, expected, atol=1e-4)
    np.testing.assert_allclose(mean_text(bags, products), c.mean(axis=0), atol=1e-6)
    assert residual < 1e-4


def test_the_partial_correlation_is_that_of_the_residuals_of_ranks() -> None:
    random = np.random.default_rng(3)
    z = random.normal(size=60)
    x, y = z + random.normal(size=60), z + random.normal(size=60)
    rank = [np.argsort(np.argsort(values)).astype(float) for values in (x, y, z)]
    design = np.stack([np.ones(60), rank[2]], axis=1)
    rest = [values - design @ np.linalg.lstsq(design, values, rcond=None)[0] for values in rank[:2]]
    assert partial_spearman(np.ones((1, 60)), x, y, z)[0] == pytest.approx(np.corrcoef(*rest)[0, 1])


WORDS = [f"w{number}" for number in range(30)]


def _write_trees(folder: Path) -> Path:
    random = np.random.default_rng(4)
    (folder / "trees").mkdir()
    lines = []
    for _ in range(80):
        words = random.choice(WORDS, random.integers(3, 9))
        labels = random.integers(0, 5, 2 * len(words))
        tree = f"({labels[0]} {words[0]})"
        for at, word in enumerate(words[1:], 1):
            tree = f"({labels[2 * at]} {tree} ({labels[2 * at + 1]} {word}))"
        lines.append(tree + "\n")
    path = folder / "trees" / "t.txt"
    path.write_text("".join(lines), "utf-8")
    return path


def test_composition_reports_the_mean_error_and_its_correlations(tmp_path: Path) -> None:
    path = _write_trees(tmp_path)
    vectors = WordVectors(WORDS, np.random.default_rng(5).normal(size=(30, 6)).astype(np.float32))
    scores = {score.metric: score for score in evaluate(vectors, tmp_path, ["composition:min_count=2"]).scores}
    assert scores["tre"].value < 0.01
    assert scores["tre"].n_covered == 80
    task = Composition(min_count=2)
    items = task.read(path)
    answers = task.answer(Lookup(vectors), items)
    wns = [change.wns for change in items.labels]
    expected = spearmanr(answers.values["tre"], wns).statistic
    assert scores["wns"].value == pytest.approx(expected, abs=1e-6)
    assert {"impurity", "wns-given-length", "wns-random", "tre-centred-random"} <= scores.keys()


def test_trees_without_numbers_have_errors_only(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("(S (NN w1) (VB w2))\n" * 30, "utf-8")
    items = Composition().read(path)
    answers = Composition().answer(Lookup(WordVectors(WORDS, np.eye(30, dtype=np.float32))), items)
    scores = Composition().score(items, answers, np.arange(len(items)), Resampling(5))
    assert [*scores] == ["tre", "tre-random", "tre-centred", "tre-centred-random"]


@dataclass(frozen=True)
class _Oracle(Lookup):
    """The vector of a text says its label, or nothing."""

    label: str = ""

    def encode_texts_steps(self, texts: Sequence[str]) -> Generator[float, None, NDArray[np.float32]]:
        yield 1.0
        return np.array([[self.label in text if self.label else 0.0, 1.0] for text in texts], np.float32)


def _write_flips(folder: Path) -> Path:
    for name in ("flips", "classification"):
        (folder / name).mkdir()
    training = [f"{n % 2} text {n} {'good' if n % 2 else 'bad'} w{n % 30}\n" for n in range(40)]
    (folder / "classification" / "y.train.txt").write_text("".join(training), "utf-8")
    pairs = [f"0\titem {n} is bad\t1\titem {n} is good\n" for n in range(20)]
    pairs += ["0\tvery bad\t1\tvery\n", "1\tgood item\t0\tGood item\n"]  # nothing new: left out
    path = folder / "flips" / "y.tsv"
    path.write_text("".join(pairs), "utf-8")
    return path


def test_an_oracle_has_all_flips_and_a_constant_none(tmp_path: Path) -> None:
    task = Flips()
    items = task.read(_write_flips(tmp_path))
    assert len(items) == 20
    vectors = WordVectors(["is", "bad", "good"], np.eye(3, dtype=np.float32))
    for label, expected in (("good", 1.0), ("", 0.0)):
        answers = task.answer(_Oracle(vectors, label=label), items)
        scores = task.score(items, answers, np.arange(20), Resampling(10))
        assert scores["pss"].value == expected
        assert answers.covered.all()
        if label:
            assert scores["relative-pss"].value == scores["accuracy-rewritten"].value == 1


class _Layers(_Oracle):
    """The labels at the second of two layers, noise at the first."""

    def encode_layers_steps(self, texts: Sequence[str]) -> Generator[float, None, list[np.ndarray]]:
        seen = yield from self.encode_texts_steps(texts)
        return [np.random.default_rng(0).normal(size=(len(texts), 2)).astype(np.float32), seen]


def test_a_mix_of_layers_is_learnt_for_flips(tmp_path: Path) -> None:
    task = Flips()
    items = task.read(_write_flips(tmp_path))
    vectors = WordVectors(["is", "bad", "good"], np.eye(3, dtype=np.float32))
    answers = task.answer(_Layers(vectors, label="good"), items)
    assert answers.values["pss"].mean() > 0.9  # chance: 0.25
    assert task.learns_mix


def test_flips_are_scored_beside_random_vectors(tmp_path: Path) -> None:
    _write_flips(tmp_path)
    vectors = WordVectors(["is", "bad", "good"], np.eye(3, dtype=np.float32))
    scores = {score.metric: score.value for score in evaluate(vectors, tmp_path, ["flips"], quick=True).scores}
    assert scores["pss"] == 1
    assert scores["relative-pss"] == pytest.approx(scores["pss"] / scores["accuracy"])
    assert "relative-pss-random" in scores


def test_metrics_keep_their_names_where_only_some_begin_alike(tmp_path: Path) -> None:
    _write_flips(tmp_path)
    vectors = WordVectors(["is", "bad", "good"], np.eye(3, dtype=np.float32))
    table = str(evaluate(vectors, tmp_path, ["flips"], quick=True, resamples=0))
    assert "y pss-random" in table
    assert "y random" not in table


def test_other_labels_of_the_pairs_do_not_change_what_is_predicted(tmp_path: Path) -> None:
    task = Flips()
    items = task.read(_write_flips(tmp_path))
    vectors = WordVectors([*WORDS, "bad", "good"], np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32))
    swapped = replace(items, labels=tuple((b, a) for a, b in items.labels[:20]) + items.labels[20:])
    right, wrong = (task.answer(Lookup(vectors), given).values["accuracy"] for given in (items, swapped))
    np.testing.assert_array_equal(right, ~wrong)


def test_changed_training_texts_are_another_dataset(tmp_path: Path) -> None:
    path = _write_flips(tmp_path)
    assert [file.name for file in Flips().other_data(path)] == ["y.train.txt"]


@pytest.mark.parametrize("line", ["0\ta b", "0\ta\t0\tb", "0\t\t1\tb", "0\ta\t1\tb\tc"])
def test_a_malformed_flip_is_reported_with_its_line(line: str, tmp_path: Path) -> None:
    path = _write_flips(tmp_path)
    path.write_text(f"0\tbad\t1\tgood\n{line}\n", "utf-8")
    with pytest.raises(DatasetError) as caught:
        Flips().read(path)
    assert (caught.value.code, caught.value.line) == ("unexpected-value", 2)


def test_flips_need_training_texts_with_their_labels(tmp_path: Path) -> None:
    path = _write_flips(tmp_path)
    path.write_text("0\tbad\tgreat\tgood\n", "utf-8")
    with pytest.raises(DatasetError, match="'great'"):
        Flips().read(path)
    (tmp_path / "classification" / "y.train.txt").unlink()
    with pytest.raises(DatasetError, match=r"y\.train\.txt"):
        Flips().read(path)


def test_settings_of_composition_are_checked() -> None:
    with pytest.raises(UsageError):
        Composition(min_count=0)
