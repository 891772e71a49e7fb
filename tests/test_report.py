"""The page of an evaluation: whole, without anything from outside, ranked as it should be."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from report_sets import EVIL, EVIL_NAME, Reader, compared, data, page_of, score, section, sets

from stillvec import WordVectors
from stillvec.errors import UsageError
from stillvec.evaluation import Comparison, Report, Score, evaluate
from stillvec.evaluation.score_table import choose_basis, rank_sets
from stillvec.report import ENDINGS, write_report
from stillvec.report.report_data import ReportData
from stillvec.report.report_page import SECTIONS
from stillvec.report.significance import leads, verdict


def test_the_page_is_well_formed_and_loads_nothing(tmp_path: Path) -> None:
    page = page_of(tmp_path, ["a", "b", "c"])
    read = Reader(page)
    assert page.startswith("<!DOCTYPE html>")
    for tag, attributes in read.tags:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "form", "audio", "video"}
        assert not {"src", "srcset", "action", "xlink:href", "onclick", "onload", "onerror"} & {*attributes}
        assert (attributes.get("href") or "#").startswith("#")
    assert not re.search(r"(https?:)?//[a-z]|url\(|@import", page)
    (policy,) = [a["content"] or "" for tag, a in read.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")


def test_every_section_that_has_something_to_tell_is_there_and_linked(tmp_path: Path) -> None:
    manifests = {name: {"method": "m", "corpus": {"words": 10**at}} for at, name in enumerate(("a", "b", "c"), 4)}
    page = page_of(tmp_path, ["a", "b", "c"], manifests=manifests)
    read = Reader(page)
    anchors = {attributes["id"] for tag, attributes in read.tags if tag == "section"}
    not_run = {"label-probes", "spans"}  # sections of tasks that were not run
    assert anchors == {name.lower().replace(" ", "-") for name in SECTIONS} - not_run
    assert {(a["href"] or "")[1:] for tag, a in read.tags if tag == "a"} == anchors


def test_a_word_and_a_name_stay_what_they_are_whatever_they_hold(tmp_path: Path) -> None:
    page = page_of(tmp_path, ["a", EVIL_NAME], words=[EVIL], title=f"{EVIL} & co", manifests={"a": {"method": EVIL}})
    read = Reader(page)
    assert [tag for tag, _ in read.tags].count("script") == 1
    assert "img" not in {tag for tag, _ in read.tags}
    assert EVIL in read.texts
    assert EVIL_NAME.rpartition("/")[2] in read.texts  # a name may break after a stroke
    assert f"{EVIL} & co" in read.texts
    write_report(Report((score("a\ud800\x00", 0.5),)), {}, tmp_path / "odd.html")
    assert "a\ufffd\ufffd" in (tmp_path / "odd.html").read_text("utf-8")


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_same_evaluation_gives_the_same_bytes(ending: str, tmp_path: Path) -> None:
    given = sets(["a", "b"])
    report = evaluate(given, data(tmp_path), resamples=20)
    for name in ("one", "two"):
        write_report(report, given, tmp_path / f"{name}{ending}")
    assert (tmp_path / f"one{ending}").read_bytes() == (tmp_path / f"two{ending}").read_bytes()


def test_tables_have_captions_and_headings_and_figures_have_labels(tmp_path: Path) -> None:
    read = Reader(page_of(tmp_path, ["a", "b", "c"]))
    counts = {tag: [name for name, _ in read.tags].count(tag) for tag in ("table", "caption", "thead")}
    assert counts["table"] == counts["caption"] == counts["thead"] > 5
    assert all(a.get("scope") in ("row", "col") for tag, a in read.tags if tag == "th")
    labelled = [
        a.get("aria-label") or a.get("aria-hidden") or a.get("overflow") for tag, a in read.tags if tag == "svg"
    ]
    assert labelled
    assert all(labelled)


def test_the_mean_is_of_tasks_and_its_interval_adds_squares() -> None:
    values = {("similarity", "x"): 0.5, ("similarity", "y"): 0.7, ("analogy", "z"): 0.2}
    scores = [score("a", value, dataset, task) for (task, dataset), value in values.items()]
    (found,) = rank_sets(Report(tuple(scores)))
    assert found.value == pytest.approx((0.6 + 0.2) / 2)
    for side in (found.high - found.value, found.value - found.low):
        assert side == pytest.approx(0.1 * math.sqrt(0.25**2 + 0.25**2 + 0.5**2))
    assert rank_sets(Report(tuple(scores)), "similarity")[0].value == pytest.approx(0.6)


def test_a_dataset_without_a_value_for_one_set_is_in_no_mean() -> None:
    scores = (score("a", 0.5), score("b", 0.4), score("a", 0.9, "e"), score("b", math.nan, "e"))
    assert [(each.name, each.value) for each in rank_sets(Report(scores))] == [("a", 0.5), ("b", 0.4)]


def test_a_set_evaluated_in_one_task_only_is_ranked_there_and_not_over_all() -> None:
    scores = (score("a", 0.5), score("a", 0.6, "s", "sentences"), score("teacher", 0.8, "s", "sentences"))
    assert [each.name for each in rank_sets(Report(scores), "sentences")] == ["teacher", "a"]
    whole = rank_sets(Report(scores))
    assert [each.name for each in whole] == ["a", "teacher"]
    assert whole[0].value == pytest.approx(0.55)
    assert math.isnan(whole[1].value)


def test_bias_is_reported_and_not_ranked(tmp_path: Path) -> None:
    scores = (score("a", 0.5), score("b", 0.4), score("a", 0.1, "weat", "bias"), score("b", 0.9, "weat", "bias"))
    assert [each.name for each in rank_sets(Report(scores))] == ["a", "b"]
    write_report(Report(scores), {}, tmp_path / "r.html")
    texts = Reader((tmp_path / "r.html").read_text("utf-8")).texts
    assert "weat" in texts
    assert "0.90" in texts


def test_sets_that_know_different_items_are_ranked_on_common_ones() -> None:
    own = [score("a", 0.5, covered=10), score("b", 0.6, covered=5)]
    common = [Score(*[*each.__dict__.values()][:10], words="common") for each in (score("a", 0.7), score("b", 0.6))]
    report = Report((*own, *common))
    assert choose_basis(report) == "common"
    assert rank_sets(report)[0].name == "a"
    assert choose_basis(Report(tuple(own))) == "own"


def test_the_first_sentence_says_what_is_best_and_whether_it_is_real() -> None:
    scores = (score("a", 0.5), score("b", 0.4), score("c", 0.3))

    def output(*overall: Comparison) -> str:
        return re.sub("<[^>]*>", "", verdict(ReportData(Report(scores, overall=overall), {})))

    assert output(compared("a", "b", 0.1, 0.01), compared("c", "a", -0.2, 0.01)).startswith("a is best over 1 dataset")
    assert "is significant" in output(compared("a", "b", 0.1, 0.01), compared("c", "a", -0.2, 0.01))
    alike = output(compared("b", "a", -0.1, 0.2), compared("a", "c", 0.2, 0.01))
    assert "the difference from b is not significant" in alike
    both = output(compared("a", "b", -0.1, 0.01), compared("a", "c", 0.2, 0.01))
    assert "significantly better than 1 of 2 others; it is significantly worse than b (" in both
    assert "was not tested" in output()
    assert "inside the intervals" not in output()
    scores = tuple(score(name, value, "d", task) for name, value in (("a", 0.5), ("b", 0.4)) for task in ("x", "y"))
    assert "with a mean of 50.0, 10.0 points ahead of b with overlapping intervals. " in output()
    scores = tuple(score(name, value, "d", task) for name, value in (("a", 0.5), ("b", 0.2)) for task in ("x", "y"))
    assert "inside the intervals" not in output()
    assert "no best set" in re.sub("<[^>]*>", "", verdict(ReportData(Report((score("a", math.nan),)), {})))


def test_a_comparison_is_turned_to_the_side_of_the_set_that_is_compared() -> None:
    (found,) = leads((compared("b", "a", -0.25, 0.01), compared("b", "c", 0.3, 0.01)), "a")
    assert (found.a, found.b, found.difference) == ("a", "b", 0.25)
    assert (found.low, found.high) == (pytest.approx(0.15), pytest.approx(0.35))


@pytest.mark.parametrize(
    "case",
    ["one set", "no counts", "nothing known", "no vectors", "no data", "nan", "no similarity", "errors", "one word"],
)
def test_a_page_is_written_where_parts_are_missing(case: str, tmp_path: Path) -> None:
    given = sets(["a"] if case == "one set" else ["a", "b"], counts=case != "no counts")
    if case in ("nothing known", "one word"):
        given = {name: WordVectors(["elsewhere"], [[1.0, 2.0]]) for name in ("a", "b")}
    report = evaluate(given, data(tmp_path), resamples=10)
    if case == "no vectors":
        given = {}
    if case == "no data":
        report = replace(report, pairs=())
    if case == "nan":
        report = Report((score("a", math.nan, covered=0), score("b", math.nan, covered=0)))
    if case == "no similarity":
        report = Report((score("a", 0.3, task="analogy"), score("b", 0.2, task="analogy")))
    if case == "errors":
        report = Report(report.scores, ("a file was <bad>",), left_out=("tagging",))
    for ending in ENDINGS:
        write_report(report, given, tmp_path / f"r{ending}")
    read = Reader((tmp_path / "r.html").read_text("utf-8"))
    anchors = {attributes["id"] for tag, attributes in read.tags if tag == "section"}
    assert {"coverage", "definitions"} <= anchors
    missing = {
        "one set": {"largest-disagreements", "significant-differences"},
        "no counts": {"rare-and-frequent-words"},
        "nothing known": {"ranking", "rare-and-frequent-words", "largest-disagreements", "gender-pairs"},
        "no vectors": {"neighbours", "gender-pairs", "rare-and-frequent-words"},
        "no data": {"largest-disagreements", "rare-and-frequent-words"},
        "nan": {"ranking"},
        "no similarity": {"largest-disagreements", "rare-and-frequent-words"},
    }
    assert not missing.get(case, set()) & anchors
    assert ("a file was <bad>" in read.texts) == (case == "errors")


def test_a_name_that_tells_no_form_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.html, \.md, \.csv, \.json, \.tex.*r\.pdf"):
        write_report(Report((score("a", 0.5),)), {}, tmp_path / "r.pdf")
    (tmp_path / "f.html").mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        write_report(Report((score("a", 0.5),)), {}, tmp_path / "f.html")
    assert [path.name for path in tmp_path.iterdir()] == ["f.html"]


def test_a_teacher_evaluated_on_sentences_only_is_on_the_page_without_a_rank(tmp_path: Path) -> None:
    given = sets(["a", "b"])
    report = evaluate(given, data(tmp_path), resamples=20)
    sentences = [score(name, value, "sts", "sentences") for name, value in (("a", 0.5), ("b", 0.6), ("teacher", 0.8))]
    common = [replace(each, words="common") for each in sentences]
    manifests = {"a": {"method": ["odd"], "teacher": "plain text", "corpus": None, "seconds": True}}
    whole = replace(report, scores=(*report.scores, *sentences, *common))
    section_text = section(tmp_path, whole, "ranking", given)
    overall, _, by_task = section_text.partition("<h3>")
    assert ">a<" in overall
    assert "teacher" not in overall
    assert by_task.index("sentences <small>") < by_task.index("teacher")
    assert "teacher" in section(tmp_path, whole, "all-scores", given)
    write_report(whole, given, tmp_path / "r.html", manifests=manifests)
    assert "plain text" in (tmp_path / "r.html").read_text("utf-8")
