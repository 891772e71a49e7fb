"""Each section of the page tells the numbers that a second way gives."""

from __future__ import annotations

import html
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from report_sets import Reader, compared, data, material_of, score, section, sets
from scipy import stats

from stillvec import Vocabulary, WordVectors
from stillvec.evaluation import Detail, Report, Score, evaluate
from stillvec.evaluation.evaluation_report import NeighbourOverlap, PolicyRanking
from stillvec.report import write_report
from stillvec.report.disagreement import disagreements
from stillvec.report.gender_pairs import mean_offset_cosine
from stillvec.report.report_data import ReportData
from stillvec.report.score_curves import FrequencyBand, score_by_frequency, size_curves, words_read
from stillvec.report.scores import details_section


def by_frequency(material: ReportData, n_datasets: int = 9) -> list[FrequencyBand]:
    return score_by_frequency(material.report.pairs[:n_datasets], material.sets, material.with_vectors)


def test_scores_by_frequency_are_those_of_scipy_on_thirds_of_the_pairs(tmp_path: Path) -> None:
    material = material_of(tmp_path, ["a", "b"])
    lines = [line.split("\t") for line in (tmp_path / "similarity" / "pairs.tsv").read_text("utf-8").splitlines()]
    both = material.sets["b"]
    known = [(a, b, float(g)) for a, b, g in lines if a in both and b in both]
    counts = dict(zip(material.sets["a"].words, material.sets["a"].vocabulary.counts.tolist(), strict=True))
    known.sort(key=lambda each: min(counts[each[0]], counts[each[1]]))
    size = -(-len(known) // 3)
    rare = known[:size]
    for name in ("a", "b"):
        cosines = [material.sets[name].similarity(a, b) for a, b, _ in rare]
        wanted = stats.spearmanr([g for *_, g in rare], cosines).statistic
        assert by_frequency(material)[0].values[name].value == pytest.approx(wanted, abs=1e-6)
    assert [third.n_pairs for third in by_frequency(material)] == [len(part) for part in np.array_split(known, 3)]


def test_disagreements_are_differences_of_places_among_the_pairs_both_know(tmp_path: Path) -> None:
    material = material_of(tmp_path, ["a", "b"])
    (pairs,) = material.report.pairs
    known = [row for row in range(len(pairs.texts)) if pairs.covered["a"][row] and pairs.covered["b"][row]]
    places = [stats.rankdata(pairs.cosines[name][known]) for name in ("a", "b")]
    widest = int(np.argmax(np.abs(places[0] - places[1])))
    found = disagreements(material.report.pairs, "a", "b")
    assert (found[0].left, found[0].right) == pairs.texts[known[widest]]
    assert found[0].first == pytest.approx(100 * (places[0][widest] - 1) / (len(known) - 1))
    assert len({frozenset((each.left, each.right)) for each in found}) == len(found)


def test_rankings_by_policy_are_those_of_an_evaluation_with_each_policy(tmp_path: Path) -> None:
    given = sets(["a", "b"])
    (found,) = evaluate(given, data(tmp_path), resamples=0, compare_oov=True).policies
    for policy in ("skip", "mean", "zero"):
        report = evaluate(given, tmp_path, oov=policy, resamples=0, common=False)  # type: ignore[arg-type]
        assert found.values[policy] == pytest.approx({each.vectors: each.value for each in report.scores})  # type: ignore[index]


def test_a_page_of_a_saved_report_shows_the_answers_without_data_or_vectors(tmp_path: Path) -> None:
    report = evaluate(sets(["a", "b"]), data(tmp_path), resamples=10, compare_oov=True)
    (tmp_path / "similarity" / "pairs.tsv").unlink()
    again = Report.loads(report.dumps())
    assert again == report
    assert [pairs.texts for pairs in again.pairs] == [pairs.texts for pairs in report.pairs]
    write_report(again, {}, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text("utf-8")
    assert 'id="largest-disagreements"' in page
    assert section(tmp_path, again, "largest-disagreements") == section(tmp_path, report, "largest-disagreements")


def test_neighbours_and_their_overlap_are_shown(tmp_path: Path) -> None:
    given = sets(["a", "b"])
    report = evaluate(given, data(tmp_path), resamples=0)
    shared = Report(report.scores, overlaps=(NeighbourOverlap("a", "b", 0.37, 10, 60),))
    write_report(shared, given, tmp_path / "r.html", words=["king", "nobody knows"])
    page = (tmp_path / "r.html").read_text("utf-8")
    part = page[page.index('id="neighbours"') : page.index('id="gender-pairs"')]
    shown = re.findall(r"<li[^>]*><bdi>([^<]*)</bdi>", part)
    assert [*map(html.unescape, shown[:8])] == [word for word, _ in given["a"].nearest("king", 8)]
    assert "37%" in part
    assert "nobody knows" in part


def test_pairs_that_differ_by_one_direction_are_wholly_alike() -> None:
    base = np.random.default_rng(0).standard_normal((5, 4))
    points = np.empty((10, 4))
    points[::2], points[1::2] = base, base + np.eye(4)[0]
    assert mean_offset_cosine(points) == pytest.approx(1)
    points[1::2] = base + np.random.default_rng(1).standard_normal((5, 4))
    moves = points[1::2] - points[::2]
    cosines = [
        x @ y / np.linalg.norm(x) / np.linalg.norm(y)
        for i, x in enumerate(moves)
        for j, y in enumerate(moves)
        if i != j
    ]
    assert mean_offset_cosine(points) == pytest.approx(np.mean(cosines))


def test_a_curve_joins_sets_of_one_method_made_from_several_sizes() -> None:
    scores = tuple(score(name, value) for name, value in (("s", 0.1), ("m", 0.2), ("l", 0.3), ("other", 0.4)))
    manifests = {
        "l": {"method": "x", "read": {"words": 900}},
        "s": {"method": "x", "corpus": {"words": 100}, "read": {"words": 5}},
        "m": {"method": "x", "corpus": {"words": 300}},
        "other": {"method": "y", "corpus": {"words": 300}},
    }
    curves = size_curves(ReportData(Report(scores), {}, manifests))
    assert {name: [(size, each.name) for size, each in curve] for name, curve in curves.items()} == {
        "x": [(100, "s"), (300, "m"), (900, "l")]
    }
    assert words_read({"corpus": "a.txt"}) is None


def test_the_heat_map_shows_every_score_the_best_in_bold_and_how_far_it_is_from_the_mean(tmp_path: Path) -> None:
    section_text = section(tmp_path, Report((score("a", 0.5), score("b", 0.4), score("a", 0.2, "e"))), "all-scores")
    assert re.findall(r"<td[^>]*>(.*?)</td>", section_text) == ["<b>50.0</b>", "40.0", "<b>20.0</b>", "–"]
    assert "a: 50.00, 95% 40.0 to 60.0; 10 of 10 items covered" in section_text
    assert "b: not evaluated" in section_text
    assert re.findall(r"--heat:([\d.]+)", section_text)[:2] == [
        "0.33",
        "0.33",
    ]  # 5 points of 15 to each side of the mean
    assert section_text.count('class="num up"') == 2
    assert section_text.count('class="num down"') == 1


def test_coverage_is_the_share_of_items_known(tmp_path: Path) -> None:
    differ = Report((score("a", 0.5, covered=5), score("b", 0.4, covered=8)))
    assert re.findall(r">(\d+%)</td>", section(tmp_path, differ, "coverage")) == ["50%", "80%"]
    alike = Report((score("a", 0.5, covered=5), score("b", 0.4, covered=5)))
    assert re.findall(r">(\d+%)</td>", section(tmp_path, alike, "coverage")) == ["50%"]
    assert "all sets" in section(tmp_path, alike, "coverage")


def test_differences_are_stated_from_the_better_set_with_their_significance(tmp_path: Path) -> None:
    scores = (score("a", 0.5), score("b", 0.4), score("c", 0.3))
    overall = (compared("b", "a", -0.1, 0.2), compared("c", "a", -0.2, 0.01), compared("b", "c", 0.1, 0.0001))
    single = (compared("a", "b", 0.1, 0.01), compared("a", "b", 0.1, 0.5), compared("b", "c", -0.1, 0.01))
    section_text = section(tmp_path, Report(scores, comparisons=single, overall=overall), "significant-differences")
    text = re.sub(r"\s+", " ", re.sub("<title>[^<]*</title>|<[^>]*>", " ", section_text))
    assert "a − b +10.0 0.0 to 20.0 0.200 no" in text
    assert "a − c +20.0 10.0 to 30.0 0.010 yes" in text
    assert "b − c +10.0 0.0 to 20.0 &lt; 0.001 yes" in text
    assert re.findall(r"\d of \d", text) == ["1 of 2", "0 of 2", "0 of 1", "1 of 1"]
    assert "lexicon" not in text
    leaked = replace(overall[1], words="unleaked", difference=-0.04)
    section_text = section(tmp_path, Report(scores, overall=(*overall, leaked)), "significant-differences")
    text = re.sub(r"\s+", " ", re.sub("<title>[^<]*</title>|<[^>]*>", " ", section_text))
    assert text.index("does not contain") < text.index("a − c +4.0")


def test_a_neighbour_that_another_set_has_too_is_pale(tmp_path: Path) -> None:
    given = {
        "a": WordVectors(["here", "both", "mine"], [[1, 0], [1, 0.1], [0.9, 0.2]]),
        "b": WordVectors(["here", "both", "yours"], [[1, 0], [1, 0.1], [0.9, 0.2]]),
    }
    section_text = section(tmp_path, Report((score("a", 0.5), score("b", 0.4))), "neighbours", given)
    found = re.findall(r'<li( class="pale")?><bdi>(\w+)', section_text)
    assert {word: bool(pale) for pale, word in found} == {"here": True, "both": True, "mine": False, "yours": False}


def test_thirds_are_by_the_counts_of_the_largest_corpus_and_their_means_have_intervals(tmp_path: Path) -> None:
    data(tmp_path, 150, "more")
    material = material_of(tmp_path, ["a", "b"])
    assert len(material.report.pairs) == 2
    third = by_frequency(material)[0].values["a"]
    one = by_frequency(material, 1)[0].values["a"]
    assert third.value == pytest.approx(one.value)  # the same pairs twice
    assert third.high - third.value == pytest.approx((one.high - one.value) / math.sqrt(2))
    assert third.value - third.low == pytest.approx((one.value - one.low) / math.sqrt(2))
    b = material.sets["b"]
    large = WordVectors(Vocabulary(b.words, [10**6 + i for i in range(len(b))]), b.matrix)
    turned = by_frequency(ReportData(material.report, {"a": material.sets["a"], "b": large}))
    assert turned[0].median >= 10**6


def test_places_that_hang_on_unknown_words_are_marked(tmp_path: Path) -> None:
    values = {"skip": {"a": 0.5, "b": 0.4}, "mean": {"a": 0.3, "b": 0.4}, "zero": {"a": 0.5, "b": math.nan}}
    kept = {"skip": {"a": 0.5, "b": 0.4}, "mean": {"a": 0.5, "b": 0.4}, "zero": {"a": 0.5, "b": 0.4}}
    rankings = (PolicyRanking("similarity", "d", "m", values), PolicyRanking("similarity", "e", "m", kept))  # type: ignore[arg-type]
    section_text = section(tmp_path, Report((score("a", 0.5), score("b", 0.4)), policies=rankings), "coverage")
    assert "In 1 of 2 rankings" in section_text
    part = section_text[section_text.index("Effect of out-of-vocabulary") :]
    cells = [re.sub("</?small>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", part)]
    assert cells == ["1. 50.0", "2. 40.0", "<b>2.</b> 30.0", "<b>1.</b> 40.0", "1. 50.0", " –"]
    same = section(tmp_path, Report((score("a", 0.5), score("b", 0.4)), policies=rankings[1:]), "coverage")
    assert "changes none of 1 ranking" in same


def test_intervals_and_sections_stand_on_the_page_folded() -> None:
    sections = (Detail("capitals", 0.25, 40, 30), Detail("plurals", 0.75, 60, 60))
    scores = tuple(
        Score(name, "analogy", "google", "accuracy", value, 0.41, 0.62, 100, 90, "skip", details=sections)
        for name, value in (("a", 0.5), ("b", 0.51))
    )
    section_text = details_section(ReportData(Report(scores), {}))
    assert section_text is not None
    reader = Reader(section_text)
    assert [tag for tag, _ in reader.tags].count("details") == 2
    for wanted in ("41.0 to 62.0", "All 2 scores with their 95% intervals", "capitals", "25.0", "75.0", "30 of 40"):
        assert wanted in reader.texts
    assert details_section(ReportData(Report(()), {})) is None
