"""Folders for model2vec and sentence-transformers: what those tools make of a text is what we make of it."""

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

WORDS = [
    "ice",
    "a",
    "x",
    ".",
    ",",
    "'",
    "new york",
    "don't",
    "'s",
    "3.5",
    "c++",
    "café",
    "北京",
    "😀",
    "[UNK]",
    "▁",
    "<unk>",
]
TEXTS = [
    "Ice in New York, a xylophone's x.",
    "Don't! U.S.A costs 3.5 in C++ at the CAFÉ",
    "北京 😀 ab xa ax a.x ▁ice [UNK] <unk>",
    "nothing known",
    "",
]


@pytest.fixture(scope="module")
def ours() -> WordVectors:
    return WordVectors(WORDS, np.random.default_rng(6).normal(size=(len(WORDS), 8)).astype(np.float32))


def model2vec_encode(folder: Path) -> Any:
    from model2vec import StaticModel

    return StaticModel.from_pretrained(folder).encode


def sentence_transformers_encode(folder: Path) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu", local_files_only=True).encode


TOOLS = {"model2vec": model2vec_encode, "sentence-transformers": sentence_transformers_encode}


@pytest.mark.parametrize("name", TOOLS)
def test_the_tool_encodes_texts_as_we_do(tmp_path: Path, ours: WordVectors, name: str) -> None:
    lower = WordVectors([word.lower() for word in WORDS], ours.matrix)
    for vectors in (ours, lower):
        save(vectors, tmp_path / "v", format=name, force=True)
        theirs = TOOLS[name](tmp_path / "v")(TEXTS)
        np.testing.assert_allclose(theirs, vectors.encode(TEXTS), atol=1e-6)
        assert not theirs[3:].any()
        assert theirs[:3].any(axis=1).all()


def test_model2vec_has_our_words_and_vectors(tmp_path: Path, ours: WordVectors) -> None:
    from model2vec import StaticModel

    save(ours, tmp_path / "v", format="model2vec")
    model = StaticModel.from_pretrained(tmp_path / "v")
    assert model.tokens == ("[UNK1]", *WORDS)  # [UNK] is a word of ours
    np.testing.assert_array_equal(model.embedding[1:], ours.matrix)
    assert model.max_length is None


def test_what_model2vec_saves_comes_back_with_weights_and_shared_rows(tmp_path: Path) -> None:
    from model2vec import StaticModel
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece

    table = np.random.default_rng(7).normal(size=(2, 4)).astype(np.float32)
    tokenizer = Tokenizer(WordPiece({"[UNK]": 0, "ice": 1, "##s": 2, "snow": 3}, unk_token="[UNK]"))
    tokenizer.add_special_tokens(["[PAD]"])
    shares, weights = np.array([0, 1, 0, 1, 0]), np.array([1, 2, 0.5, 1, 1], np.float32)
    StaticModel(table, tokenizer, weights=weights, token_mapping=shares).save_pretrained(tmp_path / "v")
    back = load(tmp_path / "v")
    assert back.words == ("ice", "##s", "snow")
    np.testing.assert_allclose(back.matrix, [table[1] * 2, table[0] / 2, table[1]], rtol=1e-6)


@pytest.mark.parametrize("name", TOOLS)
def test_tokens_that_no_format_keeps_are_left_out_with_a_warning(tmp_path: Path, ours: WordVectors, name: str) -> None:
    save(ours, tmp_path / "v", format=name)
    file = tmp_path / "v" / "tokenizer.json"
    file.write_text(file.read_text().replace('"ice"', r'"\n\n"').replace('"\ue000ice"', r'"\n\n"'))
    with pytest.warns(StillvecWarning, match="dropped 1 words"):
        back = load(tmp_path / "v")
    assert len(back) == len(ours) - 1


def change(name: str, edit: Callable[[Any], Any]) -> Callable[[Path], None]:
    def work(folder: Path) -> None:
        content = edit(json.loads((folder / name).read_text()))
        (folder / name).write_text(json.dumps(content))

    return work


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "no weights": (lambda p: (p / "model.safetensors").unlink(), r"model\.safetensors"),
    "cut weights": (lambda p: (p / "model.safetensors").write_bytes(b"\0" * 20), "safetensors"),
    "another table": (
        lambda p: (p / "model.safetensors").write_bytes(
            (p / "model.safetensors").read_bytes().replace(b'"embedding', b'"imbedding')
        ),
        "table 'embeddings'",
    ),
    "cut tokenizer": (lambda p: (p / "tokenizer.json").write_text('{"model"'), "JSON"),
    "no vocabulary": (change("tokenizer.json", lambda t: t | {"model": {}}), "tokenizer of the library"),
    "too many tokens": (
        change("tokenizer.json", lambda t: t | {"model": t["model"] | {"vocab": t["model"]["vocab"] | {"z": 99}}}),
        "a row for each token",
    ),
    "a transformer": (
        change("modules.json", lambda m: [m[0] | {"type": "sentence_transformers.models.Transformer"}]),
        "one vector per word",
    ),
    "no modules": (lambda p: (p / "modules.json").write_text("{}"), "the modules of"),
}


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("case", BAD)
def test_what_is_not_a_static_model_is_reported_in_one_sentence(
    tmp_path: Path, ours: WordVectors, name: str, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil, sentence = BAD[case]
    save(ours, tmp_path / "v", format=name)
    spoil(tmp_path / "v")
    with pytest.raises(FormatError, match=sentence):
        load(tmp_path / "v", format=name)
    assert main(["convert", str(tmp_path / "v"), str(tmp_path / "o.vec"), "--from", name]) == 1
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
