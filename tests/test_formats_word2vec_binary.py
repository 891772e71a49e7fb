"""word2vec's binary: exact, shared with gensim, and damaged files named by word."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from error_checks import raises

from stillvec import WordVectors
from stillvec.errors import FormatError, StillvecWarning
from stillvec.formats import load, save

ROW = np.array([1, 2], "<f4").tobytes()


def written(folder: Path, content: bytes) -> Path:
    path = folder / "v.bin"
    path.write_bytes(content)
    return path


def read(folder: Path, content: bytes) -> WordVectors:
    return load(written(folder, content), format="word2vec-binary")


def test_records_are_read_with_and_without_line_breaks(tmp_path: Path) -> None:
    for end in (b"\n", b""):
        vectors = load(written(tmp_path, b"2 2\nice " + ROW + end + b"fire " + ROW + end))
        assert vectors.words == ("ice", "fire")
        np.testing.assert_array_equal(vectors.matrix, [[1, 2], [1, 2]])


@pytest.mark.parametrize("cut", [1, 5, 9, 12])
def test_a_truncated_file_is_named_by_word(tmp_path: Path, cut: int) -> None:
    whole = b"2 2\nice " + ROW + b"fire " + ROW
    with pytest.raises(FormatError, match=r"v\.bin: word 2: .*2 words, got 1"):
        read(tmp_path, whole[:-cut])


def test_more_than_announced_is_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"v\.bin: word 2: .*1 words, got more"):
        read(tmp_path, b"1 2\nice " + ROW + b"fire " + ROW)


def test_a_bad_header_is_named(tmp_path: Path) -> None:
    with raises(FormatError, code="header", path=tmp_path / "v.bin", line=1):
        read(tmp_path, b"two 2\nice " + ROW)


def test_a_number_that_is_not_finite_is_named_by_word(tmp_path: Path) -> None:
    bad = np.array([1, np.nan], "<f4").tobytes()
    with pytest.raises(FormatError, match=r"v\.bin: word 2: .*'fire'"):
        read(tmp_path, b"2 2\nice " + ROW + b"fire " + bad)


def test_a_duplicate_names_both_words(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"word 2: .*'ice' .*word 1"):
        read(tmp_path, b"2 2\nice " + ROW + b"ice " + ROW)


@pytest.mark.parametrize(("word", "said"), [(b"", "empty"), (b"fi\nre", "line break")])
def test_a_word_that_cannot_be_is_named(tmp_path: Path, word: bytes, said: str) -> None:
    with pytest.raises(FormatError, match=f"word 2: .*{said}"):
        read(tmp_path, b"2 2\nice " + ROW + b"%b " % word + ROW)


def test_broken_bytes_are_replaced_with_a_warning(tmp_path: Path) -> None:
    with pytest.warns(StillvecWarning, match="UTF-8"):
        assert read(tmp_path, b"1 2\ni\xffce " + ROW).words == ("i\ufffdce",)


def test_a_vector_that_holds_spaces_and_line_breaks_is_read(tmp_path: Path) -> None:
    row = b"    \n\n\n\n"
    vectors = read(tmp_path, b"2 2\nice " + row + b"fire " + row)
    assert vectors.matrix.tobytes() == row + row


def test_gensim_reads_what_we_write_and_we_what_gensim_writes(tmp_path: Path) -> None:
    matrix = np.random.default_rng(0).normal(size=(50, 20)).astype(np.float32)
    ours = WordVectors([f"wörd{i}" for i in range(50)], matrix)
    save(ours, tmp_path / "ours", format="word2vec-binary")
    theirs = pytest.importorskip("gensim.models").KeyedVectors.load_word2vec_format(str(tmp_path / "ours"), binary=True)
    assert theirs.index_to_key == list(ours.words)
    np.testing.assert_array_equal(theirs.vectors, matrix)
    theirs.save_word2vec_format(str(tmp_path / "theirs.bin.gz"), binary=True)
    again = load(tmp_path / "theirs.bin.gz")
    assert again.words == ours.words
    np.testing.assert_array_equal(again.matrix, matrix)
