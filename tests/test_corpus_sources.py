"""Which files a corpus is, and what is said when there are none."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import sys
import threading
from pathlib import Path

import pytest
from error_checks import raises

from stillvec.corpus import Corpus
from stillvec.errors import CorpusError, UsageError


def _write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_a_folder_is_read_sorted_and_to_the_bottom_without_hidden_and_unknown_files(tmp_path: Path) -> None:
    _write(tmp_path, b_txt="two", a__c_md="one", _hidden_txt="no", x_bin="no")
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "d.txt").write_text("no")
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress(b"three"))
    assert list(Corpus(tmp_path).paragraphs()) == ["one", "two", "three"]


def test_a_glob_reaches_into_folders(tmp_path: Path) -> None:
    _write(tmp_path, a__b__c_txt="deep", d_txt="flat", e_md="other")
    assert list(Corpus(f"{tmp_path}/**/*.txt").paragraphs()) == ["deep", "flat"]


def test_a_name_with_brackets_that_exists_is_not_a_glob(tmp_path: Path) -> None:
    (tmp_path / "a[1].txt").write_text("here")
    assert list(Corpus(tmp_path / "a[1].txt").paragraphs()) == ["here"]


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    _write(tmp_path, a_txt="once")
    corpus = Corpus(tmp_path / "a.txt", f"{tmp_path}/*.txt")
    assert corpus.sources == [str(tmp_path / "a.txt")]


def test_a_file_is_read_once_under_several_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path, a_txt="once", b_txt="twice")
    (tmp_path / "link.txt").symlink_to(tmp_path / "a.txt")
    monkeypatch.chdir(tmp_path)
    names = ["a.txt", "./a.txt", tmp_path / "a.txt", f"../{tmp_path.name}/a.txt", "link.txt", "b.txt"]
    assert [*Corpus(*names).paragraphs()] == ["once", "twice"]
    assert Corpus(*names).sources == ["a.txt", "b.txt"]


@pytest.mark.parametrize(
    ("source", "code", "said"),
    [
        ("missing.txt", "not-found", "missing.txt"),
        ("nowhere/deep/missing.txt", "not-found", "exists, but nowhere"),
        ("*.nothing", "no-files", "nothing"),
        ("", "no-files", ".jsonl"),
    ],
)
def test_a_source_that_does_not_exist_is_named(source: str, code: str, said: str, tmp_path: Path) -> None:
    with raises(CorpusError, code=code, path=tmp_path / source, match=said):
        Corpus(tmp_path / source)


def test_a_corpus_of_nothing_is_a_wrong_call() -> None:
    with pytest.raises(UsageError, match="at least one"):
        Corpus()


def test_an_unknown_kind_of_paragraphs_names_the_nearest() -> None:
    with raises(UsageError, code="unknown-name", match="'lines'"):
        Corpus.from_texts(["x"], paragraphs="line")  # type: ignore[arg-type]


def test_a_file_without_permission_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path, a_txt="x")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "a.txt")

    monkeypatch.setattr("builtins.open", refuse)
    with raises(CorpusError, code="unreadable", path=tmp_path / "a.txt", match="Permission denied") as caught:
        list(Corpus(tmp_path / "a.txt").paragraphs())
    assert caught.value.__suppress_context__


def test_standard_input_is_read_twice_and_its_copy_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("Grüße.\nZwei.\n".encode())))
    with Corpus("-") as corpus:
        assert list(corpus.paragraphs()) == list(corpus.paragraphs()) == ["Grüße.", "Zwei."]
        copy = corpus._sources[0].open_path()
        assert copy.exists()
        assert corpus.sources == ["standard input"]
    assert not copy.exists()


def test_the_copy_of_standard_input_goes_with_its_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"packed"))))
    corpus = Corpus("-")
    assert list(corpus.paragraphs()) == ["packed"]
    copy = corpus._sources[0].open_path()
    del corpus
    assert not copy.exists()


def test_standard_input_may_be_json_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"body": "a"}\n{"body": "b"}\n')))
    assert list(Corpus("-", field="body").paragraphs()) == ["a", "b"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_is_copied_to_be_read_twice(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("through",))
    writer.start()
    corpus = Corpus(pipe)
    assert list(corpus.paragraphs()) == list(corpus.paragraphs()) == ["through"]
    writer.join()


def test_a_corpus_can_be_sent_to_another_process(tmp_path: Path) -> None:
    _write(tmp_path, a_txt="x\ny")
    corpus = pickle.loads(pickle.dumps(Corpus(tmp_path, field="body")))
    assert corpus.settings.field == "body"
    assert list(corpus.paragraphs()) == ["x", "y"]


def test_texts_in_memory_are_read_as_often_as_wanted() -> None:
    corpus = Corpus.from_texts(text for text in ["One. Two.", "Three\r\nfour"])
    assert list(corpus.sentences()) == list(corpus.sentences()) == ["One.", "Two.", "Three", "four"]


def test_one_string_is_not_a_list_of_texts() -> None:
    with raises(UsageError, code="unexpected-value", match="list"):
        Corpus.from_texts("text")


@pytest.mark.parametrize("content", ["", "\n \n\t\n", "\ufeff"])
def test_an_empty_corpus_is_refused(content: str, tmp_path: Path) -> None:
    _write(tmp_path, a_txt=content)
    with raises(CorpusError, code="empty", match=r"a\.txt"):
        list(Corpus(tmp_path).paragraphs())


def test_no_texts_are_an_empty_corpus() -> None:
    with raises(CorpusError, code="empty"):
        list(Corpus.from_texts([]).sentences())
