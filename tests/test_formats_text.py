"""word2vec, fastText and GloVe text: malformed files are named by line, odd ones are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from error_checks import raises
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stillvec import WordVectors
from stillvec.errors import FormatError, StillvecWarning
from stillvec.formats import load, save
from stillvec.formats.numbers import NUMBER, parse


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "v.txt"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize("header", ["x 2", "2", "2 2 2", "2.0 2", "-2 2", "2 0", "", "²" + " 2", "9" * 5000 + " 2"])
def test_a_bad_header_is_named(tmp_path: Path, header: str) -> None:
    with raises(FormatError, code="header", path=tmp_path / "v.txt", line=1):
        load(written(tmp_path, f"{header}\nice 1 2\nfire 3 4\n"), format="word2vec")


def test_fewer_rows_than_announced_are_named(tmp_path: Path) -> None:
    with raises(FormatError, path=tmp_path / "v.txt", line=3, match="2 words .*got 1"):
        load(written(tmp_path, "2 2\nice 1 2\n"))


def test_more_rows_than_announced_are_named(tmp_path: Path) -> None:
    with raises(FormatError, path=tmp_path / "v.txt", line=3, match="1 words .*got more"):
        load(written(tmp_path, "1 2\nice 1 2\nfire 3 4\n"))


def test_a_header_that_announces_more_than_memory_costs_nothing(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"words .*got 1"):
        load(written(tmp_path, "999999999999 2\nice 1 2\n"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("fire 0.3", "2 fields"),
        ("fire", "1 fields"),
        ("", "0 fields"),
        ("fire 0.1 0.2 0.3", "got 3 numbers"),
        ("fire 0.1 x", "'x' instead"),
        ("fire x 0.1", "'x' instead"),
        ("fire 0.1  0.2", "instead"),
        ("fire 0.1 0.2.3", "'0.2.3' instead"),
        ("fire 0.1 0.2-3", "'0.2-3' instead"),
        ("fire 0.1 0x2", "'0x2' instead"),
        ("fire 0.1 1_0", "'1_0' instead"),
        ("fire 0.1 2e", "'2e' instead"),
        ("fire 0.1 ²", "'²' instead"),
        ("fire 0.1\t0.2", "2 fields"),
        ("fire nan 1", "NaN .*'fire'"),
        ("fire 1 -inf", "NaN .*'fire'"),
        ("fire 1 1e39", "NaN .*'fire'"),
        ("fire 1 1e999", "NaN .*'fire'"),
        (" 0.1 0.2", "an empty one"),
        ("ice 0.1 0.2", "'ice' again .*line {first}"),
    ],
)
@pytest.mark.parametrize("format", ["word2vec", "glove"])
def test_a_bad_line_is_named(tmp_path: Path, line: str, said: str, format: str) -> None:
    header, first = ("4 2\n", 2) if format == "word2vec" else ("", 1)
    path = written(tmp_path, f"{header}ice 1 2\nsnow 3 4\n{line}\nrain 5 6\n")
    with raises(FormatError, path=path, line=first + 2, match=said.format(first=first)):
        load(path, format=format)


def test_a_short_and_a_long_line_do_not_make_two_good_ones(tmp_path: Path) -> None:
    with raises(FormatError, path=tmp_path / "v.txt", line=2, match="2 fields"):
        load(written(tmp_path, "2 2\nice 0.1\nfire 0.1 0.2 0.3\n"))


def test_a_bad_line_far_down_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stillvec.formats.text_rows._BLOCK", 64)
    lines = [f"w{i} {i} 0.5" for i in range(100)]
    lines[77] = "w77 77"
    with raises(FormatError, path=tmp_path / "v.txt", line=79):
        load(written(tmp_path, "100 2\n" + "\n".join(lines) + "\n"))


def test_words_with_spaces_are_recognised_by_the_number_of_columns(tmp_path: Path) -> None:
    text = "new york 1 2\n. . . 3 4\nat name@domain.com 5 6\n1984 7 8\nwindows 95 9 10\nice 11 12\n"
    expected = ("new york", ". . .", "at name@domain.com", "1984", "windows 95", "ice")
    for header in ("6 2\n", ""):
        vectors = load(written(tmp_path, header + text))
        assert vectors.words == expected
        np.testing.assert_array_equal(vectors.matrix, np.arange(1, 13).reshape(6, 2))


@pytest.mark.parametrize(
    ("format", "word"), [("word2vec", "windows 3.1"), ("glove", "windows 3.1"), ("glove", "windows 95")]
)
def test_words_that_would_be_read_as_numbers_are_not_written(tmp_path: Path, format: str, word: str) -> None:
    with pytest.raises(FormatError, match=f"'{word}' ends with a number"):
        save(WordVectors([word], [[1.0, 2.0]]), tmp_path / "v", format=format)


@pytest.mark.parametrize(
    "text",
    [
        "2 2\nice 1 2 \nfire 3 4 \n",  # fastText and word2vec.c end a line with a space
        "2 2\r\nice 1 2\r\nfire 3 4\r\n",
        "2 2\nice 1 2\nfire 3 4",
        "2 2\nice 1 2\nfire 3 4\n\n\n",
        "2 2\nice +1 2.\nfire .3e+1 4E0\n",
        "ice 1 2\nfire 3 4\n",
    ],
)
def test_the_spellings_of_other_writers_are_read(tmp_path: Path, text: str) -> None:
    vectors = load(written(tmp_path, text))
    assert vectors.words == ("ice", "fire")
    np.testing.assert_array_equal(vectors.matrix, [[1, 2], [3, 4]])


def test_broken_bytes_are_replaced_with_one_warning(tmp_path: Path) -> None:
    path = written(tmp_path, b"ice 1 2\nsn\xffow 3 4\nra\xfein 5 6\n")
    with pytest.warns(StillvecWarning, match=r"v\.txt: 2 words .*UTF-8.*'sn\ufffdow' in line 2") as caught:
        vectors = load(path)
    assert len(caught) == 1
    assert vectors.words == ("ice", "sn\ufffdow", "ra\ufffdin")


def test_of_words_made_equal_by_broken_bytes_the_first_stays(tmp_path: Path) -> None:
    path = written(tmp_path, b"ice 1 2\nsn\xff 3 4\nsn\xfe 5 6\nrain 7 8\n")
    with pytest.warns(StillvecWarning) as caught:
        vectors = load(path)
    assert "1 words with invalid bytes" in str(caught[1].message)
    assert vectors.words == ("ice", "sn\ufffd", "rain")
    np.testing.assert_array_equal(vectors.matrix, [[1, 2], [3, 4], [7, 8]])


def test_a_true_duplicate_is_an_error_even_with_broken_bytes(tmp_path: Path) -> None:
    path = written(tmp_path, b"ice 1 2\nsn\xff 3 4\nice 5 6\n")
    with (
        pytest.warns(StillvecWarning),
        raises(FormatError, path=path, line=3, match="'ice'"),
    ):
        load(path)


def test_the_first_lines_vote_on_gloves_dimension(tmp_path: Path) -> None:
    with raises(FormatError, path=tmp_path / "v.txt", line=1, match="3 numbers"):
        load(written(tmp_path, "ice 1 2\nsnow 1 2 3\nrain 1 2 3\n"), format="glove")


def test_a_file_of_words_only_is_refused_as_glove(tmp_path: Path) -> None:
    with raises(FormatError, code="header", path=tmp_path / "v.txt", line=1):
        load(written(tmp_path, "ice\nsnow\n"), format="glove")


def test_gensim_reads_what_we_write(tmp_path: Path) -> None:
    matrix = np.random.default_rng(0).normal(size=(50, 20)).astype(np.float32)
    vectors = WordVectors([f"wörd{i}" for i in range(50)], matrix)
    for format in ("word2vec", "fasttext", "glove"):
        save(vectors, tmp_path / format, format=format)
        theirs = pytest.importorskip("gensim.models").KeyedVectors.load_word2vec_format(
            str(tmp_path / format), no_header=format == "glove"
        )
        assert theirs.index_to_key == list(vectors.words)
        np.testing.assert_array_equal(theirs.vectors, matrix)


def test_we_read_what_gensim_writes(tmp_path: Path) -> None:
    matrix = np.random.default_rng(0).normal(size=(50, 20)).astype(np.float32)
    theirs = pytest.importorskip("gensim.models").KeyedVectors(20)
    theirs.add_vectors([f"wörd{i}" for i in range(50)], matrix)
    for header in (True, False):
        theirs.save_word2vec_format(str(tmp_path / "v"), write_header=header)
        ours = load(tmp_path / "v")
        assert list(ours.words) == theirs.index_to_key
        np.testing.assert_array_equal(ours.matrix, matrix)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(st.text("019.eE+-", max_size=5), min_size=2, max_size=2), min_size=1, max_size=3))
@example([[".", "1"]])
@example([["1.", "-.5"]])
@example([["1e5.", "1"]])
@example([["-.", ".e5"]])
def test_the_fast_parser_takes_no_number_that_the_grammar_refuses(rows: list[list[str]]) -> None:
    text = "\n".join(" ".join(row) for row in rows).encode()
    found = parse(text, len(rows), 2)
    fields = [field.encode() for row in rows for field in row]
    if found is not None:
        assert all(NUMBER.fullmatch(field) for field in fields)
        with np.errstate(over="ignore"):
            expected = np.array([float(field) for field in fields]).astype(np.float32)
        np.testing.assert_array_equal(found.ravel(), expected)


def test_the_fast_parser_takes_plain_numbers() -> None:
    assert parse(b"1 -2.5\n3E-1 4e+2", 2, 2).tolist() == [[1, -2.5], [np.float32(0.3), 400]]
    assert parse(b"1 2\n3 4", 2, 2).dtype == np.float32
