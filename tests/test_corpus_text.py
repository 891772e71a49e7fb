"""Plain text: encodings, line breaks, paragraphs, long lines, archives and what is no text."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tracemalloc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from error_checks import raises
from hypothesis import given, settings
from hypothesis import strategies as st

from stillvec.corpus import Corpus
from stillvec.corpus.decoding import MAX_PARAGRAPH, cut, decode, split_lines
from stillvec.corpus.plain_text import is_hard_wrapped
from stillvec.corpus.reader_input import CHUNK_BYTES, OpenedFile, ReadStats
from stillvec.errors import CorpusError, StillvecWarning

WRAPPED = """It was the best of times, it was the worst of times, it was the
age of wisdom, it was the age of foolishness, it was the epoch of
belief, it was the epoch of incredulity.

There were a king with a large jaw and a queen with a plain face,
on the throne of England; there were a king with a large jaw and
a queen with a fair face, on the throne of France.
"""


@contextmanager
def peak_memory() -> Iterator[list[int]]:
    """Gives a list that holds, afterwards, the most bytes that Python had."""
    peak: list[int] = []
    tracemalloc.start()
    try:
        yield peak
        peak.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


def _read(folder: Path, content: bytes, name: str = "a.txt", **how: object) -> list[str]:
    (folder / name).write_bytes(content)
    return list(Corpus(folder / name, **how).paragraphs())  # type: ignore[arg-type]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_every_line_break_and_marked_encoding_is_read(newline: str, encoding: str, tmp_path: Path) -> None:
    content = newline.join(["Grüße", "", " 世界 ", "end"]).encode(encoding)
    assert _read(tmp_path, content) == ["Grüße", "世界", "end"]


def test_what_users_see_as_one_line_stays_one(tmp_path: Path) -> None:
    text = "a\u2028b\x0bc\x0cd\x85e\u2029f\x1cg"
    assert _read(tmp_path, f"{text}\nnext".encode()) == [text, "next"]


def test_nul_characters_become_spaces(tmp_path: Path) -> None:
    assert _read(tmp_path, b"one\x00two three four five\n") == ["one two three four five"]


def test_a_line_break_in_two_chunks_is_one() -> None:
    opened = OpenedFile(Path("x"), "x", b"", iter([b"a\r", b"\nb\r", b"c\r"]))
    assert list(split_lines(decode(opened, ReadStats()))) == ["a", "b", "c", ""]


@settings(max_examples=200, deadline=None)
@given(st.text(), st.integers(1, 5))
def test_chunks_do_not_show_in_the_text(text: str, size: int) -> None:
    data = text.encode("utf-8", "replace")
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    plain = data.decode().replace("\r\n", "\n").replace("\r", "\n").replace("\x00", " ").replace("\ufeff", "")
    assert "".join(decode(OpenedFile(Path("x"), "x", b"", iter(chunks)), ReadStats())) == plain


def test_bytes_that_are_not_utf8_are_replaced_counted_and_reported_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"fine\ncaf\xe9 na\xefve\n" + "größe\n".encode())
    corpus = Corpus(tmp_path / "a.txt")
    with pytest.warns(StillvecWarning, match=r"2 bytes .*a\.txt, line 2, byte 8") as said:
        assert list(corpus.paragraphs()) == ["fine", "caf\ufffd na\ufffdve", "größe"]
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(corpus.paragraphs())
    assert corpus.report is not None
    assert corpus.report.replaced_bytes == 2


def test_a_first_bad_byte_far_into_the_file_is_placed(tmp_path: Path) -> None:
    before = b"0123456789\n" * (CHUNK_BYTES // 5)
    with pytest.warns(StillvecWarning, match=f"line {CHUNK_BYTES // 5 + 1:,}, byte {len(before) + 1:,}"):
        _read(tmp_path, before + b"x\xff")


def test_strict_refuses_what_is_not_utf8_with_its_place(tmp_path: Path) -> None:
    with raises(CorpusError, code="encoding", path=tmp_path / "a.txt", line=2, match="byte 6"):
        _read(tmp_path, b"fine\nx\xe9\n", strict=True)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_half_a_pair_of_a_marked_encoding_is_placed(encoding: str, tmp_path: Path) -> None:
    content = "ab\n\ud800c".encode(encoding, "surrogatepass")
    with raises(CorpusError, code="encoding", line=2, match=f"byte {len('xab_'.encode(encoding + '-le'))}"):
        _read(tmp_path, content, strict=True)


def test_a_report_tells_what_was_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo")
    (tmp_path / "b.txt").write_text("three")
    corpus = Corpus(tmp_path)
    reading = corpus.paragraphs()
    next(reading)
    assert corpus.report is None
    list(reading)
    assert corpus.report is not None
    assert (corpus.report.files, corpus.report.paragraphs, corpus.report.characters) == (2, 3, 11)


def test_hard_wrapped_text_is_read_as_blocks(tmp_path: Path) -> None:
    first, second = _read(tmp_path, WRAPPED.encode())
    assert first.endswith("foolishness, it was the epoch of belief, it was the epoch of incredulity.")
    assert second.startswith("There were a king with a large jaw and a queen")


def test_wrapping_can_be_said(tmp_path: Path) -> None:
    assert len(_read(tmp_path, WRAPPED.encode(), paragraphs="lines")) == 6
    assert _read(tmp_path, b"a\nb\n\n\nc", paragraphs="blocks") == ["a b", "c"]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (
            "a paragraph a line",
            "This is a whole paragraph that says much.\nThis is the next of them.\n\nMore.\n",
        ),
        ("long lines", ("word " * 50 + "\n") * 5 + "\n" + ("word " * 50 + "\n") * 5),
        ("a list of words", "apple\nbanana\npear\n\nhouse\ngarden\nfence\n"),
        ("no blank lines", WRAPPED.replace("\n\n", "\n")),
    ],
)
def test_text_that_is_not_hard_wrapped_is_read_as_lines(kind: str, text: str) -> None:
    assert not is_hard_wrapped(text), kind


def test_a_line_of_five_megabytes_is_cut_in_bounded_memory(tmp_path: Path) -> None:
    sentence = "All of this stands on one line. "
    (tmp_path / "a.txt").write_text(sentence * (5_000_000 // len(sentence)))
    corpus = Corpus(tmp_path / "a.txt")
    next(corpus.paragraphs())
    with peak_memory() as peak:
        longest = max(map(len, corpus.paragraphs()))
    assert MAX_PARAGRAPH // 2 < longest <= MAX_PARAGRAPH
    assert peak[0] < 3_000_000
    assert set(corpus.sentences()) == {sentence.strip()}


@pytest.mark.slow
def test_a_line_of_two_hundred_megabytes_is_cut_in_bounded_memory(tmp_path: Path) -> None:
    with open(tmp_path / "a.txt", "w") as stream:
        for _ in range(200):
            stream.write("unbroken words " * 66_667)
    with peak_memory() as peak:
        lengths = [len(paragraph) for paragraph in Corpus(tmp_path / "a.txt").paragraphs()]
    assert max(lengths) <= MAX_PARAGRAPH
    assert sum(lengths) > 199_000_000
    assert peak[0] < 5_000_000


def test_a_block_that_never_ends_is_cut(tmp_path: Path) -> None:
    paragraphs = _read(tmp_path, b"a line without a stop\n" * 20_000, paragraphs="blocks")
    assert max(map(len, paragraphs)) <= MAX_PARAGRAPH
    assert " ".join(paragraphs).split() == ["a", "line", "without", "a", "stop"] * 20_000


@given(st.text(alphabet="ab .\u3000。", max_size=80), st.integers(2, 12))
def test_cutting_loses_nothing_and_keeps_the_limit(text: str, longest: int) -> None:
    pieces = cut(text, longest)
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= longest


def _zstd(data: bytes) -> bytes:
    return bytes(pytest.importorskip("zstandard").ZstdCompressor().compress(data))


PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": _zstd}


@pytest.mark.parametrize("suffix", PACKERS)
def test_compressed_text_is_unpacked_also_in_several_parts(suffix: str, tmp_path: Path) -> None:
    pack = PACKERS[suffix]
    content = pack(b"one\ntwo" * 50_000 + b"\n") + pack(b"three\n")
    paragraphs = _read(tmp_path, content, f"a.txt{suffix}")
    assert paragraphs[-2:] == ["two", "three"]
    assert len(paragraphs) == 50_002


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_compressed_file_is_known_without_its_name(suffix: str, tmp_path: Path) -> None:
    assert _read(tmp_path, PACKERS[suffix](b"text"), "noname") == ["text"]


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("left", [0.5, 0.999])
def test_a_truncated_archive_is_named(suffix: str, left: float, tmp_path: Path) -> None:
    content = PACKERS[suffix](b"".join(b"%d is a number\n" % n**3 for n in range(40_000)))
    with raises(CorpusError, code="damaged-archive", path=tmp_path / f"a.txt{suffix}") as caught:
        _read(tmp_path, content[: int(len(content) * left)], f"a.txt{suffix}")
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("suffix", PACKERS)
def test_an_archive_with_wrong_bytes_is_named(suffix: str, tmp_path: Path) -> None:
    content = bytearray(PACKERS[suffix](b"".join(b"%d is a number\n" % n**3 for n in range(4_000))))
    content[len(content) // 2 : len(content) // 2 + 40] = b"\x55" * 40
    with raises(CorpusError, code="damaged-archive", path=tmp_path / f"a.txt{suffix}"):
        _read(tmp_path, bytes(content), f"a.txt{suffix}")


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_file_that_is_only_called_an_archive_is_named(suffix: str, tmp_path: Path) -> None:
    with raises(CorpusError, code="damaged-archive", path=tmp_path / f"a.txt{suffix}"):
        _read(tmp_path, b"plain text", f"a.txt{suffix}")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"%PDF-1.7\n...", "a PDF"),
        (b"PK\x03\x04\x14\x00", "office document"),
        (b"\x89PNG\r\n\x1a\n", "PNG"),
        (b"SQLite format 3\x00", "SQLite"),
        (b"\x80\x04\x95\x10\x00", "pickled"),
        (bytes(range(256)) * 20, "binary"),
        ("UTF-16 without its mark".encode("utf-16-le"), "UTF-16 without"),
        (b"a.txt".ljust(257, b"\x00") + b"ustar\x00", "tar archive"),
    ],
)
@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_a_file_that_is_not_a_text_is_refused_with_a_cure(content: bytes, said: str, name: str, tmp_path: Path) -> None:
    with raises(CorpusError, code="not-text", path=tmp_path / name, match=said):
        _read(tmp_path, gzip.compress(content) if name.endswith("gz") else content, name)
