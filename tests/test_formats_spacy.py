"""Vectors to and from spaCy: a pipeline folder, and text files through `spacy init vectors`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stillvec import WordVectors, load, save
from stillvec.cli import main
from stillvec.errors import FormatError, StillvecWarning

WORDS = ["ice", "snow", "fire", "don't", "NOUN", "<unk>", "北京", "new york", "\0"]
MATRIX = np.random.default_rng(8).normal(size=(len(WORDS), 5)).astype(np.float32)


@pytest.fixture(scope="module")
def spacy() -> Any:
    return pytest.importorskip("spacy")


@pytest.fixture
def ours(spacy: Any) -> WordVectors:
    return WordVectors(WORDS, MATRIX)


def test_spacy_loads_the_folder_and_has_our_vectors_and_neighbours(
    tmp_path: Path, ours: WordVectors, spacy: Any
) -> None:
    save(ours, tmp_path / "v", format="spacy")
    pipeline = spacy.load(tmp_path / "v")
    for word in WORDS:
        np.testing.assert_array_equal(pipeline.vocab.get_vector(word), ours[word])
    assert pipeline.lang == "xx"
    keys, _, scores = pipeline.vocab.vectors.most_similar(ours["ice"][None], n=3)
    assert [pipeline.vocab.strings[int(key)] for key in keys[0][1:]] == [word for word, _ in ours.nearest("ice", 2)]
    np.testing.assert_allclose(scores[0][1:], [score for _, score in ours.nearest("ice", 2)], atol=1e-4)
    assert not pipeline("Ice")[0].has_vector  # our words are cased: NOUN


def test_words_in_lower_case_are_found_in_any_case(tmp_path: Path, spacy: Any) -> None:
    lower = WordVectors(["ice", "snow"], MATRIX[:2])
    save(lower, tmp_path / "v", format="spacy")
    text = spacy.load(tmp_path / "v")("ICE and Snow!")
    assert [token.has_vector for token in text] == [True, False, True, False]
    np.testing.assert_array_equal(text[0].vector, lower["ice"])
    assert load(tmp_path / "v").vocabulary.lowercase


def test_spacys_own_command_takes_our_text_files(tmp_path: Path, spacy: Any) -> None:
    from spacy.training.initialize import convert_vectors

    some = WordVectors(WORDS[:8], MATRIX[:8])
    save(some, tmp_path / "v.txt", format="word2vec")
    pipeline = spacy.blank("xx")
    convert_vectors(pipeline, tmp_path / "v.txt", truncate=0, prune=-1, name="ours")  # what `init vectors` does
    pipeline.to_disk(tmp_path / "v")
    back = load(tmp_path / "v")
    assert back.words == some.words
    np.testing.assert_array_equal(back.matrix, some.matrix)


def test_words_that_share_a_row_each_have_it_and_lines_are_left_out(tmp_path: Path, spacy: Any) -> None:
    from spacy.vectors import Vectors

    pipeline = spacy.blank("en")
    table = Vectors(strings=pipeline.vocab.strings, data=MATRIX[:2].copy(), keys=["ice", "fire"], name="x")
    for word, row in {"ice": 0, "fire": 1, "Ice": 0, "\n\n": 1}.items():
        table.add(pipeline.vocab.strings.add(word), row=row)
    pipeline.vocab.vectors = table
    pipeline.to_disk(tmp_path / "v")
    with pytest.warns(StillvecWarning, match="dropped 1 words"):
        back = load(tmp_path / "v")
    assert back.words == ("ice", "Ice", "fire")
    np.testing.assert_array_equal(back.matrix, MATRIX[[0, 0, 1]])


def test_a_large_map_of_rows_is_read(tmp_path: Path, spacy: Any) -> None:
    words = [f"w{i}" for i in range(70_000)]  # rows of one, two and four bytes, a map beyond 16 bits
    save(WordVectors(words, np.arange(70_000, dtype=np.float32)[:, None]), tmp_path / "v", format="spacy")
    assert load(tmp_path / "v").words == tuple(words)


BAD: dict[str, tuple[str, Callable[[bytes], bytes], str]] = {
    "cut rows": ("key2row", lambda raw: raw[:-1], "map of hashes to rows"),
    "more rows": ("key2row", lambda raw: raw + b"\0", "map of hashes to rows"),
    "another map": ("key2row", lambda raw: b"\xa3abc", "a map"),
    "a row too far": ("key2row", lambda raw: raw[:-1] + b"\x7f", r"shape \(9, 5\), got rows 0 to 127"),
    "cut table": ("vectors", lambda raw: raw[:-8], "NumPy array"),
    "a NaN": ("vectors", lambda raw: raw[:-4] + b"\xff" * 4, "NaN"),
    "words lost": ("strings.json", lambda raw: b"[]", "every word that has a vector"),
    "words cut": ("strings.json", lambda raw: raw[:40], "JSON"),
    "words of numbers": ("strings.json", lambda raw: b"[1]", "a list of words"),
    "floret": ("vectors.cfg", lambda raw: json.dumps({"mode": "floret"}).encode(), "table of n-grams"),
}


@pytest.mark.parametrize("case", BAD)
def test_an_incomplete_pipeline_is_reported_in_one_sentence(
    tmp_path: Path, ours: WordVectors, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, spoil, sentence = BAD[case]
    save(ours, tmp_path / "v", format="spacy")
    file = tmp_path / "v" / "vocab" / name
    file.write_bytes(spoil(file.read_bytes()))
    with pytest.raises(FormatError, match=sentence):
        load(tmp_path / "v")
    assert main(["convert", str(tmp_path / "v"), str(tmp_path / "o.vec")]) == 1
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
