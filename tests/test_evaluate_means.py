"""Means over similarity datasets that share pairs: by simulation, by datasets given twice or taken apart; controls."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stillvec import Vocabulary, WordVectors
from stillvec.evaluation import evaluate
from stillvec.evaluation.intervals import Resampling
from stillvec.evaluation.means import SimilarityResult, average_datasets
from stillvec.evaluation.score_table import rank_sets
from stillvec.evaluation.tasks import Answers, Items, task_class

Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]


def vectors(seed: int = 0) -> WordVectors:
    return WordVectors(Vocabulary([f"w{i}" for i in range(40)]), np.random.default_rng(seed).standard_normal((40, 6)))


def data_of(folder: Path, of: WordVectors) -> Path:
    """Two datasets whose right answers are the cosines of a set of vectors and some noise."""
    generator = np.random.default_rng(7)
    (folder / "similarity").mkdir(parents=True)
    for name in ("one", "two"):
        pairs = [(f"w{a}", f"w{b}") for a, b in generator.integers(0, len(of), (100, 2))]
        rows = [f"{a}\t{b}\t{of.similarity(a, b) + 0.2 * generator.standard_normal():.4f}" for a, b in pairs]
        (folder / "similarity" / f"{name}.tsv").write_text("\n".join(rows))
    return folder


@pytest.fixture
def data_of_pairs() -> Pairs:
    """100 pairs of words, the right answers, and what someone answers."""
    generator = np.random.default_rng(3)
    gold = generator.standard_normal(100)
    return np.arange(200).reshape(100, 2), gold, gold + generator.standard_normal(100)


def make_result(name: str, pairs: np.ndarray, gold: np.ndarray, said: dict[str, np.ndarray]) -> SimilarityResult:
    everything = np.ones(len(gold), bool)
    items = Items(tuple((f"w{a}", f"w{b}") for a, b in pairs), gold)
    answers = {of: Answers(everything, {"spearman": values}) for of, values in said.items()}
    return SimilarityResult(name, items, answers, dict.fromkeys(said, everything))


def test_a_dataset_given_twice_says_no_more_than_once(data_of_pairs: Pairs) -> None:
    pairs, gold, said = data_of_pairs
    one = make_result("one", pairs, gold, {"a": said})
    turned = make_result("turned", pairs[:, ::-1], gold, {"a": said})  # a pair is one in either order
    single, double = (average_datasets(some, Resampling(300), min_datasets=1) for some in ([one], [one, turned]))
    assert single is not None
    assert double is not None
    assert double.samples["a"].resampled == pytest.approx(single.samples["a"].resampled)
    assert double.n_pairs == single.n_pairs == {"a": len(gold)}


def test_datasets_without_a_common_pair_are_independent(data_of_pairs: Pairs) -> None:
    pairs, gold, said = data_of_pairs
    halves = [make_result(str(at), pairs[at::2], gold[at::2], {"a": said[at::2]}) for at in (0, 1)]
    mean = average_datasets(halves, Resampling(2000))
    assert mean is not None
    each = [average_datasets([half], Resampling(2000, seed), min_datasets=1) for seed, half in enumerate(halves, 1)]
    spreads = [one.samples["a"].resampled.std() for one in each if one is not None]
    assert mean.samples["a"].resampled.std() == pytest.approx(np.hypot(*spreads) / 2, rel=0.1)


def test_the_interval_of_a_mean_is_that_of_its_resamples_and_narrower_than_those_of_its_datasets(
    data_of_pairs: Pairs,
) -> None:
    pairs, gold, said = data_of_pairs
    halves = [make_result(str(at), pairs[at::2], gold[at::2], {"a": said[at::2]}) for at in (0, 1)]
    scores = []
    for results in (halves, halves[:1], halves[1:]):
        mean = average_datasets(results, Resampling(2000), min_datasets=1)
        assert mean is not None
        (score,) = mean.scores("skip", "own")
        assert (score.low, score.high) == pytest.approx(np.percentile(mean.samples["a"].resampled, [2.5, 97.5]))
        scores.append(score)
    both, *single = (score.high - score.low for score in scores)
    assert both < 0.85 * min(single)  # a mean of independent datasets: by sqrt(2) if they are alike


def test_the_mean_of_a_dataset_and_its_parts_varies_as_much_as_its_resamples_say() -> None:
    """Many worlds are drawn, a dataset and its two halves in each: the spread over worlds is the truth."""
    generator = np.random.default_rng(0)
    values, deviations, apart = [], [], []
    for _ in range(150):
        gold = generator.standard_normal(60)
        said = gold + generator.standard_normal(60)
        pairs = np.arange(120).reshape(60, 2)
        parts = [
            make_result(str(rows), pairs[rows], gold[rows], {"a": said[rows]})
            for rows in (np.s_[:], np.s_[::2], np.s_[1::2])
        ]
        mean = average_datasets(parts, Resampling(80))
        assert mean is not None
        values.append(mean.samples["a"].value)
        deviations.append(mean.samples["a"].resampled.std())
        single = [average_datasets([part], Resampling(80, seed), min_datasets=1) for seed, part in enumerate(parts, 1)]
        apart.append(np.linalg.norm([one.samples["a"].resampled.std() for one in single if one is not None]) / 3)
    truth = np.std(values)
    assert np.mean(deviations) == pytest.approx(truth, rel=0.2)
    assert np.mean(apart) < 0.85 * truth  # as if they had nothing in common


def test_the_report_has_the_mean_and_ranks_by_its_interval(tmp_path: Path) -> None:
    good = vectors()
    folder = data_of(tmp_path / "data", good)
    first = sorted((folder / "similarity").iterdir())[0]
    (folder / "similarity/again.tsv").write_text(first.read_text())
    report = evaluate({"a": good, "b": vectors(5)}, folder, tasks=["similarity"], resamples=200)
    mean = next(each for each in report.means if each.vectors == "a" and each.words == "own")
    assert mean.value == pytest.approx(np.mean([each.value for each in report.by("a") if each.words == "own"]))
    assert {each.section for each in mean.details} == {each.dataset for each in report.scores}
    standing = next(each for each in rank_sets(report) if each.name == "a")
    assert (standing.low, standing.high) == (mean.low, mean.high)
    (overall,) = report.overall
    assert overall.n_items == mean.n_items < sum(each.n_items for each in mean.details)


def test_controls_are_reported_and_not_compared() -> None:
    controls = {
        "labels": ("upos-random", "upos-majority"),
        "probing": ("all-length", "all-mean-random"),
        "classification": ("known-words", "accuracy-cnn-sd"),
        "tagging": ("known-words", "f1-sd"),
        "information": ("upos-words", "upos-random"),
        "categorization": ("purity-chance",),
        "retrieval": ("ndcg@10-bm25", "ndcg@10-chance", "known-words", "document-words"),
        "clustering": ("v-measure-chance", "v-measure-sd", "known-words"),
        "bitext": ("accuracy-length", "known-words"),
        "bias": ("effect", "p"),
    }
    for task, metrics in controls.items():
        assert not any(task_class(task).ranks_by(metric) for metric in metrics), task
    assert task_class("labels").ranks_by("upos-probe")
    assert task_class("similarity").ranks_by("spearman")
