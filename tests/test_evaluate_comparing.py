"""Paired comparisons: against scipy, by simulation, corrected; what lexicons hold; policies; shared neighbours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from stillvec import Vocabulary, WordVectors
from stillvec.errors import LexiconError, StillvecWarning, UsageError
from stillvec.evaluation import Comparison, PolicyRanking, Report, Score, evaluate, mean_difference
from stillvec.evaluation.comparison import BootstrapSample, bootstrap, compare, correct_holm
from stillvec.evaluation.intervals import Estimate, Resampling
from stillvec.evaluation.score_table import average_independent
from stillvec.evaluation.similarity import Similarity
from stillvec.evaluation.tasks import Answers, Items
from stillvec.lexicons import Edge, as_pair, find_pairs
from stillvec.refinement.retrofit import Retrofit


@dataclass(frozen=True)
class Mean(Similarity):
    """A task whose score is the mean of its answers."""

    def score(self, items: Items, answers: Answers, chosen: np.ndarray, resampling: Resampling) -> dict[str, Estimate]:
        return {"accuracy": Estimate(float(np.mean(answers.values["accuracy"][chosen])), 0.0, 0.0)}


@dataclass(frozen=True)
class F1(Similarity):
    """A task whose score is no mean of anything."""

    def score(self, items: Items, answers: Answers, chosen: np.ndarray, resampling: Resampling) -> dict[str, Estimate]:
        said, true = answers.values["f1"][chosen] > 0, items.gold[chosen] > 0
        value = 2 * (said & true).sum() / max(1, said.sum() + true.sum())
        return {"f1": Estimate(float(value), 0.0, 0.0)}


def items_of(gold: np.ndarray) -> Items:
    return Items(tuple(("a", "b") for _ in gold), gold)


def one_comparison(
    task: Similarity, metric: str, gold: np.ndarray, a: np.ndarray, b: np.ndarray, resamples: int = 1000
) -> Comparison:
    items, chosen = items_of(gold), np.arange(len(gold))
    of = {
        name: bootstrap(task, items, Answers(np.ones(len(gold), bool), {metric: x}), chosen, Resampling(resamples), 0)
        for name, x in (("a", a), ("b", b))
    }
    return compare(("t", "d", metric), {n: each[metric] for n, each in of.items()}, len(gold))[0]


def test_a_mean_is_compared_as_by_the_paired_t_test_of_scipy() -> None:
    generator = np.random.default_rng(0)
    a = generator.standard_normal(60)
    b = 0.6 * a + generator.standard_normal(60) - 0.3
    ours = one_comparison(Mean(), "accuracy", np.ones(60), a, b, resamples=20_000)
    theirs = stats.ttest_rel(a, b)
    bounds = theirs.confidence_interval()
    assert ours.difference == pytest.approx(float(np.mean(a - b)))
    assert ours.p == pytest.approx(theirs.pvalue, rel=0.1)
    assert (ours.low, ours.high) == pytest.approx((bounds.low, bounds.high), abs=0.01)


@pytest.mark.parametrize(("task", "metric"), [(Mean(), "accuracy"), (Similarity(), "spearman"), (F1(), "f1")])
def test_equal_sets_differ_significantly_in_about_one_case_of_twenty(task: Similarity, metric: str) -> None:
    generator = np.random.default_rng(1)
    rounds, n = 200 if metric != "f1" else 60, 80
    found = []
    for _ in range(rounds):
        truth = generator.standard_normal(n)
        a, b = (truth + generator.standard_normal(n) for _ in range(2))
        gold = truth + 0.3 * generator.standard_normal(n)
        if metric == "accuracy":
            a, b = a > 0, b > 0
        found.append(one_comparison(task, metric, gold, a, b, resamples=200).p < 0.05)
    assert 0.005 <= np.mean(found) <= 0.11  # of 200 rounds, 10 are expected, and 1 to 22 cannot be chance


def test_a_true_difference_is_found_whatever_the_metric_is() -> None:
    generator = np.random.default_rng(2)
    truth = generator.standard_normal(300)
    good, bad = truth + 0.5 * generator.standard_normal(300), truth + 3 * generator.standard_normal(300)
    for task, metric in ((Similarity(), "spearman"), (F1(), "f1")):
        found = one_comparison(task, metric, truth, good, bad)
        assert 0 < found.low < found.difference < found.high
        assert found.p < 1e-3
        back = one_comparison(task, metric, truth, bad, good)
        assert (back.difference, back.p) == pytest.approx((-found.difference, found.p))


def test_what_the_task_scores_itself_is_what_weights_give() -> None:
    """The first resamples of both ways are the same draws."""

    @dataclass(frozen=True)
    class Hidden(Similarity):
        def score(
            self, items: Items, answers: Answers, chosen: np.ndarray, resampling: Resampling
        ) -> dict[str, Estimate]:
            value = stats.spearmanr(items.gold[chosen], answers.values["hidden"][chosen]).statistic
            return {"other": Estimate(float(value), 0.0, 0.0)}

    generator = np.random.default_rng(3)
    gold, x = generator.standard_normal((2, 50))
    items, chosen = items_of(gold), np.arange(50)
    fast = bootstrap(Similarity(), items, Answers(np.ones(50, bool), {"spearman": x}), chosen, Resampling(1000), 4)
    slow = bootstrap(Hidden(), items, Answers(np.ones(50, bool), {"hidden": x}), chosen, Resampling(1000), 4)
    assert len(slow["other"].resampled) == 200
    np.testing.assert_allclose(slow["other"].resampled, fast["spearman"].resampled[:200], atol=1e-12)


def test_a_p_is_never_smaller_than_the_items_that_differ_can_give() -> None:
    same = np.zeros(40)
    other = same.copy()
    other[:3] = 1
    assert one_comparison(Mean(), "accuracy", np.ones(40), other, same).p >= 0.25
    assert one_comparison(Mean(), "accuracy", np.ones(6), np.ones(6), np.zeros(6)).p == pytest.approx(2**-5)
    assert one_comparison(Mean(), "accuracy", np.ones(6), np.ones(6), np.ones(6)).p == 1


def test_holm_corrects_for_all_that_are_on_the_same_words() -> None:
    def with_p(p: float, words: str = "common") -> Comparison:
        return Comparison("t", "d", "m", "a", "b", 0.1, 0.0, 0.2, p, p, 9, words)  # type: ignore[arg-type]

    found = correct_holm([with_p(0.04), with_p(0.01), with_p(0.03), with_p(math.nan), with_p(0.02, "unleaked")])
    # sorted 0.01, 0.03, 0.04: times 3, 2, 1, and never less than the one before
    assert [each.p_corrected for each in found[:3]] == pytest.approx([0.06, 0.03, 0.06])
    assert math.isnan(found[3].p_corrected)
    assert found[4].p_corrected == 0.02
    assert [each.significant for each in found] == [False, True, False, False, True]
    assert [each.p for each in found[:3]] == [0.04, 0.01, 0.03]


def vectors(seed: int = 0, n: int = 60) -> WordVectors:
    return WordVectors(Vocabulary([f"w{i}" for i in range(n)]), np.random.default_rng(seed).standard_normal((n, 6)))


def data_of(folder: Path, of: WordVectors, names: tuple[str, ...] = ("one", "two")) -> Path:
    """Similarity datasets whose right answers are the cosines of a set of vectors and some noise."""
    generator = np.random.default_rng(7)
    (folder / "similarity").mkdir(parents=True)
    for name in names:
        pairs = generator.integers(0, len(of), (150, 2))
        rows = [
            f"w{a}\tw{b}\t{of.similarity(f'w{a}', f'w{b}') + 0.2 * generator.standard_normal():.4f}" for a, b in pairs
        ]
        (folder / "similarity" / f"{name}.tsv").write_text("\n".join(rows))
    return folder


def test_a_report_compares_each_two_sets_on_the_items_that_all_know(tmp_path: Path) -> None:
    good, bad = vectors(), vectors(5)
    folder = data_of(tmp_path / "data", good)
    sets = {"good": good, "bad": bad, "part": good.subset(good.words[:40])}
    report = evaluate(sets, folder, resamples=200)
    assert [(each.dataset, each.a, each.b) for each in report.comparisons][:3] == [
        ("one", "good", "bad"),
        ("one", "good", "part"),
        ("one", "bad", "part"),
    ]
    common = {(s.vectors, s.dataset): s for s in report.scores if s.words == "common"}
    for each in report.comparisons:
        assert each.difference == pytest.approx(common[each.a, each.dataset].value - common[each.b, each.dataset].value)
        assert each.n_items == common[each.a, each.dataset].n_covered
    assert {(each.a, each.b): each.significant for each in report.comparisons if each.dataset == "one"} == {
        ("good", "bad"): True,
        ("good", "part"): False,
        ("bad", "part"): True,
    }
    assert [each.dataset for each in report.overall] == ["mean of 2"] * 3
    assert evaluate(good, folder, resamples=10).comparisons == ()


def test_the_overall_difference_is_the_mean_difference(tmp_path: Path) -> None:
    good, bad = vectors(), vectors(5)
    folder = data_of(tmp_path / "data", good)
    (ours,) = evaluate({"a": good, "b": bad}, folder, resamples=500).overall
    theirs = mean_difference(good, bad, folder, resamples=500)
    assert ours.difference == pytest.approx(theirs.value)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.04)


def test_with_vectors_for_unknown_words_sets_are_compared_on_every_item(tmp_path: Path) -> None:
    folder = data_of(tmp_path / "data", vectors())
    sets = {"a": vectors(), "b": vectors().subset(vectors().words[:30])}
    report = evaluate(sets, folder, oov="zero", resamples=50)
    assert {(each.n_items, each.words) for each in report.comparisons} == {(150, "own")}


def test_a_pair_is_the_same_in_any_order_and_case() -> None:
    assert as_pair("Paris", "London") == as_pair("london", "PARIS") == ("london", "paris")
    edges = [Edge("Cat", "dog"), Edge("ice", "snow", 1.0, "antonym")]
    requested = [as_pair("dog", "cat"), as_pair("ice", "Snow"), as_pair("ice", "fire")]
    assert find_pairs(edges, requested) == {("cat", "dog"), ("ice", "snow")}


def test_evaluated_pairs_are_taken_out_of_a_lexicon_in_any_case(tmp_path: Path) -> None:
    own = WordVectors(Vocabulary(["Paris", "paris", "london"], lowercase=False), np.eye(3))
    (tmp_path / "lexicon.txt").write_text("Paris london\n")
    (tmp_path / "judged.tsv").write_text("LONDON\tparis\t9\n")
    step = Retrofit((str(tmp_path / "lexicon.txt"),), without=(str(tmp_path / "judged.tsv"),))
    with pytest.warns(StillvecWarning, match="No edge"):
        assert (step(own).matrix == own.matrix).all()
    assert (Retrofit((str(tmp_path / "lexicon.txt"),))(own).matrix != own.matrix).any()


def test_scores_without_the_pairs_of_a_lexicon_are_those_of_a_file_without_them(tmp_path: Path) -> None:
    own = vectors()
    folder = data_of(tmp_path / "data", own, ("one",))
    rows = [line.split("\t") for line in (folder / "similarity/one.tsv").read_text().splitlines()]
    lexicon = tmp_path / "lexicon.txt"
    lexicon.write_text("".join(f"{b.upper()} {a}\n" for a, b, _ in rows[:40] if a != b))
    held = {frozenset(row[:2]) for row in rows[:40] if row[0] != row[1]}
    rest = [row for row in rows if frozenset(row[:2]) not in held]
    (tmp_path / "rest" / "similarity").mkdir(parents=True)
    (tmp_path / "rest/similarity/one.tsv").write_text("\n".join("\t".join(row) for row in rest))
    report = evaluate({"a": own, "b": vectors(5)}, folder, lexicons=[lexicon], resamples=50)
    wanted = evaluate({"a": own, "b": vectors(5)}, tmp_path / "rest", resamples=50)
    ours = {s.vectors: s for s in report.scores if s.words == "unleaked"}
    for score in (s for s in wanted.scores if s.words == "own"):
        mine = ours[score.vectors]
        assert (mine.value, mine.n_covered) == (pytest.approx(score.value), len(rest))
        assert (mine.n_items, mine.n_leaked) == (len(rows), len(rows) - len(rest))
        assert mine.to_json()["n_leaked"] == mine.n_leaked
    assert {each.words for each in report.comparisons} == {"common", "unleaked"}
    without = next(each for each in report.comparisons if each.words == "unleaked")
    assert without.difference == pytest.approx(wanted.comparisons[0].difference)
    assert all("n_leaked" not in score.to_json() for score in wanted.scores)


def test_a_missing_lexicon_is_reported_before_the_work(tmp_path: Path) -> None:
    folder = data_of(tmp_path / "data", vectors(), ("one",))
    with pytest.raises((LexiconError, UsageError), match=r"nowhere\.txt"):
        evaluate(vectors(), folder, lexicons=[tmp_path / "nowhere.txt"])


def test_policies_that_change_the_order_are_reported(tmp_path: Path) -> None:
    good, bad = vectors(), vectors(5)
    folder = data_of(tmp_path / "data", good, ("one",))
    sets = {"few": good.subset(good.words[:15]), "all": WordVectors(good.vocabulary, good.matrix + bad.matrix)}
    (ranking,) = evaluate(sets, folder, compare_oov=True, resamples=10).policies
    for policy in ("skip", "mean", "zero"):
        scores = evaluate(sets, folder, oov=policy, resamples=0).scores
        wanted = {s.vectors: s.value for s in scores if s.words == "own"}
        assert ranking.values[policy] == pytest.approx(wanted)
    assert ranking.orders["skip"] == ("few", "all")
    assert ranking.orders["zero"] == ("all", "few")
    assert ranking.changes
    assert evaluate(sets, folder, resamples=10).policies == ()


def test_an_order_puts_what_has_no_value_last_and_keeps_equals() -> None:
    ranking = PolicyRanking("t", "d", "m", {"skip": {"a": math.nan, "b": 0.5, "c": 0.5, "d": 0.7}})
    assert ranking.orders["skip"] == ("d", "b", "c", "a")
    assert not ranking.changes


def test_sets_that_are_alike_share_their_neighbours(tmp_path: Path) -> None:
    folder = data_of(tmp_path / "data", vectors(), ("one",))
    sets = {"a": vectors(), "b": WordVectors(vectors().vocabulary, 2 * vectors().matrix), "c": vectors(5)}
    report = evaluate(sets, folder, overlap=True, resamples=10)
    shares = {(each.a, each.b): each.share for each in report.overlaps}
    assert shares["a", "b"] == 1
    assert shares["a", "c"] == shares["b", "c"] < 0.5
    assert {each.n_words for each in report.overlaps} == {60}


def test_a_report_comes_back_from_its_text_and_has_all_in_its_json(tmp_path: Path) -> None:
    folder = data_of(tmp_path / "data", vectors())
    report = evaluate({"a": vectors(), "b": vectors(5)}, folder, compare_oov=True, overlap=True, resamples=20)
    assert Report.loads(report.dumps()) == report
    first, second = report.to_json()
    assert isinstance(first, dict)
    assert set(first) == {"vectors", "scores", "comparisons", "overall", "overlaps", "policies", "means"}
    assert set(second) == {"vectors", "scores", "means"}  # type: ignore[arg-type]
    assert {"task", "dataset", "metric", "a", "b", "difference", "p", "p_corrected"} <= set(first["comparisons"][0])
    undefined = Report((Score("a", "t", "d", "m", math.nan, math.nan, math.nan, 3, 0, "skip"),))
    assert math.isnan(Report.loads(undefined.dumps()).scores[0].value)


def test_the_error_of_a_difference_is_that_of_the_bootstrap_times_the_factor_it_lacks() -> None:
    drawn = np.random.default_rng(0).normal(0.2, 0.05, 400)
    samples = {
        "a": BootstrapSample(0.5, drawn + 0.3, np.zeros(0)),
        "b": BootstrapSample(0.3, np.full(400, 0.3), np.zeros(0)),
    }
    for n in (2, 3, 5):
        (found,) = compare(("t", "d", "m"), samples, n, 9.0)
        error = drawn.std(ddof=1) * math.sqrt(n / (n - 1))
        assert found.high - found.difference == pytest.approx(stats.t.ppf(0.975, n - 1) * error)
        assert found.p == pytest.approx(2 * stats.t.sf(0.2 / error, n - 1))


@pytest.mark.parametrize("limit", [1.0, 2.0])
def test_no_bound_of_a_difference_is_beyond_what_is_possible(limit: float) -> None:
    drawn = np.random.default_rng(0).normal(0, 0.7, 200)
    samples = {"a": BootstrapSample(0.9, drawn, np.zeros(0)), "b": BootstrapSample(0.1, -drawn, np.zeros(0))}
    (found,) = compare(("t", "d", "m"), samples, 3, limit)
    assert (found.low, found.high) == (-limit, limit)
    assert found.difference == pytest.approx(0.8)


def test_the_interval_of_a_mean_of_independent_parts_is_that_of_sampling() -> None:
    found = average_independent([Estimate(0.5, 0.4, 0.7), Estimate(0.3, 0.1, 0.4), Estimate(0.1, 0.1, 0.1)])
    assert found.value == pytest.approx(0.3)
    assert found.low == pytest.approx(0.3 - math.sqrt(0.1**2 + 0.2**2) / 3)
    assert found.high == pytest.approx(0.3 + math.sqrt(0.2**2 + 0.1**2) / 3)
    generator = np.random.default_rng(0)
    parts = [Estimate(value, value - 1.96 * sd, value + 1.96 * sd) for value, sd in ((0.4, 0.05), (0.6, 0.02))]
    means = np.mean([generator.normal(part.value, (part.high - part.low) / 3.92, 200_000) for part in parts], axis=0)
    assert average_independent(parts)[1:] == pytest.approx([*np.percentile(means, [2.5, 97.5])], abs=1e-3)
