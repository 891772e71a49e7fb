"""Several processes count words and select sentences as one does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from stillvec.corpus import Corpus
from stillvec.corpus.text_chunk import TextChunk
from stillvec.corpus.worker_pool import WorkerPool, can_fork
from stillvec.errors import CorpusError, StillvecWarning
from stillvec.pipeline import count_pool, sentence_stream
from stillvec.pipeline.count_pool import PendingCount, count_corpus, start_count
from stillvec.pipeline.sentence_stream import SentenceStream
from stillvec.pipeline.settings import Distillation
from stillvec.progress import drain

pytestmark = pytest.mark.skipif(not can_fork(), reason="processes are forked")
SETTINGS = Distillation(min_count=1, include_words=("New York",))


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Two files with words of all kinds: possessives, other scripts, multi-word terms, glued words."""
    random = np.random.default_rng(0)
    words = ["river", "bread", "don't", "dog's", "Ärger", "новый", "new york", "SolutionThe", "3.5", "東京", "cold"]
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path in paths:
        lines = [" ".join(random.choice(words, 12)) + ". The end came." for _ in range(1300)]
        path.write_text("\n".join(lines), "utf-8")
    return paths


@pytest.mark.parametrize("processes", [2, 3])
def test_processes_count_what_one_counts(files: list[Path], processes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count_pool, "_MIN_BYTES", 1)
    alone = drain(count_corpus(Corpus(*files), SETTINGS))
    corpus = Corpus(*files)
    with start_count(corpus, SETTINGS, processes) as pending:
        assert isinstance(pending, PendingCount)
        vocabulary, facts = drain(count_corpus(corpus, SETTINGS, pending))
    assert vocabulary == alone[0]
    assert facts == alone[1]
    assert facts.choice == alone[1].choice
    assert corpus.report is not None
    assert corpus.report.paragraphs == facts.n_paragraphs == 2600


def test_a_short_text_and_documents_are_counted_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("the river", "utf-8")
    (tmp_path / "a.html").write_text("<html><p>the river</p></html>", "utf-8")
    with start_count(Corpus(tmp_path / "a.txt"), SETTINGS, 2) as pending:
        assert pending is None
    monkeypatch.setattr(count_pool, "_MIN_BYTES", 1)
    for source in (Corpus(tmp_path / "a.html"), Corpus.from_texts(["the river"])):
        with start_count(source, SETTINGS, 2) as pending:
            assert pending is None


def test_what_the_reading_process_finds_is_told_here(tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9 and bread\n" * 9)
    corpus = Corpus(tmp_path / "latin.txt")
    with PendingCount(corpus, SETTINGS, 2) as pending, pytest.warns(StillvecWarning, match="9 bytes are not UTF-8"):
        drain(pending.steps(corpus))
    [*corpus.paragraphs()]  # does not warn again
    strict = Corpus(tmp_path / "latin.txt", strict=True)
    with PendingCount(strict, SETTINGS, 2) as pending, pytest.raises(CorpusError) as caught:
        drain(pending.steps(strict))
    assert caught.value.code == "encoding"
    assert caught.value.line == 1


@pytest.mark.parametrize("workers", [1, 3])
def test_processes_select_what_one_selects(files: list[Path], workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_stream, "LOOKAHEAD", 700)
    monkeypatch.setattr(sentence_stream, "_PARAGRAPHS_PER_TASK", 90)
    corpus = Corpus(*files)
    vocabulary, facts = drain(count_corpus(corpus, SETTINGS))
    options = {"n_characters": facts.n_characters, "n_words": facts.n_words}
    alone = [*SentenceStream(corpus, vocabulary, 20, 50, 3, **options).chunks()]
    parts = [*SentenceStream(corpus, vocabulary, 20, 50, 3, **options, workers=workers).chunks()]
    assert [(chunk.texts, chunk.position) for chunk in parts] == [(chunk.texts, chunk.position) for chunk in alone]
    assert 0 < sum(len(chunk.texts) for chunk in alone) < 5200


@dataclass(frozen=True)
class _Sizes:
    lengths: NDArray[np.int32]
    name: NDArray[np.uint8]


def test_results_come_in_order_with_what_the_reader_returns() -> None:
    def read():  # type: ignore[no-untyped-def]
        for number in range(20):
            yield TextChunk(["a" * number, "bb"])
        return "read"

    def measure(chunk: TextChunk) -> list[_Sizes]:
        return [_Sizes(np.array([[len(text) for text in chunk.texts]], np.int32), np.frombuffer(b"ab", np.uint8))]

    with WorkerPool(measure, 3) as pool:
        for _ in range(2):  # one stream after another
            steps = pool.results(read())
            found = [next(steps)[1][0].lengths.tolist() for _ in range(20)]
            assert found == [[[number, 2]] for number in range(20)]
            assert drain(steps) == "read"
