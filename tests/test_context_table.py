"""The context table of `stillvec train --context-table`: trained, stored, read, refined with and converted."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
from test_baselines_contract import learner, run, text  # noqa: F401
from tiny_corpus import refused, sentences

import stillvec
from stillvec import WordVectors
from stillvec.baselines import BASELINES, EncodedCorpus, Resources
from stillvec.cli import main
from stillvec.errors import FormatError, UsageError
from stillvec.formats import load, read_manifest, read_model, save, write_folder
from stillvec.formats.stillvec_folder import verify_folder
from stillvec.formats.tensors import write_tensors

SMALL = ("--dim", "6", "--min-count", "1", "--threads", "1", "--quiet")
TABLE = np.array([[1, 2], [3, 4], [5, 7]], np.float32)


@pytest.fixture
def vectors() -> WordVectors:
    return WordVectors(["ice", "snow", "fire"], -TABLE, contexts=TABLE, provenance={"method": "skipgram"})


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("\n".join(sentences(96)), "utf-8")
    return "text.txt"


@pytest.mark.parametrize("name", [*BASELINES])
def test_a_method_that_has_contexts_returns_one_per_word(name: str, text: EncodedCorpus) -> None:  # noqa: F811
    method = learner(name)
    contexts = run(method.steps(text, Resources(1)))[0].vectors.contexts
    assert (contexts is not None) == method.has_contexts
    if contexts is not None:
        assert contexts.words == text.vocabulary.words
        assert contexts.matrix.shape == (len(text.vocabulary), 8)
        assert np.abs(contexts.matrix).sum(1).min() > 0


@pytest.mark.parametrize("name", ["skipgram", "cbow", "glove"])
def test_the_contexts_are_what_add_contexts_adds(name: str, text: EncodedCorpus) -> None:  # noqa: F811
    plain = run(learner(name).steps(text, Resources(1)))[0].vectors
    both = run(learner(name, add_contexts=True).steps(text, Resources(1)))[0].vectors
    np.testing.assert_allclose(both.matrix, plain.matrix + plain.contexts.matrix, atol=1e-7)
    np.testing.assert_array_equal(both.contexts.matrix, plain.contexts.matrix)


def test_fasttext_has_no_context_for_a_word_that_the_corpus_lacks(corpus: str) -> None:
    pytest.importorskip("gensim")
    given = {"method": "fasttext:epochs=1,buckets=300", "dim": 6, "min_count": 1, "threads": 1}
    trained = stillvec.train(corpus, **given, include_words=["zebra"], context_table=True)  # type: ignore[arg-type]
    assert trained.contexts is not None
    assert not trained.contexts["zebra"].any()
    assert trained["zebra"].any()
    assert trained.contexts.matrix.any(axis=1).mean() > 0.5


def test_the_vectors_are_the_same_bytes_with_and_without_the_table(corpus: str) -> None:
    assert main(["train", corpus, "--method", "glove:epochs=2", "--out", "plain", *SMALL]) == 0
    assert main(["train", corpus, "--method", "glove:epochs=2", "--context-table", "--out", "both", *SMALL]) == 0
    for file in ("vectors.safetensors", "vocabulary.tsv"):
        assert Path("plain", file).read_bytes() == Path("both", file).read_bytes()
    assert load("plain").contexts is None
    assert not Path("plain/model.safetensors").exists()
    assert "context_table" not in read_manifest("plain")["training"]
    assert read_manifest("both")["format"] == 1
    assert read_manifest("both")["context_table"] is True
    assert "model.safetensors" in verify_folder("both")
    contexts = load("both").contexts
    assert contexts is not None
    np.testing.assert_array_equal(contexts.matrix, read_model("both")["contexts"])


def test_natural_alpha_uses_the_table_of_its_vectors(corpus: str) -> None:
    assert main(["train", corpus, "--method", "glove:epochs=2", "--context-table", "--out", "v", *SMALL]) == 0
    step = "natural_alpha:alpha=-2,reference=counts,plus=true"
    assert main(["refine", "v", "--step", step, "--out", "refined"]) == 0
    contexts = load("v").contexts
    assert contexts is not None
    np.save("contexts.npy", contexts.matrix)
    plain = load("v").with_matrix(load("v").matrix)
    wanted = stillvec.refine(plain, f"{step},contexts=contexts.npy")
    np.testing.assert_array_equal(load("refined").matrix, wanted.matrix)
    assert not np.allclose(load("refined").matrix, stillvec.refine(plain, step).matrix)
    assert load("refined").contexts is None
    assert "context_table" not in read_manifest("refined")


def test_the_table_is_converted_as_vectors(corpus: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", corpus, "--method", "glove:epochs=2", "--context-table", "--out", "v", *SMALL]) == 0
    assert main(["convert", "v", "contexts.vec", "--contexts"]) == 0
    assert main(["convert", "v", "contexts", "--contexts"]) == 0
    contexts = load("v").contexts
    assert contexts is not None
    np.testing.assert_allclose(load("contexts.vec").matrix, contexts.matrix, rtol=1e-6)
    np.testing.assert_array_equal(load("contexts").matrix, contexts.matrix)
    assert load("contexts").contexts is None
    assert read_manifest("contexts")["table"] == "contexts"
    capsys.readouterr()
    assert "--context-table" in refused(capsys, main(["convert", "contexts", "other.vec", "--contexts"]))


@pytest.mark.parametrize("name", ["deps", "syngcn", "context_lstm"])
def test_a_method_without_contexts_is_refused_before_the_work(
    name: str, corpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stderr = refused(capsys, main(["train", corpus, "--method", name, "--context-table", "--out", "v", *SMALL]))
    assert name in stderr
    assert "glove" in stderr
    assert not Path("v").exists()


def test_vectors_keep_the_table_only_while_they_are_the_same(vectors: WordVectors, tmp_path: Path) -> None:
    def rows(changed: WordVectors) -> list[list[float]] | None:
        return None if changed.contexts is None else changed.contexts.matrix.tolist()

    assert rows(vectors.with_provenance({})) == TABLE.tolist()
    assert rows(pickle.loads(pickle.dumps(vectors))) == TABLE.tolist()
    assert rows(copy.deepcopy(vectors)) == TABLE.tolist()
    assert rows(vectors.subset(["fire", "ice"])) == TABLE[[2, 0]].tolist()
    assert rows(stillvec.refine(vectors, "subword:buckets=10")) == TABLE.tolist()
    assert rows(stillvec.convert(vectors, tmp_path / "v")) == TABLE.tolist()
    assert rows(load(tmp_path / "v")) == TABLE.tolist()
    assert rows(stillvec.refine(vectors, "center")) is None
    assert rows(vectors.with_matrix(TABLE)) is None


def test_another_table_is_another_request(vectors: WordVectors, tmp_path: Path) -> None:
    stillvec.refine(vectors, "natural_alpha", out=tmp_path / "v")
    other = vectors.with_matrix(vectors.matrix, contexts=2 * TABLE)
    with pytest.raises(UsageError) as caught:
        stillvec.refine(other, "natural_alpha", out=tmp_path / "v")
    assert caught.value.code == "exists"


def test_a_folder_with_another_model_has_no_table(tmp_path: Path) -> None:
    write_folder(WordVectors(["ice"], [[1, 2]]), tmp_path / "v", {}, model={"contexts": TABLE})
    assert load(tmp_path / "v").contexts is None


@pytest.mark.parametrize("change", ["no file", "no array", "other shape", "not finite"])
def test_a_damaged_table_is_reported_with_its_file(change: str, vectors: WordVectors, tmp_path: Path) -> None:
    save(vectors, tmp_path / "v")
    file = tmp_path / "v" / "model.safetensors"
    file.unlink()
    arrays = {"no array": {"x": TABLE}, "other shape": {"contexts": TABLE[:2]}}
    arrays["not finite"] = {"contexts": TABLE * np.nan}
    if change != "no file":
        write_tensors(file, arrays[change])
    with pytest.raises(FormatError) as caught:
        load(tmp_path / "v")
    assert "model.safetensors" in str(caught.value)


def test_a_table_of_another_shape_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        WordVectors(["ice", "snow", "fire"], -TABLE, contexts=TABLE[:, :1])
    assert "contexts" in str(caught.value)
