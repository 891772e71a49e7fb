"""Correlations and intervals against scipy, and what becomes of unknown words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from stillvec import Vocabulary, WordVectors
from stillvec.errors import UsageError
from stillvec.evaluation import evaluate, mean_difference
from stillvec.evaluation.intervals import Resampling, pearson, spearman, wilson
from stillvec.evaluation.similarity import Similarity
from stillvec.heads.lookup import Lookup


def noisy(n: int, ties: bool) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(3)
    x = generator.standard_normal(n)
    y = x + generator.standard_normal(n)
    return (np.round(x * 2), np.round(y * 2)) if ties else (x, y)


def similarity_folder(folder: Path, content: str, name: str = "pairs.tsv") -> Path:
    (folder / "similarity").mkdir(exist_ok=True)
    (folder / "similarity" / name).write_text(content, "utf-8")
    return folder


def random_vectors(n: int = 60, seed: int = 0, dim: int = 8) -> WordVectors:
    matrix = np.random.default_rng(seed).standard_normal((n, dim))
    return WordVectors(Vocabulary([f"w{i}" for i in range(n)]), matrix)


def gold_of(vectors: WordVectors, noise: float, n: int = 300) -> str:
    """Pairs whose gold score is the vectors' own cosine and some noise."""
    generator = np.random.default_rng(9)
    pairs = generator.integers(0, len(vectors), (n, 2))
    gold = [vectors.similarity(*(vectors.words[i] for i in pair)) for pair in pairs]
    return "".join(
        f"w{a}\tw{b}\t{g + noise * generator.standard_normal():.4f}\n" for (a, b), g in zip(pairs, gold, strict=True)
    )


@pytest.mark.parametrize("ties", [False, True])
def test_spearman_and_pearson_are_those_of_scipy(ties: bool) -> None:
    x, y = noisy(200, ties)
    ones = np.ones((1, 200))
    assert spearman(ones, x, y)[0] == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    assert pearson(ones, x, y)[0] == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)


def test_each_resample_has_the_spearman_of_the_items_it_drew() -> None:
    x, y = noisy(40, ties=True)
    weights = next(Resampling(25, seed=1).weights(40))
    assert (weights.sum(axis=1) == 40).all()
    drawn = [np.repeat(np.arange(40), row.astype(int)) for row in weights]
    wanted = [stats.spearmanr(x[rows], y[rows]).statistic for rows in drawn]
    np.testing.assert_allclose(spearman(weights, x, y), wanted, atol=1e-12)


def test_an_interval_holds_the_value_is_narrower_with_more_items_and_repeats() -> None:
    few, many = noisy(50, ties=False), noisy(2000, ties=False)
    narrow = Resampling(400).correlation(spearman, *many)
    wide = Resampling(400).correlation(spearman, *few)
    assert narrow.low < narrow.value < narrow.high
    assert narrow.high - narrow.low < (wide.high - wide.low) / 2
    assert Resampling(400).correlation(spearman, *many) == narrow
    assert Resampling(400, seed=1).correlation(spearman, *many) != narrow


def test_the_interval_agrees_with_the_bootstrap_of_scipy() -> None:
    x, y = noisy(150, ties=False)
    ours = Resampling(4000).correlation(pearson, x, y)
    theirs = stats.bootstrap(
        (x, y),
        lambda a, b: stats.pearsonr(a, b).statistic,
        paired=True,
        method="percentile",
        n_resamples=2000,
    ).confidence_interval
    assert ours.low == pytest.approx(theirs.low, abs=0.02)
    assert ours.high == pytest.approx(theirs.high, abs=0.02)


def test_what_does_not_vary_has_no_correlation() -> None:
    estimate = Resampling(20).correlation(spearman, np.full(9, 0.1), np.arange(9.0))
    assert np.isnan(estimate).all()
    assert np.isnan(Resampling(20).correlation(pearson, np.full(9, 0.1), np.arange(9.0))).all()
    assert np.isnan(Resampling(20).correlation(spearman, np.ones(1), np.ones(1))).all()


@pytest.mark.parametrize(("right", "n"), [(0, 10), (10, 10), (7, 20), (130, 977)])
def test_the_wilson_interval_is_that_of_scipy(right: int, n: int) -> None:
    wanted = stats.binomtest(right, n).proportion_ci(method="wilson")
    assert wilson(right, n) == pytest.approx((right / n, wanted.low, wanted.high), abs=1e-12)


def test_similarity_is_the_spearman_of_the_cosines(tmp_path: Path) -> None:
    vectors = random_vectors()
    folder = similarity_folder(tmp_path, gold_of(vectors, 0.3))
    (score,) = evaluate(vectors, folder, resamples=100).scores
    rows = [line.split("\t") for line in (folder / "similarity/pairs.tsv").read_text().splitlines()]
    cosines = np.round([vectors.similarity(a, b) for a, b, _ in rows], 12)  # a word and itself: always 1
    assert score.value == pytest.approx(stats.spearmanr(cosines, [float(r[2]) for r in rows]).statistic, abs=1e-12)
    assert (score.task, score.dataset, score.metric, score.words) == (
        "similarity",
        "pairs",
        "spearman",
        "own",
    )
    assert score.low < score.value < score.high


