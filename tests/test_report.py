"""The page of an evaluation: whole, without anything from outside, with the numbers that were measured."""

from __future__ import annotations

import html
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from stillvec import Vocabulary, WordVectors
from stillvec.errors import CallError
from stillvec.evaluate import Comparison, Report, Score, evaluate
from stillvec.evaluate.report import Overlap, PolicyRanking
from stillvec.report import ENDINGS, write_report
from stillvec.report.coverage import policies
from stillvec.report.disagreement import disagreements
from stillvec.report.frequency import by_frequency
from stillvec.report.material import Material, pairs_of
from stillvec.report.page import SECTIONS
from stillvec.report.planes import PAIRS, alikeness
from stillvec.report.sizes import size_curves, words_read
from stillvec.report.standing import basis, ranking
from stillvec.report.verdict import leads, verdict

EVIL = "<script>alert(1)</script>"
EVIL_NAME = '"><img/src=x/onerror=alert(2)>&amp;'
VOID = {"meta", "br", "wbr"}


class Reader(HTMLParser):
    """Reads a page strictly: every tag is closed in its order."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def words(n: int) -> list[str]:
    return [*[word for pair in PAIRS for word in pair], EVIL, "naïve", *(f"word{chr(97 + i)}" for i in range(26))][:n]


def sets(names: list[str], n: int = 68, counts: bool = True) -> dict[str, WordVectors]:
    """Sets that agree with one hidden space, each with more noise than the one before; each knows fewer words."""
    hidden = np.random.default_rng(0).standard_normal((68, 6))
    found = {}
    for at, name in enumerate(names):
        rows = hidden + 0.6 * at * np.random.default_rng(at + 1).standard_normal(hidden.shape)
        known = n - 2 * at
        vocabulary = Vocabulary(words(known), [1000 - 10 * i for i in range(known)] if counts else None)
        found[name] = WordVectors(vocabulary, rows[:known])
    return found


def data(folder: Path, pairs: int = 150, name: str = "pairs") -> Path:
    """Similarity data that the first set of `sets` is right about, but for noise."""
    generator = np.random.default_rng(7)
    best, known = sets(["best"])["best"], words(68)
    lines = [f"{EVIL}\tnaïve\t0.5"]
    for _ in range(pairs):
        a, b = (known[i] for i in generator.choice(68, 2, replace=False))
        lines.append(f"{a}\t{b}\t{best.similarity(a, b) + 0.3 * generator.standard_normal():.4f}")
    (folder / "similarity").mkdir(exist_ok=True)
    (folder / "similarity" / f"{name}.tsv").write_text("\n".join(lines), "utf-8")
    return folder


def page_of(folder: Path, names: list[str], **options: object) -> str:
    given = sets(names)
    report = evaluate(given, data(folder), resamples=100)
    write_report(report, given, folder / "r.html", data=folder, **options)  # type: ignore[arg-type]
    return (folder / "r.html").read_text("utf-8")


def score(name: str, value: float, dataset: str = "d", task: str = "similarity", covered: int = 10) -> Score:
    return Score(name, task, dataset, "spearman", value, value - 0.1, value + 0.1, 10, covered, "skip")


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
    assert anchors == {name.lower().replace(" ", "-") for name in SECTIONS}
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
        write_report(report, given, tmp_path / f"{name}{ending}", data=tmp_path)
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
    (found,) = ranking(Report(tuple(scores)))
    assert found.value == pytest.approx((0.6 + 0.2) / 2)
    assert found.high - found.value == pytest.approx(0.1 * math.sqrt(0.25**2 + 0.25**2 + 0.5**2))
    assert ranking(Report(tuple(scores)), "similarity")[0].value == pytest.approx(0.6)


def test_a_dataset_without_a_value_for_one_set_is_in_no_mean() -> None:
    scores = (score("a", 0.5), score("b", 0.4), score("a", 0.9, "e"), score("b", math.nan, "e"))
    assert [(each.name, each.value) for each in ranking(Report(scores))] == [("a", 0.5), ("b", 0.4)]


def test_what_was_asked_in_one_task_only_is_ranked_there_and_not_over_all() -> None:
    scores = (score("a", 0.5), score("a", 0.6, "s", "sentences"), score("teacher", 0.8, "s", "sentences"))
    assert [each.name for each in ranking(Report(scores), "sentences")] == ["teacher", "a"]
    whole = ranking(Report(scores))
    assert [each.name for each in whole] == ["a", "teacher"]
    assert whole[0].value == pytest.approx(0.55)
    assert math.isnan(whole[1].value)


def test_bias_is_told_and_ranks_nobody(tmp_path: Path) -> None:
    scores = (score("a", 0.5), score("b", 0.4), score("a", 0.1, "weat", "bias"), score("b", 0.9, "weat", "bias"))
    assert [each.name for each in ranking(Report(scores))] == ["a", "b"]
    write_report(Report(scores), {}, tmp_path / "r.html")
    texts = Reader((tmp_path / "r.html").read_text("utf-8")).texts
    assert "weat" in texts
    assert "0.90" in texts


def test_sets_that_know_different_items_are_ranked_on_common_ones() -> None:
    own = [score("a", 0.5, covered=10), score("b", 0.6, covered=5)]
    common = [Score(*[*each.__dict__.values()][:10], words="common") for each in (score("a", 0.7), score("b", 0.6))]
    report = Report((*own, *common))
    assert basis(report) == "common"
    assert ranking(report)[0].name == "a"
    assert basis(Report(tuple(own))) == "own"


def compared(a: str, b: str, difference: float, p: float) -> Comparison:
    bounds = (difference - 0.1, difference + 0.1)
    return Comparison("similarity", "mean of 2", "spearman", a, b, difference, *bounds, p, p, 10)


def test_the_first_sentence_says_what_is_best_and_whether_it_is_real() -> None:
    scores = (score("a", 0.5), score("b", 0.4), score("c", 0.3))

    def told(*overall: Comparison) -> str:
        return re.sub("<[^>]*>", "", verdict(Material(Report(scores, overall=overall), {})))

    assert told(compared("a", "b", 0.1, 0.01), compared("c", "a", -0.2, 0.01)).startswith("a is best over 1 dataset")
    assert "is real" in told(compared("a", "b", 0.1, 0.01), compared("c", "a", -0.2, 0.01))
    assert "its distance to b may be chance" in told(compared("b", "a", -0.1, 0.2), compared("a", "c", 0.2, 0.01))
    both = told(compared("a", "b", -0.1, 0.01), compared("a", "c", 0.2, 0.01))
    assert "it is really ahead of 1 of the 2 others, it is really behind b, by" in both
    assert "was not tested" in told()
    assert "inside the intervals" not in told()
    scores = tuple(score(name, value, "d", task) for name, value in (("a", 0.5), ("b", 0.4)) for task in ("x", "y"))
    assert "with a mean of 50.0; its 10.0 points over b are inside the intervals; whether" in told()
    scores = tuple(score(name, value, "d", task) for name, value in (("a", 0.5), ("b", 0.2)) for task in ("x", "y"))
    assert "inside the intervals" not in told()
    assert "none can be called" in re.sub("<[^>]*>", "", verdict(Material(Report((score("a", math.nan),)), {})))


def test_a_comparison_is_turned_to_the_side_of_the_set_that_is_asked_about() -> None:
    (found,) = leads((compared("b", "a", -0.25, 0.01), compared("b", "c", 0.3, 0.01)), "a")
    assert (found.a, found.b, found.difference) == ("a", "b", 0.25)
    assert (found.low, found.high) == (pytest.approx(0.15), pytest.approx(0.35))


def material_of(folder: Path, names: list[str], **options: bool) -> Material:
    given = sets(names, **options)  # type: ignore[arg-type]
    report = evaluate(given, data(folder), resamples=20)
    return Material(report, given, {}, pairs_of(report, given, folder))


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
    (pairs,) = material.pairs
    known = [row for row in range(len(pairs.items)) if pairs.covered["a"][row] and pairs.covered["b"][row]]
    places = [stats.rankdata(pairs.cosines[name][known]) for name in ("a", "b")]
    widest = int(np.argmax(np.abs(places[0] - places[1])))
    found = disagreements(material.pairs, "a", "b")
    assert (found[0].left, found[0].right) == pairs.items.texts[known[widest]]
    assert found[0].first == pytest.approx(100 * (places[0][widest] - 1) / (len(known) - 1))
    assert len({frozenset((each.left, each.right)) for each in found}) == len(found)


def test_policies_that_nobody_asked_for_are_those_of_evaluate(tmp_path: Path) -> None:
    material = material_of(tmp_path, ["a", "b"])
    (found,) = policies(material)
    for policy in ("skip", "mean", "zero"):
        report = evaluate(material.sets, tmp_path, unknown=policy, resamples=0, common=False)
        assert found.values[policy] == pytest.approx({each.vectors: each.value for each in report.scores})


def test_neighbours_and_what_sets_share_of_them_are_told(tmp_path: Path) -> None:
    given = sets(["a", "b"])
    report = evaluate(given, data(tmp_path), resamples=0)
    shared = Report(report.scores, overlaps=(Overlap("a", "b", 0.37, 10, 60),))
    write_report(shared, given, tmp_path / "r.html", data=tmp_path, words=["king", "nobody knows"])
    page = (tmp_path / "r.html").read_text("utf-8")
    part = page[page.index('id="neighbours"') : page.index('id="pairs-in-a-plane"')]
    shown = re.findall(r"<li[^>]*><bdi>([^<]*)</bdi>", part)
    assert [*map(html.unescape, shown[:8])] == [word for word, _ in given["a"].nearest("king", 8)]
    assert "37%" in part
    assert "nobody knows" in part


def test_pairs_that_differ_by_one_direction_are_wholly_alike() -> None:
    base = np.random.default_rng(0).standard_normal((5, 4))
    points = np.empty((10, 4))
    points[::2], points[1::2] = base, base + np.eye(4)[0]
    assert alikeness(points) == pytest.approx(1)
    points[1::2] = base + np.random.default_rng(1).standard_normal((5, 4))
    moves = points[1::2] - points[::2]
    cosines = [
        x @ y / np.linalg.norm(x) / np.linalg.norm(y)
        for i, x in enumerate(moves)
        for j, y in enumerate(moves)
        if i != j
    ]
    assert alikeness(points) == pytest.approx(np.mean(cosines))


def test_a_curve_joins_sets_of_one_method_made_from_several_sizes() -> None:
    scores = tuple(score(name, value) for name, value in (("s", 0.1), ("m", 0.2), ("l", 0.3), ("other", 0.4)))
    manifests = {
        "l": {"method": "x", "read": {"words": 900}},
        "s": {"method": "x", "corpus": {"words": 100}, "read": {"words": 5}},
        "m": {"method": "x", "corpus": {"words": 300}},
        "other": {"method": "y", "corpus": {"words": 300}},
    }
    curves = size_curves(Material(Report(scores), {}, manifests))
    assert {name: [(size, each.name) for size, each in curve] for name, curve in curves.items()} == {
        "x": [(100, "s"), (300, "m"), (900, "l")]
    }
    assert words_read({"corpus": "a.txt"}) is None


@pytest.mark.parametrize(
    "case",
    ["one set", "no counts", "nothing known", "no vectors", "no data", "nan", "no similarity", "errors", "one word"],
)
def test_a_page_is_written_where_parts_are_missing(case: str, tmp_path: Path) -> None:
    given = sets(["a"] if case == "one set" else ["a", "b"], counts=case != "no counts")
    if case in ("nothing known", "one word"):
        given = {name: WordVectors(["elsewhere"], [[1.0, 2.0]]) for name in ("a", "b")}
    report = evaluate(given, data(tmp_path), resamples=10)
    place: Path | None = tmp_path
    if case == "no vectors":
        given = {}
    if case == "no data":
        place = tmp_path / "gone"
    if case == "nan":
        report = Report((score("a", math.nan, covered=0), score("b", math.nan, covered=0)))
    if case == "no similarity":
        report = Report((score("a", 0.3, task="analogy"), score("b", 0.2, task="analogy")))
    if case == "errors":
        report = Report(report.scores, ("a file was <bad>",), left_out=("tagging",))
    for ending in ENDINGS:
        write_report(report, given, tmp_path / f"r{ending}", data=place)
    read = Reader((tmp_path / "r.html").read_text("utf-8"))
    anchors = {attributes["id"] for tag, attributes in read.tags if tag == "section"}
    assert {"coverage", "what-the-numbers-mean"} <= anchors
    missing = {
        "one set": {"where-they-disagree", "which-differences-are-real"},
        "no counts": {"rare-and-frequent-words"},
        "nothing known": {"ranking", "rare-and-frequent-words", "where-they-disagree", "pairs-in-a-plane"},
        "no vectors": {"neighbours", "pairs-in-a-plane", "where-they-disagree"},
        "no data": {"where-they-disagree", "rare-and-frequent-words"},
        "nan": {"ranking"},
        "no similarity": {"where-they-disagree", "rare-and-frequent-words"},
    }
    assert not missing.get(case, set()) & anchors
    assert ("a file was <bad>" in read.texts) == (case == "errors")


def test_a_name_that_tells_no_form_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(CallError, match=r"\.html, \.md, \.csv, \.json, \.tex.*r\.pdf"):
        write_report(Report((score("a", 0.5),)), {}, tmp_path / "r.pdf")
    (tmp_path / "f.html").mkdir()
    with pytest.raises(CallError, match="is a folder"):
        write_report(Report((score("a", 0.5),)), {}, tmp_path / "f.html")
    assert [path.name for path in tmp_path.iterdir()] == ["f.html"]


def section(folder: Path, report: Report, name: str, given: dict[str, WordVectors] | None = None) -> str:
    """One section of a page, as it is written."""
    write_report(report, given or {}, folder / "section.html", data=folder)
    page = (folder / "section.html").read_text("utf-8")
    return page[(start := page.index(f'<section id="{name}">')) : page.index("</section>", start)]


def test_the_heat_map_shows_every_score_the_best_in_bold_and_how_far_it_is_from_the_mean(tmp_path: Path) -> None:
    told = section(tmp_path, Report((score("a", 0.5), score("b", 0.4), score("a", 0.2, "e"))), "every-score")
    assert re.findall(r"<td[^>]*>(.*?)</td>", told) == ["<b>50.0</b>", "40.0", "<b>20.0</b>", "–"]
    assert "a: 50.00, 95% 40.0 to 60.0; 10 of 10 items known" in told
    assert "b: not evaluated" in told
    assert re.findall(r"--heat:([\d.]+)", told)[:2] == ["0.33", "0.33"]  # 5 points of 15 to each side of the mean
    assert told.count('class="num up"') == 2
    assert told.count('class="num down"') == 1


def test_coverage_is_the_share_of_items_known(tmp_path: Path) -> None:
    differ = Report((score("a", 0.5, covered=5), score("b", 0.4, covered=8)))
    assert re.findall(r">(\d+%)</td>", section(tmp_path, differ, "coverage")) == ["50%", "80%"]
    alike = Report((score("a", 0.5, covered=5), score("b", 0.4, covered=5)))
    assert re.findall(r">(\d+%)</td>", section(tmp_path, alike, "coverage")) == ["50%"]
    assert "all sets" in section(tmp_path, alike, "coverage")


def test_differences_are_told_from_the_side_of_the_better_with_what_is_real(tmp_path: Path) -> None:
    scores = (score("a", 0.5), score("b", 0.4), score("c", 0.3))
    overall = (compared("b", "a", -0.1, 0.2), compared("c", "a", -0.2, 0.01), compared("b", "c", 0.1, 0.0001))
    single = (compared("a", "b", 0.1, 0.01), compared("a", "b", 0.1, 0.5), compared("b", "c", -0.1, 0.01))
    told = section(tmp_path, Report(scores, comparisons=single, overall=overall), "which-differences-are-real")
    text = re.sub(r"\s+", " ", re.sub("<title>[^<]*</title>|<[^>]*>", " ", told))
    assert "a − b +10.0 0.0 to 20.0 0.200 may be chance" in text
    assert "a − c +20.0 10.0 to 30.0 0.010 yes" in text
    assert "b − c +10.0 0.0 to 20.0 &lt; 0.001 yes" in text
    assert re.findall(r"\d of \d", text) == ["1 of 2", "0 of 2", "0 of 1", "1 of 1"]
    assert "lexicon" not in text
    leaked = replace(overall[1], words="unleaked", difference=-0.04)
    told = section(tmp_path, Report(scores, overall=(*overall, leaked)), "which-differences-are-real")
    text = re.sub(r"\s+", " ", re.sub("<title>[^<]*</title>|<[^>]*>", " ", told))
    assert text.index("does not hold") < text.index("a − c +4.0")


def test_a_neighbour_that_another_set_has_too_is_pale(tmp_path: Path) -> None:
    given = {
        "a": WordVectors(["here", "both", "mine"], [[1, 0], [1, 0.1], [0.9, 0.2]]),
        "b": WordVectors(["here", "both", "yours"], [[1, 0], [1, 0.1], [0.9, 0.2]]),
    }
    told = section(tmp_path, Report((score("a", 0.5), score("b", 0.4))), "neighbours", given)
    found = re.findall(r'<li( class="pale")?><bdi>(\w+)', told)
    assert {word: bool(pale) for pale, word in found} == {"here": True, "both": True, "mine": False, "yours": False}


def test_thirds_are_by_the_counts_of_the_largest_corpus_and_their_means_have_intervals(tmp_path: Path) -> None:
    data(tmp_path, 150, "more")
    material = material_of(tmp_path, ["a", "b"])
    assert len(material.pairs) == 2
    third = by_frequency(material)[0].values["a"]
    one = by_frequency(Material(material.report, material.sets, {}, material.pairs[:1]))[0].values["a"]
    assert third.value == pytest.approx(one.value)  # the same pairs twice
    assert third.high - third.value == pytest.approx((one.high - one.value) / math.sqrt(2))
    assert third.value - third.low == pytest.approx((one.value - one.low) / math.sqrt(2))
    b = material.sets["b"]
    large = WordVectors(Vocabulary(b.words, [10**6 + i for i in range(len(b))]), b.matrix)
    turned = by_frequency(Material(material.report, {"a": material.sets["a"], "b": large}, {}, material.pairs))
    assert turned[0].median >= 10**6


def test_places_that_hang_on_unknown_words_are_marked(tmp_path: Path) -> None:
    values = {"skip": {"a": 0.5, "b": 0.4}, "mean": {"a": 0.3, "b": 0.4}, "zero": {"a": 0.5, "b": math.nan}}
    kept = {"skip": {"a": 0.5, "b": 0.4}, "mean": {"a": 0.5, "b": 0.4}, "zero": {"a": 0.5, "b": 0.4}}
    rankings = (PolicyRanking("similarity", "d", "m", values), PolicyRanking("similarity", "e", "m", kept))  # type: ignore[arg-type]
    told = section(tmp_path, Report((score("a", 0.5), score("b", 0.4)), policies=rankings), "coverage")
    assert "In 1 of 2 rankings" in told
    part = told[told.index("When unknown words count") :]
    cells = [re.sub("</?small>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", part)]
    assert cells == ["1. 50.0", "2. 40.0", "<b>2.</b> 30.0", "<b>1.</b> 40.0", "1. 50.0", " –"]
    same = section(tmp_path, Report((score("a", 0.5), score("b", 0.4)), policies=rankings[1:]), "coverage")
    assert "changes none of 1 ranking" in same


def test_a_teacher_judged_on_sentences_only_stands_on_the_page_without_a_rank(tmp_path: Path) -> None:
    given = sets(["a", "b"])
    report = evaluate(given, data(tmp_path), resamples=20)
    sentences = [score(name, value, "sts", "sentences") for name, value in (("a", 0.5), ("b", 0.6), ("teacher", 0.8))]
    common = [replace(each, words="common") for each in sentences]
    manifests = {"a": {"method": ["odd"], "teacher": "plain text", "corpus": None, "seconds": True}}
    whole = replace(report, scores=(*report.scores, *sentences, *common))
    told = section(tmp_path, whole, "ranking", given)
    overall, _, by_task = told.partition("<h3>")
    assert ">a<" in overall
    assert "teacher" not in overall
    assert by_task.index("sentences <small>") < by_task.index("teacher")
    assert "teacher" in section(tmp_path, whole, "every-score", given)
    write_report(whole, given, tmp_path / "r.html", data=tmp_path, manifests=manifests)
    assert "plain text" in (tmp_path / "r.html").read_text("utf-8")
