"""Heads as ONNX models: onnxruntime says what NumPy says, for every kind that has one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stillvec
from stillvec.cli import main
from stillvec.errors import StillvecWarning, UsageError
from stillvec.heads import HEADS
from stillvec.heads.fitted_head import Head
from stillvec.heads.marked_texts import MarkedText
from stillvec.heads.onnx_head import write_onnx
from stillvec.heads.pooling import SPAN_POOLINGS
from stillvec.heads.sequence_batches import SPECIAL
from stillvec.subwords import Ngrams, SubwordTable
from stillvec.vectors import WordVectors
from stillvec.verbs.fitting import fit

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

COLD, WARM, PLAIN = ("ice", "snow"), ("fire", "heat"), ("the", "a", "was", "here", "zero")
TEXTS = ["the snow was here", "fire", "the heat unknown was here again zero", "", "unknown", "zero", "a " * 30 + "ice"]
KINDS = {
    "linear": (),
    "linear:hidden=4,epochs=2": (),
    "linear:tuned=true,epochs=2,objective=coco": (),
    "cnn:epochs=2": (),
    "cnn:epochs=3,tuned=true,rate=0.02": (),
    "cnn:epochs=2,objective=contrastive": (),
    "attention:epochs=2": (),
    "attention:form=dot,epochs=2": ("concat", "residual"),
    "knn:k=3": (),
    "knn:k=50,balanced=true,center=false": (),
    "tagger:epochs=3,rate=0.03": (),
    "tagger:epochs=5,rate=0.05,tuned=true": (),
    "tagger:epochs=5,rate=0.03": ("experts:size=4",),
}


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    matrix = np.random.default_rng(0).standard_normal((9, 6)).astype(np.float32)
    matrix[8] = 0  # counts as unknown
    return WordVectors((*COLD, *WARM, *PLAIN), matrix)


def sentences(n: int = 60) -> list[tuple[list[str], str]]:
    random = np.random.default_rng(1)
    sides = [("cold", COLD) if number % 2 else ("warm", WARM) for number in range(n)]
    return [([*random.choice(PLAIN, 3), str(random.choice(words))], label) for label, words in sides]


def train(vectors: WordVectors, spec: str, options: tuple[str, ...] = (), **more: Any) -> Head:
    if spec.startswith("tagger"):
        tagged = [(tuple(words), ("O", "O", "O", f"B-{label}")) for words, label in sentences()]
        return fit(vectors, tagged, spec, options, **more)
    return fit(vectors, [(" ".join(words), label) for words, label in sentences()], spec, options, **more)


def run(file: Path, rows: np.ndarray) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(file)
    return list(session.run(None, {"rows": rows}))


def pad(head: Head, texts: list[list[str]] | list[str]) -> np.ndarray:
    """The rows of words: -1 unknown, -2 padding."""
    sequences = head._lookup.read_tokens(texts) if head.kind.unit == "tokens" else head._lookup.read_texts(texts)
    assert sequences.source_rows is not None
    row = np.where(sequences.ids < SPECIAL, -1, sequences.source_rows[sequences.ids])
    rows = np.full((len(texts), max(1, int(sequences.lengths.max())) + 2), -2, np.int64)
    for number, end in enumerate(sequences.ends.tolist()):
        length = int(sequences.lengths[number])
        rows[number, :length] = row[end - length : end]
    return rows


@pytest.mark.parametrize("spec", KINDS)
def test_onnxruntime_predicts_what_numpy_predicts(spec: str, vectors: WordVectors, tmp_path: Path) -> None:
    head, file = train(vectors, spec, KINDS[spec]), tmp_path / "head.onnx"
    write_onnx(head, file)
    onnx.checker.check_model(onnx.load(file), full_check=True)
    metadata = {entry.key: json.loads(entry.value) for entry in onnx.load(file).metadata_props}
    assert (metadata["labels"], metadata["words"]) == ([*head.labels], [*vectors.words])
    if head.kind.unit == "tokens":
        given = [text.split() for text in TEXTS]
        tags, scores = run(file, pad(head, given))
        said = [[head.labels[tag] for tag in row[: len(words)]] for row, words in zip(tags, given, strict=True)]
        assert said == head.predict(given)
        assert len({tag for row in said for tag in row}) > 1
        assert all(not row[len(words) :].any() for row, words in zip(tags, given, strict=True))
        assert scores.shape == (*tags.shape, len(head.labels))
    else:
        (likely,) = run(file, pad(head, TEXTS))
        np.testing.assert_allclose(likely, head.predict_proba(TEXTS), atol=1e-5)
        assert np.ptp(likely[:, 0]) > 1e-3


@pytest.mark.parametrize("spec", ["pair", "pair:hidden=5,epochs=2", "pair:tuned=true,epochs=2"])
def test_a_pair_has_two_inputs(spec: str, vectors: WordVectors, tmp_path: Path) -> None:
    pairs = [((" ".join(words), " ".join(words[::-1])), label) for words, label in sentences()]
    head, other = fit(vectors, pairs, spec), [*TEXTS[:3], "heat fire", "ice unknown", "", TEXTS[-1]]
    write_onnx(head, tmp_path / "head.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "head.onnx")
    plain = fit(vectors, [(first, label) for (first, _), label in pairs])  # which reads one text as the pair does two
    (likely,) = session.run(None, {"rows": pad(plain, TEXTS), "rows_2": pad(plain, other)})
    np.testing.assert_allclose(likely, head.predict_proba([*zip(TEXTS, other, strict=True)]), atol=1e-5)


@pytest.mark.parametrize("two", [False, True])
@pytest.mark.parametrize("pooling", SPAN_POOLINGS)
def test_a_span_is_read_by_its_words(pooling: str, two: bool, vectors: WordVectors, tmp_path: Path) -> None:
    random, items = np.random.default_rng(4), []
    for words, label in sentences(40):
        first, second = sorted(random.integers(0, 4, 2).tolist()), sorted(random.integers(0, 4, 2).tolist())
        items.append(((tuple(map(str, words)), (*first, *second) if two else tuple(first)), label))
    head = fit(vectors, items, f"span:pooling={pooling},size=32,epochs=2", device="cpu")
    write_onnx(head, tmp_path / "head.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "head.onnx"), full_check=True)
    row = {word: number for number, word in enumerate(vectors.words[:8])}
    given = {"rows": np.full((40, 5), -2), "rows_2": np.full((40, 6), -2)}
    for number, (item, _) in enumerate(items):
        for name, span in zip(given, MarkedText(*item).spans, strict=False):
            given[name][number, : len(span)] = [row.get(word, -1) for word in span]
    session = onnxruntime.InferenceSession(tmp_path / "head.onnx")
    (likely,) = session.run(None, {entry.name: given[entry.name] for entry in session.get_inputs()})
    np.testing.assert_allclose(likely, head.predict_proba([item for item, _ in items]), atol=1e-5)


def test_several_labels_have_probabilities_of_their_own(vectors: WordVectors, tmp_path: Path) -> None:
    several = [(" ".join(words), (label, "any") if "the" in words else (label,)) for words, label in sentences()]
    head = fit(vectors, several, multilabel=True)
    write_onnx(head, tmp_path / "head.onnx")
    (likely,) = run(tmp_path / "head.onnx", pad(head, TEXTS))
    np.testing.assert_allclose(likely, head.predict_proba(TEXTS), atol=1e-5)
    assert likely.sum(axis=1).max() > 1.01


def test_the_command_converts_a_head(vectors: WordVectors, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(vectors, "linear", out=tmp_path / "head")
    call = ["convert", str(tmp_path / "head"), str(tmp_path / "head.onnx")]
    assert main(call) == 0
    assert "head linear" in capsys.readouterr().out
    head = stillvec.load_head(tmp_path / "head")
    np.testing.assert_allclose(run(tmp_path / "head.onnx", pad(head, TEXTS))[0], head.predict_proba(TEXTS), atol=1e-5)
    assert main(call) == 2
    assert main([*call, "--force"]) == 0
    assert main(["convert", str(tmp_path / "head"), str(tmp_path / "head.vec")]) == 2
    assert "onnx" in capsys.readouterr().err
    assert not (tmp_path / "head.vec").exists()


def test_what_onnx_has_not_is_said(vectors: WordVectors, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        write_onnx(Head("primitives", HEADS["primitives"](), vectors, ["a", "b"], {}, {}), tmp_path / "head.onnx")
    assert caught.value.code == "no-onnx"
    table = SubwordTable(Ngrams(50, 2, 3), np.random.default_rng(2).standard_normal((50, 6)).astype(np.float32))
    composing = WordVectors(vectors.words, vectors.matrix, subwords=table)
    with pytest.warns(StillvecWarning, match="n-grams"):
        write_onnx(train(composing, "linear"), tmp_path / "head.onnx")