def test_coverage_counts_items_whose_words_are_all_known_and_zero_vectors_are_not(tmp_path: Path) -> None:
    matrix = np.eye(5)
    matrix[4] = 0
    vectors = WordVectors(Vocabulary(["a", "b", "c", "d", "zero"]), matrix + np.array([1, 0, 0, 0, 0]) * 0.0)
    folder = similarity_folder(tmp_path, "a\tb\t1\na\tA\t9\nc\td\t2\na\tzero\t3\na\tmissing\t4\n")
    (score,) = evaluate(vectors, folder).scores
    assert (score.n_items, score.n_covered) == (5, 3)  # "A" is "a" to a vocabulary in lower case


def test_the_policies_put_the_mean_or_the_zero_vector_for_an_unknown_word(tmp_path: Path) -> None:
    vectors = WordVectors(Vocabulary(["a", "b", "c"]), [[1, 0], [0.6, 0.8], [-1, 0.5]])
    folder = similarity_folder(tmp_path, "a\tb\t3\na\tx\t2\nb\tc\t1\nc\tx\t5\n")
    gold = [3, 2, 1, 5]
    mean = np.mean([[1, 0], [0.6, 0.8], [-1, 0.5]], axis=0)

    def cosine(x: np.ndarray, y: np.ndarray) -> float:
        return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))

    by_policy = {
        "skip": [cosine(vectors["a"], vectors["b"]), cosine(vectors["b"], vectors["c"])],
        "mean": [
            cosine(vectors[p], vectors[q]) if q != "x" else cosine(vectors[p], mean)
            for p, q in ("ab", "ax", "bc", "cx")
        ],
        "zero": [cosine(vectors[p], vectors[q]) if q != "x" else 0.0 for p, q in ("ab", "ax", "bc", "cx")],
    }
    for policy, cosines in by_policy.items():
        (score,) = evaluate(vectors, folder, oov=policy).scores
        wanted = stats.spearmanr(cosines, [3, 1] if policy == "skip" else gold).statistic
        assert score.value == pytest.approx(wanted), policy
        assert (score.n_items, score.n_covered, score.unknown) == (4, 2, policy)


def test_rows_that_are_not_finite_are_unknown() -> None:
    vectors = WordVectors(Vocabulary(["good", "nan", "inf"]), [[1, 2], [np.nan, 1], [np.inf, 1]])
    assert Lookup(vectors).rows(["good", "nan", "inf", "none"]).tolist() == [0, -1, -1, -1]


def test_several_sets_are_also_scored_on_the_items_all_know(tmp_path: Path) -> None:
    full = random_vectors()
    part = full.subset(full.words[:30])
    folder = similarity_folder(tmp_path, gold_of(full, 0.3))
    report = evaluate({"full": full, "part": part}, folder, resamples=50)
    by_words = {(s.vectors, s.words): s for s in report.scores}
    assert by_words["full", "own"].n_covered == 300 > by_words["part", "own"].n_covered
    # the same vectors on the same items are one number
    assert by_words["full", "common"].value == pytest.approx(by_words["part", "own"].value)
    assert by_words["full", "common"].n_covered == by_words["part", "own"].n_covered
    assert {s.words for s in evaluate({"a": full, "b": part}, folder, common=False).scores} == {"own"}
    assert {s.words for s in evaluate(full, folder).scores} == {"own"}


def test_a_mean_difference_finds_the_better_set_and_none_between_equals(tmp_path: Path) -> None:
    good, bad = random_vectors(), random_vectors(seed=5)
    folder = similarity_folder(tmp_path, gold_of(good, 0.3))
    similarity_folder(tmp_path, gold_of(good, 0.2, n=80), "second.tsv")
    better = mean_difference(good, bad, folder, resamples=200)
    values = {n: [s.value for s in evaluate(v, folder, resamples=0).scores] for n, v in (("g", good), ("b", bad))}
    assert better.value == pytest.approx(np.mean(values["g"]) - np.mean(values["b"]))
    assert 0 < better.low < better.value < better.high
    assert mean_difference(good, good, folder, resamples=50) == (0, 0, 0)
    assert mean_difference(bad, good, folder, resamples=200).value == -better.value
    with pytest.raises(UsageError, match="second"):
        mean_difference(good, bad, folder, ["secnd"])


def test_a_mean_difference_is_taken_on_the_items_both_know(tmp_path: Path) -> None:
    full = random_vectors()
    folder = similarity_folder(tmp_path, gold_of(full, 0.3))
    assert mean_difference(full, full.subset(full.words[:30]), folder, resamples=20) == (0, 0, 0)
    with pytest.raises(UsageError, match="two pairs"):
        mean_difference(full, WordVectors(["foreign"], [[1.0]]), folder)


def test_similarity_is_that_of_gensim_on_real_vectors(word_pieces: WordVectors) -> None:
    theirs = pytest.importorskip("gensim.models").KeyedVectors(word_pieces.dim)
    theirs.add_vectors(list(word_pieces.words), np.array(word_pieces.matrix))
    utils = pytest.importorskip("gensim.test.utils")
    for name, n_items in (("wordsim353.tsv", 353), ("simlex999.txt", 999)):
        _, spearman, out = theirs.evaluate_word_pairs(utils.datapath(name))
        task = Similarity()
        items = task.read(Path(utils.datapath(name)))
        answers = task.answer(Lookup(word_pieces), items)
        chosen = np.flatnonzero(answers.covered)
        assert len(items) == n_items
        assert 100 * (1 - len(chosen) / n_items) == pytest.approx(out)
        assert task.score(items, answers, chosen, Resampling(0))["spearman"].value == pytest.approx(
            spearman[0], abs=1e-6
        )
