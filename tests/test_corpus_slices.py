"""Shares of a corpus: read one after the other, they are the whole, wherever a file is cut."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

from stillvec.corpus import Corpus
from stillvec.errors import CorpusError
from stillvec.pipeline.sentence_stream import SentenceStream
from stillvec.vocabulary import Vocabulary

WORDS = ["river", "Käse", "été", "水", "\ufeff", "\x00", "don't", "stop.", "\u2028", "\x0b"]


def text_of(kind: str, seed: int) -> bytes:
    """A text with all that makes a cut hard: breaks of every kind, blank lines, endless ones, bytes that are none."""
    made = random.Random(seed)
    breaks = {"lines": [b"\n", b"\r\n", b"\n\n", b"\r"], "blocks": [b"\n", b"\r\n", b"\n \t\n", b"\n\n", b"\r\r\n\r\n"]}
    found = []
    for number in range(100):
        line = " ".join(made.choices(WORDS, k=made.choice([1, 5, 12])))
        raw = (line * 9000 if number in (30, 60) else line).encode()
        found.append(raw + (b"\xe9" if made.random() < 0.1 else b"") + made.choice(breaks[kind]))
    return b"".join(found)


@pytest.mark.filterwarnings("ignore::stillvec.errors.StillvecWarning")
@pytest.mark.parametrize("kind", ["lines", "blocks"])
@pytest.mark.parametrize("seed", range(3))
def test_a_file_that_is_cut_gives_the_paragraphs_of_the_whole(
    kind: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text.txt").write_bytes(text_of(kind, seed))
    for mode in ("auto", "lines", "blocks"):
        corpus = Corpus(tmp_path / "text.txt", paragraphs=mode)
        whole = [*corpus.paragraphs()]
        for size in (500, 20_000):
            monkeypatch.setattr("stillvec.corpus.sources.SLICE_BYTES", size)
            slices = corpus.split()
            assert [paragraph for each in slices for paragraph in each.paragraphs()] == whole
            assert len(slices) > 1
            assert [part for each in slices for part in each.split()] == slices  # which are cut no further


def test_wrapped_lines_are_recognised_from_the_start_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later stretch alone would look different."""
    line = "the river runs on and on through the old town and never"
    wrapped = "\n\n".join("\n".join([line] * 4) for _ in range(400))
    (tmp_path / "text.txt").write_text(wrapped + "\n\n" + "A line.\nAnother line.\n" * 9000, "utf-8")
    corpus = Corpus(tmp_path / "text.txt")
    whole = [*corpus.paragraphs()]
    monkeypatch.setattr("stillvec.corpus.sources.SLICE_BYTES", 20_000)
    assert [paragraph for each in corpus.split() for paragraph in each.paragraphs()] == whole


def test_files_are_shared_until_they_are_large_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is not plain text stays whole, and so do texts in memory."""
    for number, size in enumerate((5, 5, 20, 1, 1)):
        (tmp_path / f"{number}.txt").write_text("a" * size, "utf-8")
    monkeypatch.setattr("stillvec.corpus.sources.SLICE_BYTES", 10)
    slices = Corpus(tmp_path).split()
    assert [[Path(name).stem for name in part.sources] for part in slices] == [["0", "1"], ["2"], ["3", "4"]]
    text = "A line of text.\n" * 50
    whole = {
        "packed.txt.gz": gzip.compress(random.Random(0).randbytes(100).hex().encode()),
        "records.jsonl": b'{"text": "A line."}\n' * 50,
        "marked.txt": text.encode("utf-16"),
    }
    for name, data in whole.items():
        (tmp_path / name).write_bytes(data)
        assert len(Corpus(tmp_path / name).split()) == 1, name
    texts = Corpus.from_texts([text])
    assert texts.split() == [texts]
    corpus = Corpus(tmp_path / "0.txt", tmp_path / "1.txt")
    (tmp_path / "0.txt").unlink()
    with pytest.raises(CorpusError, match=r"0\.txt"):
        corpus.split()


def test_chunks_end_with_the_shares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So whoever reads the shares apart has the chunks, and the batches, of one reader."""
    (tmp_path / "text.txt").write_text("A line of text in a file.\n" * 1000, "utf-8")
    monkeypatch.setattr("stillvec.corpus.sources.SLICE_BYTES", 5000)
    reading = SentenceStream(Corpus(tmp_path / "text.txt"), Vocabulary(["text"]), None, 16)
    parts = reading.slices()
    assert len(parts) == 6
    monkeypatch.undo()
    apart = [chunk for part in parts for chunk in part.chunks()]
    monkeypatch.setattr("stillvec.corpus.sources.SLICE_BYTES", 5000)
    assert [chunk.texts for chunk in reading.chunks()] == [chunk.texts for chunk in apart]
    in_paragraphs = [chunk.texts for part in parts for chunk in part.paragraphs()]
    assert [chunk.texts for chunk in reading.paragraphs()] == in_paragraphs
    assert (
        SentenceStream(reading.corpus, reading.vocabulary, 5, 16).slices()[0].corpus is reading.corpus
    )  # choosing is one stream


def test_a_long_line_is_cut_at_the_same_places_wherever_it_stands(tmp_path: Path) -> None:
    """White space before it counts, or does not, whether it begins a bite of the file or not."""
    long = " " * 6000 + "river " * 40_000
    found = []
    for before in ("", "A line.\n", "A line.\n" * 40_000):
        (tmp_path / "text.txt").write_text(f"{before}{long}\n", "utf-8")
        read = [*Corpus(tmp_path / "text.txt", paragraphs="lines").paragraphs()]
        found.append([paragraph for paragraph in read if paragraph != "A line."])
    assert len(found[0]) == 3
    assert found[0] == found[1] == found[2]
