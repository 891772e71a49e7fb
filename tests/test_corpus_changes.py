"""A corpus that changes while a run reads it is noticed, and contexts are never cached under another text's digest."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from error_checks import raises
from tiny_corpus import sentences

import stillvec
from stillvec.corpus import Corpus, sources
from stillvec.errors import CorpusError
from stillvec.pipeline import corpus_counts

TEXT = "\n".join(sentences(60)) + "\n"
OTHER = TEXT[::-1].replace("\n", " ", 1)


def append(path: Path) -> None:
    with path.open("a") as stream:
        stream.write("another sentence here\n")


def rewrite(path: Path) -> None:
    path.write_text(OTHER[: len(TEXT)])


def replace_same_size_and_time(path: Path) -> None:
    before = path.stat()
    other = path.with_suffix(".new")
    other.write_bytes(path.read_bytes().swapcase())
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)


CHANGES: list[Callable[[Path], object]] = [
    append, lambda path: os.truncate(path, 100), lambda path: os.truncate(path, 0), rewrite, replace_same_size_and_time
]  # fmt: skip


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "texts").mkdir()
    path = tmp_path / "texts" / "a.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture
def after_counting(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Do something between the two readings, once."""

    def plan(change: Callable[[], object]) -> None:
        choose = corpus_counts.CorpusCounts.choose_words
        todo = [change]

        def change_then_choose(self: Any, *given: Any) -> Any:
            if todo:
                todo.pop()()
            return choose(self, *given)

        monkeypatch.setattr(corpus_counts.CorpusCounts, "choose_words", change_then_choose)

    return plan


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("contexts", [None, 5])
def test_a_change_between_counting_and_reading_is_refused(
    change: Callable[[Path], object], contexts: int | None, text: Path, model: str, tmp_path: Path, after_counting: Any
) -> None:
    after_counting(lambda: change(text))
    with raises(CorpusError, code="changed", path=text):
        stillvec.distill(
            text.parent, teacher=model, method="aggregate", contexts=contexts, min_count=1, out=tmp_path / "out"
        )
    assert not (tmp_path / "out").exists()


def test_a_change_while_the_text_is_read_is_refused(
    text: Path, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_file, n_readings = sources.Source._read, []

    def read(self: sources.Source, *given: Any) -> Iterator[str]:
        n_readings.append(1)
        for number, paragraph in enumerate(read_file(self, *given)):
            yield paragraph
            if number == 3 and len(n_readings) == 3:  # after the sample and the counting
                append(text)

    monkeypatch.setattr(sources.Source, "_read", read)
    with raises(CorpusError, code="changed", path=text):
        stillvec.distill(text, teacher=model, method="aggregate", contexts=None, min_count=1, out=tmp_path / "out")


def test_a_change_of_a_compressed_file_is_refused(text: Path, model: str, tmp_path: Path, after_counting: Any) -> None:
    packed = tmp_path / "a.txt.gz"
    packed.write_bytes(gzip.compress(TEXT.encode()))
    after_counting(lambda: packed.write_bytes(gzip.compress(OTHER.encode())))
    with raises(CorpusError, code="changed", path=packed):
        stillvec.distill(packed, teacher=model, method="aggregate", min_count=1)


def test_a_change_of_a_file_that_is_read_in_slices_is_refused(
    text: Path, model: str, monkeypatch: pytest.MonkeyPatch, after_counting: Any
) -> None:
    monkeypatch.setattr(sources, "SLICE_BYTES", 256)
    after_counting(lambda: rewrite(text))
    with raises(CorpusError, code="changed", path=text):
        stillvec.distill(text, teacher=model, method="aggregate", contexts=None, min_count=1)


def test_slices_and_absolute_paths_expect_the_state_of_their_file(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the tasks of a Ray cluster read them."""
    monkeypatch.setattr(sources, "SLICE_BYTES", 256)
    corpus = Corpus(text)
    corpus.watch()
    parts = corpus.absolute().split()
    assert len(parts) > 2
    assert [line for part in parts for line in part.paragraphs()] == [*corpus.paragraphs()]
    rewrite(text)
    for part in (*parts, corpus, corpus.absolute()):
        with raises(CorpusError, code="changed", path=text):
            [*part.paragraphs()]


def test_a_copy_on_another_machine_may_have_another_time_but_no_other_size(
    text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = Corpus(text)
    corpus.watch()
    monkeypatch.setattr(sources, "name_machine", lambda: "another")
    os.utime(text, (0, 0))
    corpus.check_unchanged()
    append(text)
    with raises(CorpusError, code="changed"):
        corpus.check_unchanged()


def test_contexts_of_a_changed_text_are_not_cached(text: Path, model: str, tmp_path: Path, after_counting: Any) -> None:
    given: dict[str, Any] = {"teacher": model, "method": "x2static:epochs=1", "min_count": 1, "contexts": None}
    after_counting(lambda: rewrite(text))
    with raises(CorpusError, code="changed"):
        stillvec.distill(text, **given, context_cache=tmp_path / "store")
    assert [path for path in (tmp_path / "store").rglob("*") if path.name == "store.json"] == []
    text.write_text(TEXT)
    again = stillvec.distill(text, **given, context_cache=tmp_path / "store")
    clean = stillvec.distill(text, **given, context_cache=tmp_path / "clean")
    assert np.array_equal(again.matrix, clean.matrix)


def test_a_changed_text_is_refused_by_training(text: Path, tmp_path: Path, after_counting: Any) -> None:
    pytest.importorskip("numba")
    after_counting(lambda: rewrite(text))
    with raises(CorpusError, code="changed", path=text):
        stillvec.train(text, method="glove:epochs=1", dim=4, min_count=1, out=tmp_path / "out")


def test_a_changed_text_writes_no_checkpoint(
    text: Path, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stillvec.pipeline import pass_checkpoint
    from stillvec.pipeline.distillation_run import Run

    monkeypatch.setattr(pass_checkpoint, "EVERY", 0.0)
    write = Run._write_checkpoint

    def change_first(self: Run, *given: Any) -> None:
        append(text)
        write(self, *given)

    monkeypatch.setattr(Run, "_write_checkpoint", change_first)
    with raises(CorpusError, code="changed"):
        stillvec.distill(text, teacher=model, method="aggregate", min_count=1, out=tmp_path / "out")
    assert not (tmp_path / "out.checkpoint").exists()


def test_a_corpus_may_change_between_two_runs(text: Path, model: str) -> None:
    corpus = Corpus(text)
    for _ in range(2):
        stillvec.distill(corpus, teacher=model, method="aggregate", min_count=1)
        append(text)
