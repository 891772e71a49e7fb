"""Inflections: English stems, beginnings in other languages, and neighbours with one entry per word."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from stillvec import Vocabulary, WordVectors, save
from stillvec.cli import main
from stillvec.exploration.page_export import _number_stems
from stillvec.report.web_page import read_asset
from stillvec.vocabulary.english_stems import stem_english
from stillvec.vocabulary.function_words import _read_lists, find_language
from stillvec.vocabulary.inflections import Inflections, NeighbourGroup, begin_alike, stem_term

ENGLISH = sorted(_read_lists()["en"])
SAME = (
    *("culture cultures cultural", "call calls called calling", "mouse mice", "go goes went gone", "quick quickly"),
    *("relate relates related relational", "dog dog's dogs", "city cities", "dying died dies die", "hope hoping hoped"),
    *("ice-cream ice-creams", "new york city|new york cities", "generate generates generation", "Men man"),
)
DIFFERENT = (
    *("new news", "universe university", "general generate", "police policy", "even evening", "call callback"),
    *("ice-cream cream", "1990 1991", "past paste", "river rival"),
)
STEMS = {  # as the snowballstemmer package gives them
    "consistency": "consist",
    "knightly": "knight",
    "relational": "relat",
    "hopefulness": "hope",
    "abilities": "abil",
    "generously": "generous",
    "communism": "communism",
    "skies": "sky",
    "agreed": "agre",
    "bled": "bled",
    "controlling": "control",
    "ties": "tie",
    "cries": "cri",
    "gas": "gas",
    "kiwis": "kiwi",
    "sensational": "sensat",
    "youth": "youth",
    "boyish": "boyish",
    "flying": "fli",
    "hopping": "hop",
    "falling": "fall",
    "tanned": "tan",
    "filing": "file",
    "allowance": "allow",
    "decisiveness": "decis",
    "probate": "probat",
    "rolling": "roll",
    "electricity": "electr",
    "apologist": "apolog",
    "organization": "organiz",
    "adding": "add",
    "egged": "egg",
}


@pytest.mark.parametrize("group", SAME)
def test_forms_of_an_english_word_have_one_stem(group: str) -> None:
    words = group.split("|") if "|" in group else group.split()
    assert len({stem_term(word) for word in words}) == 1


@pytest.mark.parametrize("group", DIFFERENT)
def test_other_words_have_other_stems(group: str) -> None:
    assert len({stem_term(word) for word in group.split()}) == 2


def test_stems_are_those_of_the_published_algorithm() -> None:
    assert {word: stem_english(word) for word in STEMS} == STEMS


def test_stems_agree_with_the_snowball_package() -> None:
    theirs = pytest.importorskip("snowballstemmer").stemmer("english")
    words = [*STEMS, *ENGLISH]
    assert [stem_english(word) for word in words] == [theirs.stemWord(word) for word in words]


@pytest.mark.parametrize(
    ("a", "b", "alike"),
    [
        *[("Haus", "Häuser", True), ("Tag", "Tage", True), ("Kind", "Kinder", True), ("книга", "книги", True)],
        *[("parlare", "parlato", True), ("Bundesrat", "Bundestag", False), ("Hand", "Hang", False)],
        *[("19900", "19901", False), ("雪国", "雪山", False), ("ice", "snow", False)],
    ],
)
def test_words_of_other_languages_are_compared_by_their_beginnings(a: str, b: str, alike: bool) -> None:
    assert begin_alike(a, b) is begin_alike(b, a) is alike


def test_the_language_is_found_by_function_words_in_any_order() -> None:
    german = sorted(_read_lists()["de"])
    assert find_language(ENGLISH) == "en"
    assert find_language([f"x{n}" for n in range(600)] + ENGLISH) == "en"
    assert find_language([f"x{n}" for n in range(600)] + german) == "de"
    assert find_language(["Haus", "Kind"]) == ""


@pytest.fixture(scope="module")
def english() -> WordVectors:
    words = [
        *ENGLISH,
        *(f"{stem}{end}" for stem in ("river", "lake", "field", "garden") for end in ("", "s", "ed", "ing")),
    ]
    rows = np.random.default_rng(5).normal(size=(len(words), 6))
    return WordVectors(Vocabulary(words, range(len(words), 0, -1)), rows)


def fold_slowly(vectors: WordVectors, query: str, k: int) -> tuple[list[tuple[str, tuple[str, ...]]], list[str]]:
    """All words by cosine, each put under the first word with its stem."""
    ranked = [word for word, _ in vectors.nearest(query, len(vectors))]
    groups: dict[str, list[str]] = {stem_term(query): [query]}
    for word in ranked:
        if stem_term(word) not in groups and len(groups) == k + 1:
            break
        groups.setdefault(stem_term(word), []).append(word)
    own = groups.pop(stem_term(query))[1:]
    return [(words[0], (*words[1:],)) for words in groups.values()], own


@pytest.mark.parametrize("k", [1, 3, 40, 1000])
def test_groups_are_those_of_a_slow_loop_alone_in_a_batch_and_as_most_similar(english: WordVectors, k: int) -> None:
    queries = ["river", "lakes", "gardening"]
    batch = english.nearest(queries, k, group=True)
    for query, together in zip(queries, batch, strict=True):
        near = english.nearest(query, k, group=True)
        assert ([(word, forms) for word, _, forms in near], [*near.forms]) == fold_slowly(english, query, k)
        assert ([(word, forms) for word, _, forms in together], together.forms) == (
            [(word, forms) for word, _, forms in near],
            near.forms,
        )
        cosines = dict(english.nearest(query, len(english)))
        assert [group.cosine for group in near] == pytest.approx([cosines[group.word] for group in near])
        assert english.most_similar(positive=[query], topn=k, group=True).forms == near.forms


def test_forms_of_every_word_of_the_query_are_folded(english: WordVectors) -> None:
    near = english.most_similar(positive=["river", "lake"], negative=["field"], topn=500, group=True)
    assert {*near.forms} == {f"{stem}{end}" for stem in ("river", "lake", "field") for end in ("s", "ed", "ing")}


def test_a_vector_has_no_forms_of_its_own(english: WordVectors) -> None:
    near = english.nearest(english["river"], 2, group=True)
    assert (near[0].word, near.forms) == ("river", ())
    assert english.nearest_batch(english[["river"]], 2, group=True)[0][0].word == "river"


def test_results_without_grouping_are_plain_pairs(english: WordVectors) -> None:
    assert type(english.nearest("river", 2)[0]) is tuple
    assert isinstance(english.nearest("river", 2, group=True)[0], NeighbourGroup)


def test_each_neighbour_is_in_one_group() -> None:
    near = [("Haus", 0.9), ("Häuser", 0.8), ("Tag", 0.7), ("Tage", 0.6), ("Berg", 0.5)]
    groups, is_complete = Inflections(["Haus"]).fold(near, 2, ["Hauses"])
    assert (groups, groups.forms, is_complete) == (
        [("Tag", 0.7, ("Tage",)), ("Berg", 0.5, ())],
        ("Haus", "Häuser"),
        False,
    )


@pytest.mark.skipif(shutil.which("node") is None, reason="There is no Node.js here.")
@pytest.mark.parametrize("words", ["Haus Häuser Tag Tage 19900 19901 Bundesrat", "river rivers lake mice mouse"])
def test_an_exported_page_groups_as_python_does(words: str) -> None:
    vocabulary = [*(ENGLISH if "river" in words else []), *words.split()]
    vectors = WordVectors(vocabulary, np.random.default_rng(1).normal(size=(len(vocabulary), 4)))
    query = vectors.words[-1]
    scores = [vectors.similarity(query, word) for word in vectors.words]
    page = {"words": vectors.words, "stems": _number_stems(vectors, [*vectors.words])}
    script = read_asset("stillvec.exploration", "source.js")
    call = f"groupForms({json.dumps(page)}, {json.dumps(scores)}, 9, {len(vectors) - 1})"
    script += f"; const near = {call}, plain = near.map(([word, , forms]) => [word, forms]);"
    script += "console.log(JSON.stringify([plain, near.forms]))"
    printed = subprocess.run(["node", "-e", script], capture_output=True, check=True, text=True).stdout
    near = vectors.nearest(query, 9, group=True)
    assert json.loads(printed) == [[[word, [*forms]] for word, _, forms in near], [*near.forms]]


def test_the_command_prints_forms_in_brackets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["river", "rivers", "lake", "lakes", "fire"]
    save(WordVectors(words, [[1, 0], [1, 0.1], [1, 0.5], [1, 0.6], [0, 1]]), tmp_path / "v")
    assert main(["nearest", str(tmp_path / "v"), "river", "--group"]) == 0
    out = capsys.readouterr().out
    assert out == "nearest to river (rivers)\n  word          cosine\n  lake (lakes)  0.8944\n  fire          0.0000\n"
    assert main(["nearest", str(tmp_path / "v"), "river", "--group", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["forms"] == {"river": ["rivers"]}
    assert [(each["word"], each["forms"]) for each in values["nearest"]["river"]] == [("lake", ["lakes"]), ("fire", [])]
