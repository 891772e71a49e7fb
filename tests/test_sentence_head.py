"""Sentence-transformers folders, compared with the package itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tiny_corpus import collect_statistics
from tiny_teachers import write_tiny_model

from stillvec import distill
from stillvec.corpus.text_chunk import TextChunk
from stillvec.encoding.batch_loader import BatchBudget, BatchBuilder
from stillvec.encoding.forward_pass import encode_batch
from stillvec.errors import TeacherError, UsageError
from stillvec.evaluation.teacher_states import open_teachers
from stillvec.learners.additive import Additive
from stillvec.teachers import load_teacher
from stillvec.teachers.sentence_head import POOLINGS
from stillvec.vocabulary import Vocabulary, WordMatcher

TEXTS = ["the old dog", "House", "he reads a good book about old houses and new words, don't you know", "sun sea sun"]
PROMPTS = {"prompts": {"query": "the words: ", "document": ""}, "default_prompt_name": "query"}
TOKENS = Additive(vectors="tokens")
PACKAGE = "sentence_transformers.models."


def write_modules(folder: Path, kinds: Sequence[str], files: Mapping[str, object]) -> Path:
    paths = ["" if kind == "Transformer" else f"{number}_{kind}" for number, kind in enumerate(kinds)]
    parts = zip(kinds, paths, strict=True)
    listed = [{"idx": n, "name": str(n), "path": path, "type": PACKAGE + kind} for n, (kind, path) in enumerate(parts)]
    for name, content in {"modules.json": listed, **files}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content), "utf-8")
    for path in paths:
        (folder / path).mkdir(exist_ok=True)
    return folder


def write_dense(folder: Path, name: str, n_in: int, n_out: int, activation: str = "Tanh", bias: bool = True) -> None:
    random = torch.Generator().manual_seed(n_out)
    place = "torch.nn.modules.linear" if activation == "Identity" else "torch.nn.modules.activation"
    config = {"in_features": n_in, "out_features": n_out, "bias": bias, "activation_function": f"{place}.{activation}"}
    (folder / name).mkdir(exist_ok=True)
    (folder / name / "config.json").write_text(json.dumps(config), "utf-8")
    weights = {"linear.weight": torch.randn(n_out, n_in, generator=random)}
    weights |= {"linear.bias": torch.randn(n_out, generator=random)} if bias else {}
    save_file(weights, folder / name / "model.safetensors")


def pooling(*modes: str, **more: object) -> dict[str, object]:
    return {"word_embedding_dimension": 16, "pooling_mode": [*modes], **more}


def _plain(folder: Path, *modes: str) -> None:
    write_modules(folder, ["Transformer", "Pooling"], {"1_Pooling/config.json": pooling(*modes)})


def _dense(folder: Path) -> None:
    kinds = ["Transformer", "Pooling", "Dense", "Dense", "Normalize"]
    old = {"word_embedding_dimension": 16, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}
    write_dense(folder, "2_Dense", 32, 24)
    write_dense(folder, "3_Dense", 24, 10, "Identity", bias=False)
    write_modules(folder, kinds, {"1_Pooling/config.json": old})


def _prompted(folder: Path, **more: object) -> None:
    limits = {"max_seq_length": 12, "do_lower_case": True}
    files = {"1_Pooling/config.json": pooling("weightedmean", "mean", **more), "sentence_bert_config.json": limits}
    write_modules(folder, ["Transformer", "Pooling"], files | {"config_sentence_transformers.json": PROMPTS})


FOLDERS: Mapping[str, Callable[[Path], None]] = {
    **{mode: lambda folder, mode=mode: _plain(folder, mode) for mode in POOLINGS},  # type: ignore[misc]
    "dense": _dense,
    "prompt": _prompted,
    "prompt left out": lambda folder: _prompted(folder, include_prompt=False),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folders = {family: tmp_path_factory.mktemp(family) for family in ("bert", "roberta")}
    for family, folder in folders.items():
        write_tiny_model(folder, family)
    return folders


def copy(model: Path, folder: Path) -> Path:
    for file in model.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def encode(folder: Path, texts: Sequence[str]) -> Any:
    return open_teachers({"it": f"teacher:{folder}"}, None, "cpu")["it"].encode_texts(texts)


@pytest.mark.parametrize("family", ["bert", "roberta"])
@pytest.mark.parametrize("kind", FOLDERS)
def test_the_vector_of_a_text_is_that_of_the_package(
    kind: str, family: str, models: Mapping[str, Path], tmp_path: Path
) -> None:
    package = pytest.importorskip("sentence_transformers")
    FOLDERS[kind](copy(models[family], tmp_path))
    want = package.SentenceTransformer(str(tmp_path), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(encode(tmp_path, TEXTS), want, atol=1e-5)


@pytest.mark.parametrize("prompt", ["query", "document", "off"])
def test_another_prompt_is_put_before_texts_as_by_the_package(
    prompt: str, models: Mapping[str, Path], tmp_path: Path
) -> None:
    package = pytest.importorskip("sentence_transformers")
    _prompted(copy(models["bert"], tmp_path))
    model = package.SentenceTransformer(str(tmp_path), device="cpu")
    model.default_prompt_name = None
    want = model.encode(TEXTS, **({} if prompt == "off" else {"prompt_name": prompt}))
    opened = open_teachers({"it": f"teacher:{tmp_path}:prompt={prompt}"}, None, "cpu")["it"]
    np.testing.assert_allclose(opened.encode_texts(TEXTS), want, atol=1e-5)


def test_a_prompt_changes_the_digest_and_an_unknown_one_is_refused(models: Mapping[str, Path], tmp_path: Path) -> None:
    _prompted(copy(models["bert"], tmp_path))
    default, query, none = (load_teacher(str(tmp_path), prompt=name) for name in (None, "query", "off"))
    assert default.digest == query.digest != none.digest
    assert default.head is not None
    assert default.head.prompt == "the words: "
    with pytest.raises(TeacherError, match="query"):
        load_teacher(str(tmp_path), prompt="quest")
    with pytest.raises(TeacherError, match="no prompts"):
        load_teacher(str(models["bert"]), prompt="query")


def test_distilling_with_a_prompt_records_it(models: Mapping[str, Path], tmp_path: Path) -> None:
    _prompted(copy(models["bert"], tmp_path))
    given: dict[str, Any] = {"teacher": str(tmp_path), "method": "aggregate", "min_count": 1, "device": "cpu"}
    texts = ["the old dog reads a book", "the sun and the sea"]
    default, none = (distill(texts, **given, prompt=prompt) for prompt in (None, "off"))
    assert none.provenance["distillation"]["prompt"] == "off"
    assert "prompt" not in default.provenance["distillation"]
    assert not np.allclose(default["dog"], none["dog"], atol=1e-3)


@pytest.mark.parametrize("kind", FOLDERS)
def test_the_pass_gives_the_same_vectors_as_whole_texts(kind: str, models: Mapping[str, Path], tmp_path: Path) -> None:
    FOLDERS[kind](copy(models["bert"], tmp_path))
    teacher = load_teacher(str(tmp_path), device="cpu")
    texts = ["the old dog", "he reads a book", "sun sea sun"]
    got = np.zeros((len(texts), teacher.text_dim), np.float32)
    builder = BatchBuilder.for_teacher(teacher, WordMatcher(Vocabulary(("dog", "book", "sea"))), BatchBudget(64, 32))
    for batch in builder(TextChunk(texts)):
        encoded = encode_batch(teacher, batch, [teacher.depth])
        known = encoded.known_id.tolist()
        got[known] = encoded.text_vectors()[encoded.known_sentence].numpy()
    np.testing.assert_allclose(got, encode(tmp_path, texts), atol=1e-5)


def test_additive_takes_vectors_that_are_more_than_a_mean(models: Mapping[str, Path], tmp_path: Path) -> None:
    texts, vocabulary = ["the old dog", "he reads a book", "sun sea sun"], Vocabulary(("dog", "book", "sea"), (1, 1, 1))
    plain = load_teacher(str(models["bert"]), device="cpu")
    _dense(copy(models["bert"], tmp_path))
    dense = load_teacher(str(tmp_path), device="cpu")
    for teacher, learner, own in [(plain, Additive(), False), (dense, Additive(), True), (dense, TOKENS, False)]:
        products = collect_statistics({"it": learner}, teacher, vocabulary, texts)["it"]["sentences"]["sum:products"]
        assert products.shape == (3, 10 if own else 16)  # one known word per sentence: its row is the sentence's vector
        if own:
            np.testing.assert_allclose(products, encode(tmp_path, texts), atol=1e-5)
    with pytest.raises(UsageError, match="last layer"):
        collect_statistics({"it": Additive(layer="1", vectors="own")}, dense, vocabulary, texts)


def test_inner_layers_and_cls_are_states_of_the_transformer(models: Mapping[str, Path], tmp_path: Path) -> None:
    _dense(copy(models["bert"], tmp_path))
    sources = {name: f"teacher:{folder}@1" for name, folder in (("plain", models["bert"]), ("dense", tmp_path))}
    opened = open_teachers(sources | {"cls": f"teacher:{tmp_path}:cls"}, None, "cpu")
    inner = opened["dense"].encode_texts(TEXTS)
    np.testing.assert_allclose(inner, opened["plain"].encode_texts(TEXTS), atol=1e-6)
    assert opened["cls"].encode_texts(TEXTS).shape == inner.shape == (len(TEXTS), 16)


def test_the_digest_covers_the_modules_if_they_are_more_than_a_mean(models: Mapping[str, Path], tmp_path: Path) -> None:
    digest = load_teacher(str(copy(models["bert"], tmp_path))).digest
    write_modules(tmp_path, ["Transformer", "Pooling", "Normalize"], {"1_Pooling/config.json": pooling("mean")})
    assert load_teacher(str(tmp_path)).digest == digest
    _dense(tmp_path)
    with_dense = load_teacher(str(tmp_path)).digest
    write_dense(tmp_path, "3_Dense", 24, 10, "Tanh", bias=False)
    assert len({digest, with_dense, load_teacher(str(tmp_path)).digest}) == 3


def _wrong(name: str, content: object) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        _dense(folder)
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")

    return write


def _wrong_path(path: str) -> Callable[[Path], None]:
    kinds = ("Transformer", "Pooling")
    listed = [{"type": PACKAGE + kind, "path": "" if kind == "Transformer" else path} for kind in kinds]
    return _wrong("modules.json", listed)


WRONG: Mapping[str, tuple[Callable[[Path], None], str]] = {
    "no JSON": (_wrong("modules.json", "["), "modules.json: expected JSON"),
    "no list": (_wrong("modules.json", {}), "expected Transformer, Pooling"),
    "a module": (lambda folder: write_modules(folder, ["Transformer", "CNN"], {}) and None, "got Transformer, CNN"),
    "a mode": (_wrong("1_Pooling/config.json", {"pooling_mode": "median"}), "Unknown pooling 'median'"),
    "columns": (_wrong("1_Pooling/config.json", pooling("mean") | {"word_embedding_dimension": 8}), "expected 16"),
    "a table as mode": (_wrong("1_Pooling/config.json", {"pooling_mode": {"a": 1}}), "Unknown pooling"),
    "modes that are no list": (_wrong("1_Pooling/config.json", {"pooling_mode": 5}), "Unknown pooling"),
    "a path outside": (_wrong_path("../1_Pooling"), "expected a subfolder"),
    "a path of another folder": (_wrong_path("/etc"), "expected a subfolder"),
    "a path that is too long": (_wrong_path("[" * 3000), "expected a subfolder"),
    "a path with a zero": (_wrong_path("a\0"), "expected a subfolder"),
    "features as truth": (_wrong("2_Dense/config.json", {"in_features": 32, "out_features": True}), "to a number"),
    "absurd features": (_wrong("2_Dense/config.json", {"in_features": 32, "out_features": 1 << 62}), "to a number"),
    "many features": (_wrong("2_Dense/config.json", {"in_features": 32, "out_features": 1 << 20}), "expected {"),
    "features": (_wrong("2_Dense/config.json", {"in_features": 4, "out_features": 5}), "32 features"),
    "an activation": (
        _wrong("3_Dense/config.json", {"in_features": 24, "out_features": 10, "activation_function": "os.system"}),
        "Unknown activation 'os.system'",
    ),
    "weights": (lambda folder: _dense(folder) or (folder / "2_Dense/model.safetensors").unlink(), "--unsafe-weights"),
    "a prompt": (_wrong("config_sentence_transformers.json", {"default_prompt_name": "x"}), "Unknown prompt 'x'"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_files_are_one_sentence(what: str, models: Mapping[str, Path], tmp_path: Path) -> None:
    write, message = WRONG[what]
    write(copy(models["bert"], tmp_path))
    with pytest.raises(TeacherError, match=message.replace("(", r"\(")) as raised:
        load_teacher(str(tmp_path), device="cpu")
    assert "\n" not in str(raised.value)
