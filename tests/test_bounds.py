"""Files that would fill the memory or the disk are refused early, and the refusal says why."""

from __future__ import annotations

import errno
import gzip
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stillvec.corpus import Corpus
from stillvec.errors import InputError
from stillvec.formats import load, save
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary
from stillvec.vocabulary.word_counter import WordCounter

VECTORS = WordVectors(Vocabulary(["a", "b"], [2, 1]), np.ones((2, 4), np.float32))


def refuse(read: Callable[[], object]) -> InputError:
    with pytest.raises(InputError) as caught:
        read()
    return caught.value


def paragraphs(path: Path, **settings: Any) -> list[str]:
    return [*Corpus(path, **settings).paragraphs()]


@pytest.mark.parametrize("name", ["v.npy.gz", "v.bin.gz", "v.onnx.gz", "v.glove.gz", "v.parquet.gz", "c.txt.gz"])
def test_a_small_file_does_not_expand_to_a_huge_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("stillvec.files.compression._MAX_SMALL", 1 << 18)
    heads = {"npy": b"\x93NUMPY", "bin": b"\xba\x16\x4f\x2f", "onnx": b"\x08\x08\x12\x08stillvec", "parquet": b"PAR1"}
    head = heads.get(name.split(".")[1], b"a 1 2\n")
    path = tmp_path / name
    path.write_bytes(gzip.compress(head + bytes(4 << 20) if head in heads.values() else head * (4 << 18)))
    read = paragraphs if name.startswith("c") else load
    assert refuse(lambda: read(path)).code == "too-large"


def test_a_full_disk_for_temporary_copies_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "v.npy.gz"
    save(VECTORS, path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=0))
    error = refuse(lambda: load(path))
    assert error.code == "no-space"
    assert str(tmp_path) in str(error)
    assert "TMPDIR" in str(error)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX")
@pytest.mark.timeout(60)
def test_devices_and_pipes_of_vectors_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "v.vec")
    assert refuse(lambda: load(tmp_path / "v.vec")).code == "not-a-file"
    assert refuse(lambda: load("/dev/zero")).code == "not-a-file"
    assert refuse(lambda: Corpus("/dev/zero")).code == "not-a-file"


def test_a_sentence_of_conllu_has_an_end(tmp_path: Path) -> None:
    row = "1\ta\ta\tX\t_\t_\t0\troot\t_\t_\n"
    (tmp_path / "c.conllu").write_text(row * 80_000, "utf-8")
    error = refuse(lambda: paragraphs(tmp_path / "c.conllu"))
    assert "blank line" in str(error)
    assert error.line is not None


def test_a_page_of_a_dump_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stillvec.corpus.wikipedia._MAX_PAGE", 1 << 20)
    page = (
        "<page><title>A</title><revision><text>It is a long enough sentence for a paragraph.</text></revision></page>"
    )
    path = tmp_path / "c.xml"
    path.write_text(f"<mediawiki>{page * 5_000}</mediawiki>", "utf-8")
    assert len(paragraphs(path)) == 5_000
    path.write_text(f"<mediawiki><page>{'<x/>' * 10_000}</page></mediawiki>", "utf-8")
    assert "page" in str(refuse(lambda: paragraphs(path)))


def test_a_repeated_value_of_a_parquet_corpus_is_read_once(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    text = "a b c. " * 70_000
    parquet.write_table(arrow.table({"text": [text] * 100}), tmp_path / "c.parquet", write_batch_size=1)
    before = arrow.default_memory_pool().max_memory()
    assert next(Corpus(tmp_path / "c.parquet").paragraphs())
    assert arrow.default_memory_pool().max_memory() - before < 20 * len(text)


def test_lists_and_members_of_a_parquet_corpus_are_read_with_nulls(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [{"body": ["x y", "z"], "b": "q"}, {"body": None, "b": None}, {"body": ["x y", None], "b": "r"}]
    parquet.write_table(arrow.table({"a": rows, "text": ["s", None, "s"]}), tmp_path / "c.parquet")
    assert paragraphs(tmp_path / "c.parquet") == ["s", "s"]
    assert paragraphs(tmp_path / "c.parquet", field="a.b") == ["q", "r"]
    assert paragraphs(tmp_path / "c.parquet", field="a.body") == ["x y", "z", "x y"]


@pytest.mark.parametrize("suffix", [".glove", ".parquet"])
def test_a_word_that_is_repeated_for_ever_is_noticed_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    path = tmp_path / f"v{suffix}"
    if suffix == ".glove":
        monkeypatch.setattr("stillvec.formats.vector_table._FIRST_CHECK", 1000)
        path.write_bytes(b"a 1 2\n" * 400_000 + b"damaged")  # the end is not read
    else:
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table({"word": ["a"] * 40_000, "vector": [[1.0]] * 39_999 + [[]]}), path)
    assert "'a' again" in str(refuse(lambda: load(path)))


def test_words_that_are_not_utf8_and_repeated_end_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stillvec.formats.vector_table._FIRST_CHECK", 1000)
    (tmp_path / "v.glove").write_bytes(b"\xff\xfe 1 2\n" * 400_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert "invalid bytes" in str(refuse(lambda: load(tmp_path / "v.glove")))


@pytest.mark.parametrize("letter", ["a", "д"])
def test_words_of_more_than_a_thousand_characters_are_not_words(letter: str) -> None:
    counter = WordCounter()
    counter.add([f"{letter * 1001} {letter * 1000} short"])
    assert {*counter.counts()} == {letter * 1000, "short"}


@pytest.mark.timeout(60)  # quadratic time took ten times as long
def test_an_article_of_a_million_lines_takes_linear_time(tmp_path: Path) -> None:
    text = "\n=a" * 1_500_000
    (tmp_path / "c.xml").write_text(f"<mediawiki><page><text>{text}</text></page></mediawiki>", "utf-8")
    assert len(paragraphs(tmp_path / "c.xml")) > 0


def test_too_little_memory_is_not_blamed_on_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse_memory(*arguments: object, **more: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    save(VECTORS, tmp_path / "v.vec.gz")
    monkeypatch.setattr("gzip.GzipFile", refuse_memory)
    with pytest.raises(MemoryError):
        load(tmp_path / "v.vec.gz")
