"""Lexicons as edges: lists, pairs, tables and WordNet's own files; a bad line is named."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest
from error_checks import raises

from stillvec.errors import LexiconError, UsageError
from stillvec.files import create_bytes
from stillvec.lexicons import LEXICONS, Edge, read_evaluation_pairs, read_lexicon

NOUN = """  1 This software and database is being provided to you, the LICENSEE
00000001 03 n 02 dog 0 domestic_dog 0 002 @ 00000002 n 0000 ~ 00000009 n 0000 | a canine; "the dog barked"
00000002 03 n 01 animal 0 000 | a living organism
00000003 03 n 02 man 0 adult_male 0 001 ! 00000004 n 0101 | grown up
00000004 03 n 02 woman 0 adult_female 0 002 ! 00000003 n 0101 @i 00000002 n 0000 | grown up
"""
VERB = """00000001 30 v 02 rise 0 ascend 1 001 ! 00000002 v 0201 02 + 01 00 + 02 00 | go up
00000002 30 v 01 descend 0 000 01 + 01 00 | go down
"""
ADJECTIVE = """00000001 00 a 02 wet(a) 0 damp(p) 0 002 ! 00000002 a 0101 & 00000003 a 0000 | with water
00000002 00 a 01 dry 0 001 ! 00000001 a 0101 | without
00000003 00 s 01 soaked 0 001 & 00000001 a 0000 | very wet
"""


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def wordnet(tmp_path: Path) -> Path:
    for name, text in (("noun", NOUN), ("verb", VERB), ("adj", ADJECTIVE)):
        _write(tmp_path / "wordnet" / f"data.{name}", text)
    return tmp_path / "wordnet"


def test_a_list_gives_an_edge_for_each_neighbour(tmp_path: Path) -> None:
    path = _write(tmp_path / "list.txt", "ice snow frost\nlonely\n# number\n")
    assert [*read_lexicon(path)] == [Edge("ice", "snow"), Edge("ice", "frost"), Edge("#", "number")]


def test_pairs_are_separated_by_spaces_or_by_a_tab(tmp_path: Path) -> None:
    path = _write(tmp_path / "pairs.txt", "hot cold\nice cream\tfrozen dessert\n")
    assert [*read_lexicon(f"pairs:{path}")] == [Edge("hot", "cold"), Edge("ice cream", "frozen dessert")]


def test_a_table_has_weights_relations_or_both(tmp_path: Path) -> None:
    path = _write(tmp_path / "table.tsv", "a\tb\t0.5\tsynonym\nb\tc\tantonym\nc\td\t2\ne f\tg\n")
    wanted = [Edge("a", "b", 0.5, "synonym"), Edge("b", "c", 1, "antonym"), Edge("c", "d", 2), Edge("e f", "g")]
    assert [*read_lexicon(path)] == wanted


def test_a_compressed_lexicon_is_read(tmp_path: Path) -> None:
    path = tmp_path / "list.txt.gz"
    path.write_bytes(gzip.compress(b"ice snow\n"))
    assert [*read_lexicon(path)] == [Edge("ice", "snow")]


def test_the_case_of_words_is_kept(tmp_path: Path) -> None:
    assert [*read_lexicon(_write(tmp_path / "list.txt", "Turkey Ankara\n"))] == [Edge("Turkey", "Ankara")]


WORDNET = [  # by hand from the lines above
    Edge("dog", "domestic dog", 1, "synonym", "noun"),
    Edge("dog", "animal", 1, "hypernym", "noun"),
    Edge("domestic dog", "animal", 1, "hypernym", "noun"),
    Edge("man", "adult male", 1, "synonym", "noun"),
    Edge("man", "woman", 1, "antonym", "noun"),
    Edge("woman", "adult female", 1, "synonym", "noun"),
    Edge("woman", "man", 1, "antonym", "noun"),
    Edge("woman", "animal", 1, "hypernym", "noun"),
    Edge("adult female", "animal", 1, "hypernym", "noun"),
    Edge("rise", "ascend", 1, "synonym", "verb"),
    Edge("ascend", "descend", 1, "antonym", "verb"),
    Edge("wet", "damp", 1, "synonym", "adj"),
    Edge("wet", "dry", 1, "antonym", "adj"),
    Edge("wet", "soaked", 1, "similar", "adj"),
    Edge("damp", "soaked", 1, "similar", "adj"),
    Edge("dry", "wet", 1, "antonym", "adj"),
    Edge("soaked", "wet", 1, "similar", "adj"),
    Edge("soaked", "damp", 1, "similar", "adj"),
]


def test_the_files_of_wordnet_give_their_relations_by_part_of_speech(wordnet: Path) -> None:
    assert [*read_lexicon(wordnet)] == [*read_lexicon(f"wordnet:{wordnet}")] == WORDNET


def test_wordnet_is_found_by_its_variable(wordnet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WNSEARCHDIR", str(wordnet))
    assert [*read_lexicon("wordnet")] == WORDNET


def test_the_real_wordnet_has_the_numbers_its_own_statistics_tell() -> None:
    """wnstats(7) counts senses; antonyms come in both directions, and every antonym has its counterpart."""
    try:
        edges = [*read_lexicon("wordnet")]
    except LexiconError as error:
        pytest.skip(str(error))
    found = Counter((edge.relation, edge.part) for edge in edges)
    assert found["antonym", "adj"] > 3_500
    antonyms = {(edge.left, edge.right) for edge in edges if edge.relation == "antonym"}
    missing = [pair for pair in antonyms if pair[::-1] not in antonyms]
    assert len(missing) < len(antonyms) / 100
    assert ("hot", "cold") in antonyms
    synonyms = {(edge.left, edge.right) for edge in edges if edge.relation == "synonym"}
    assert ("car", "auto") in synonyms
    assert ("car", "motor vehicle") in {(edge.left, edge.right) for edge in edges if edge.relation == "hypernym"}


BAD = {
    "a pair of three": ("pairs:", "a b\na b c\n", 2),
    "a pair of one": ("pairs:", "a\n", 1),
    "a weight below zero": ("tsv:", "a\tb\t1\na\tb\t-1\n", 2),
    "a weight that is no number": ("tsv:", "a\tb\tnan\n", 1),
    "a table's line of one word": ("tsv:", "a\n", 1),
    "a table's line of five fields": ("tsv:", "a\tb\t1\tx\ty\n", 1),
    "a relation before a weight": ("tsv:", "a\tb\tx\t1\n", 1),
    "an empty file": ("", "\n", None),
}


@pytest.mark.parametrize("case", BAD)
def test_a_malformed_line_is_named_with_file_and_line(case: str, tmp_path: Path) -> None:
    form, text, line = BAD[case]
    path = _write(tmp_path / "lexicon.txt", text)
    with raises(LexiconError, code="bad-line" if line else "empty", path=path, line=line):
        [*read_lexicon(f"{form}{path}")]


@pytest.mark.parametrize(
    "line",
    ["nonsense", "00000009 03 n 01 dog 0 001 ! 0000", "00000009 03 n zz dog 0 000 | x",
     "00000009 03 n 01 dog 0 001 ! 00000001 x 0101 | x", "00000009 03 n 01 dog 0 001 ! 00000001 n zz | x"],
)  # fmt: skip
def test_a_malformed_line_of_wordnet_is_named(line: str, wordnet: Path) -> None:
    with (wordnet / "data.noun").open("a") as file:
        file.write(line + "\n")
    with raises(LexiconError, code="bad-line", path=wordnet / "data.noun", line=6):
        [*read_lexicon(wordnet)]


def test_a_pointer_of_wordnet_to_nothing_is_named(wordnet: Path) -> None:
    with (wordnet / "data.noun").open("a") as file:
        file.write("00000009 03 n 01 cat 0 001 @ 00000077 n 0000 | x\n")
    with raises(LexiconError, path=wordnet / "data.noun", line=6, match="00000077"):
        [*read_lexicon(wordnet)]


def test_a_missing_lexicon_and_an_unknown_format_are_reported(tmp_path: Path) -> None:
    with raises(LexiconError, code="not-found", path=tmp_path / "nowhere.txt"):
        [*read_lexicon(tmp_path / "nowhere.txt")]
    with raises(LexiconError, code="not-found", path=tmp_path / "data.noun"):
        [*read_lexicon(tmp_path)]
    with raises(LexiconError, code="not-found", path=tmp_path / "data.noun"):
        [*read_lexicon(f"wordnet:{tmp_path}")]
    with pytest.raises(UsageError, match="did you mean 'pairs'"):
        LEXICONS["pair"]


def test_evaluated_pairs_are_the_first_two_words_of_every_line(tmp_path: Path) -> None:
    _write(tmp_path / "similarity" / "a.tsv", "old\tnew\t1.58\nice cream\tcold\t3")
    _write(tmp_path / "similarity" / "b.csv", ",left,right,score\n0,hot,cold,2\n1,wet,dry,1\n")
    _write(tmp_path / "similarity" / "c.txt", "word1 word2 score\nup down 3\n")
    _write(tmp_path / "similarity" / "README.txt", "these are pairs\n")
    _write(tmp_path / "analogy" / "a.txt", "king queen man woman\n")
    pairs = {*read_evaluation_pairs(tmp_path)}
    words = {("old", "new"), ("ice cream", "cold"), ("hot", "cold"), ("wet", "dry"), ("up", "down")}
    assert pairs == words | {("left", "right"), ("word1", "word2")}
    assert {*read_evaluation_pairs(tmp_path / "similarity" / "a.tsv")} < pairs


def test_malformed_evaluation_pairs_are_an_error(tmp_path: Path) -> None:
    with raises(LexiconError, path=tmp_path, match=r"\.tsv"):
        [*read_evaluation_pairs(tmp_path)]
    with raises(LexiconError, path=tmp_path / "a.txt", line=2, match="two words"):
        [*read_evaluation_pairs(_write(tmp_path / "a.txt", "a b 1\nalone\n"))]


def test_the_shared_lexicons_and_pairs_are_read_whole(data_folder: Path) -> None:
    neighbours = sum(len(line.split()) - 1 for line in (data_folder / "lexicons/ppdb-xl.txt").open(encoding="utf-8"))
    assert sum(1 for _ in read_lexicon(data_folder / "lexicons" / "ppdb-xl.txt")) == neighbours
    assert sum(1 for _ in read_lexicon(f"pairs:{data_folder / 'lexicons' / 'wordnet-antonyms.txt'}")) == 12_574
    assert len([*read_evaluation_pairs(data_folder / "similarity" / "simlex999.tsv")]) == 999


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_compressed_lexicons_are_read(tmp_path: Path, suffix: str) -> None:
    with create_bytes(tmp_path / f"a.tsv{suffix}") as stream:
        stream.write(b"ice\tsnow\t2\n")
    assert [*read_lexicon(tmp_path / f"a.tsv{suffix}")] == [Edge("ice", "snow", 2.0)]
