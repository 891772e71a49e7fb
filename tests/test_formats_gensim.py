"""Vectors to and from gensim and fastText: word2vec files, `.kv`, `.bin` with n-grams."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stillvec import Vocabulary, WordVectors, load, save
from stillvec.cli import main
from stillvec.errors import FormatError

SENTENCES = [["naïve", "ice", "snow", "北京"], ["ice", "fire", "😀", "x", "fire"], ["snow", "ice", "naïve", "</s>"]]


@pytest.fixture(scope="module")
def ours() -> WordVectors:
    matrix = np.random.default_rng(5).normal(size=(40, 6)).astype(np.float32)
    return WordVectors(Vocabulary([f"wörd{i}" for i in range(40)], range(40, 0, -1)), matrix)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A model with n-grams, as gensim writes it in fastText's form, and the vectors that gensim reads of it."""
    from gensim.models.fasttext import FastText, load_facebook_vectors, save_facebook_model

    path = tmp_path_factory.mktemp("fasttext") / "model.bin"
    model = FastText(SENTENCES, vector_size=5, min_count=1, min_n=1, max_n=4, bucket=60, epochs=2, workers=1)
    save_facebook_model(model, str(path))
    return path, load_facebook_vectors(str(path))


@pytest.mark.parametrize("name", ["word2vec", "word2vec-binary", "fasttext-bin", "gensim"])
def test_gensim_has_our_words_vectors_and_neighbours(tmp_path: Path, ours: WordVectors, name: str) -> None:
    from gensim.models import KeyedVectors
    from gensim.models.fasttext import load_facebook_vectors

    file = str(tmp_path / "v.kv")
    save(ours, file, format=name)
    theirs = {
        "word2vec": lambda: KeyedVectors.load_word2vec_format(file),
        "word2vec-binary": lambda: KeyedVectors.load_word2vec_format(file, binary=True),
        "fasttext-bin": lambda: load_facebook_vectors(file),
        "gensim": lambda: KeyedVectors.load(file),
    }[name]()
    assert theirs.index_to_key == [*ours.words]
    np.testing.assert_array_equal(theirs.vectors, ours.matrix)
    assert [word for word, _ in theirs.most_similar("wörd7", topn=5)] == [w for w, _ in ours.nearest("wörd7", 5)]
    if name in ("gensim", "fasttext-bin"):
        assert theirs.get_vecattr("wörd0", "count") == 40


def test_gensim_reads_words_without_counts_in_any_order(tmp_path: Path) -> None:
    from gensim.models.fasttext import load_facebook_vectors

    words = Vocabulary(["ice", "new york", "fire"], [0, 2, 5])
    save(WordVectors(words, np.eye(3, dtype=np.float32)), tmp_path / "v", format="fasttext-bin")
    theirs = load_facebook_vectors(str(tmp_path / "v"))
    assert {word: theirs[word].argmax() for word in theirs.index_to_key} == {"ice": 0, "new york": 1, "fire": 2}
    assert load(tmp_path / "v").vocabulary.counts.tolist() == [1, 2, 5]


def test_a_word_of_fasttext_is_the_mean_of_its_row_and_its_ngrams(trained: tuple[Path, Any]) -> None:
    path, theirs = trained
    back = load(path)
    assert back.words == tuple(theirs.index_to_key)
    known = [row for row, word in enumerate(back.words) if word != "</s>"]
    np.testing.assert_allclose(back.matrix[known], theirs.vectors[known], atol=1e-7)
    assert back.vocabulary.counts[back.vocabulary.index["ice"]] == 3


def test_the_end_of_a_sentence_has_no_ngrams_as_in_fasttext_itself(trained: tuple[Path, Any]) -> None:
    path, theirs = trained  # gensim takes it for any other word
    np.testing.assert_array_equal(load(path)["</s>"], theirs.vectors_vocab[theirs.key_to_index["</s>"]])


def test_words_are_looked_up_in_blocks(trained: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = load(trained[0]).matrix
    monkeypatch.setattr("stillvec.formats.fasttext_bin._WORDS", 2)
    np.testing.assert_allclose(load(trained[0]).matrix, whole, atol=1e-7)


def put(kind: str, value: object, place: int) -> Callable[[bytes], bytes]:
    new = struct.pack(kind, value)
    return lambda raw: raw[:place] + new + raw[place + len(new) :]


BAD = {
    "another version": (put("<i", 99, 4), "1 to 12"),
    "pruned": (put("<q", 0, 84), "quantized or pruned"),
    "other dimension": (put("<i", 7, 8), "7 dimensions"),
    "more words": (put("<i", 3, 68), "8 words instead of 3"),
    "cut in its words": (lambda raw: raw[:93], "ends within the words"),
    "cut in its header": (lambda raw: raw[:30], "truncated"),
    "cut in its vectors": (lambda raw: raw[:700], "68 vectors"),
    "a NaN": (lambda raw: raw[:-600] + b"\xff" * 400 + raw[-200:], "NaN"),
}


@pytest.mark.parametrize("case", BAD)
def test_an_incomplete_model_is_reported_in_one_sentence(
    tmp_path: Path, trained: tuple[Path, Any], case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change, sentence = BAD[case]
    (tmp_path / "v.bin").write_bytes(change(trained[0].read_bytes()))
    with pytest.raises(FormatError, match=sentence):
        load(tmp_path / "v.bin", format="fasttext-bin")
    assert main(["convert", str(tmp_path / "v.bin"), str(tmp_path / "o.vec")]) == 1
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_a_quantized_model_is_refused(tmp_path: Path, ours: WordVectors) -> None:
    save(ours, tmp_path / "v", format="fasttext-bin")
    raw = (tmp_path / "v").read_bytes()
    place = len(raw) - 17 - ours.matrix.nbytes - 17  # the sign before the table
    assert raw[place : place + 1] == b"\0"
    (tmp_path / "v").write_bytes(put("<?", True, place)(raw))
    with pytest.raises(FormatError, match="quantized"):
        load(tmp_path / "v")


def test_a_pickle_is_never_read_and_the_sentence_says_what_to_do(
    tmp_path: Path, ours: WordVectors, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", str(_saved(ours, tmp_path / "a.vec")), str(tmp_path / "v.kv")]) == 0
    with pytest.raises(FormatError, match=r"v\.kv: .*pickle.*KeyedVectors\.load\('v\.kv'\)\.save_word2vec_format"):
        load(tmp_path / "v.kv")


def _saved(vectors: WordVectors, path: Path) -> Path:
    save(vectors, path, format="fasttext")
    return path
