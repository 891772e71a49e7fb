"""stillvec train, as a user meets it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_baselines_contract import as_conllu
from tiny_corpus import refused, sentences

import stillvec
from stillvec.cli import main
from stillvec.corpus import Corpus
from stillvec.errors import UsageError
from stillvec.formats import load, read_manifest

SMALL = ("--dim", "6", "--min-count", "1", "--threads", "1")
QUICK = "glove:epochs=2"


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("\n".join(sentences(96)), "utf-8")
    (tmp_path / "parsed.conllu").write_text(as_conllu(sentences(96)), "utf-8")
    return "text.txt"


def test_several_methods_get_a_folder_each_with_how_they_were_made(
    corpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("gensim")
    assert main(["train", corpus, "--method", f"skipgram:epochs=2,{QUICK},cbow:epochs=1", "--out", "out", *SMALL]) == 0
    output = capsys.readouterr()
    assert "training (glove)" in output.err
    for name in ("skipgram", "glove", "cbow"):
        manifest = read_manifest(Path("out") / name)
        assert load(Path("out") / name).matrix.shape == (len(load("out/glove").words), 6)
        assert manifest["method"] == name
        assert manifest["settings"]["dim"] == 6
        assert manifest["corpus"]["words"] == manifest["trained"]["words"]
        assert manifest["training"]["threads"] == 1
        assert f"{Path('out') / name}: " in output.out
    assert read_manifest("out/skipgram")["notes"]["made_by"].startswith("gensim ")
    assert read_manifest("out/skipgram")["settings"]["epochs"] == 2


def test_the_words_are_those_that_distill_takes(corpus: str, model: str) -> None:
    words = ["--min-count", "10", "--max-words", "30", "--quiet"]
    assert main(["distill", corpus, "--teacher", model, "--method", "aggregate", "--out", "a", *words]) == 0
    assert main(["train", corpus, "--method", QUICK, "--dim", "6", "--out", "b", *words]) == 0
    assert load("a").words == load("b").words
    assert np.array_equal(load("a").vocabulary.counts, load("b").vocabulary.counts)
    assert read_manifest("a")["corpus"] == read_manifest("b")["corpus"]


def test_words_never_seen_have_a_vector_on_request(corpus: str, model: str) -> None:
    words = ["--min-count", "1", "--oov", "subword", "--quiet"]
    assert main(["train", corpus, "--method", QUICK, "--dim", "6", "--out", "a", *words]) == 0
    assert main(["distill", corpus, "--teacher", model, "--method", "aggregate", "--out", "b", *words]) == 0
    for name in ("a", "b"):
        assert main(["refine", name, "--oov", "subword", "--out", f"{name}-later"]) == 0
        at_once, later = load(name), load(f"{name}-later")
        assert "houselings" not in at_once
        np.testing.assert_allclose(at_once["houselings"], later["houselings"], rtol=1e-5, atol=1e-6)
        assert [step["step"] for step in read_manifest(name)["refined"]] == ["subword"]


def test_python_gives_what_the_command_line_gives(corpus: str) -> None:
    assert main(["train", corpus, "--method", QUICK, "--out", "out", *SMALL, "--seed", "3", "--quiet"]) == 0
    steps: list[str] = []
    given: dict[str, Any] = {"method": QUICK, "dim": 6, "min_count": 1, "threads": 1, "seed": 3}
    made = stillvec.train(corpus, **given, progress=lambda step: steps.append(step.stage))
    assert np.array_equal(load("out").matrix, made.matrix)
    assert steps[0] == "counting words"
    assert steps[-2:] == ["training", "finished"]
    texts = stillvec.train(Corpus.from_texts(["\n".join(sentences(96))]), **given)
    assert np.array_equal(texts.matrix, made.matrix)
    both = {**given, "method": f"{QUICK},sent2vec:epochs=1"}
    assert [*stillvec.train_all([corpus], **both)] == ["glove", "sent2vec"]
    with pytest.raises(UsageError) as refused:
        stillvec.train(corpus, **both)
    assert refused.value.code == "several-methods"


def test_an_included_word_that_the_corpus_lacks_is_left_out_with_a_warning(
    corpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("keep.txt").write_text("zebra\nold bread\n", "utf-8")
    assert (
        main(["train", corpus, "--method", QUICK, "--include-words", "keep.txt", "--out", "out", *SMALL, "--quiet"])
        == 0
    )
    stderr = capsys.readouterr().err
    assert "One word has no vector of glove" in stderr
    assert "'zebra'" in stderr
    assert "old bread" in load("out")
    assert "zebra" not in load("out")


def test_deps_reads_conllu(corpus: str) -> None:
    assert (
        main(["train", "parsed.conllu", "--method", "deps:min_context_count=1", "--out", "out", *SMALL, "--quiet"]) == 0
    )
    assert load("out").matrix.shape[1] == 6
    assert read_manifest("out")["notes"]["pairs"] > 100


class Token(SimpleNamespace):
    """As much of spaCy's as is looked at."""


class FakePipeline:
    """Parses as `as_conllu` does: each word depends on the one before it."""

    pipe_names = ("parser",)

    def __init__(self, relation: str = "dep") -> None:
        self.relation, self.read = relation, 0
        self.meta = {"lang": "xx", "name": "fake", "version": "1.0"}

    def to_bytes(self, exclude: Any) -> bytes:
        return self.relation.encode()

    def pipe(self, texts: Any) -> Iterator[Any]:
        for text in texts:
            self.read += 1
            tokens: list[Token] = []
            for number, word in enumerate(text.rstrip(".").split()):
                head = tokens[-1] if tokens else None
                tokens.append(Token(i=number, text=word, is_space=False, dep_=self.relation if head else "root"))
                tokens[-1].head = head or tokens[-1]
            yield SimpleNamespace(sents=[tokens])


@pytest.fixture
def spacy(monkeypatch: pytest.MonkeyPatch) -> dict[str, FakePipeline]:
    """Pipelines by name, in the place of spaCy."""
    pipelines = {"tiny": FakePipeline(), "other": FakePipeline("obj")}

    def load(name: str, exclude: Any) -> FakePipeline:
        if name not in pipelines:
            raise OSError(f"[E053] Could not read {name}.\nMore.")
        return pipelines[name]

    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=load, __spec__=SimpleNamespace(name="spacy")))
    return pipelines


def test_a_spacy_pipeline_makes_the_parses(
    corpus: str, spacy: dict[str, FakePipeline], capsys: pytest.CaptureFixture[str]
) -> None:
    method = ["--method", "deps:min_context_count=1"]
    assert main(["train", corpus, *method, "--parse", "tiny", "--out", "a", *SMALL]) == 0
    assert "training (deps)" in capsys.readouterr().err
    assert main(["train", "parsed.conllu", *method, "--out", "b", *SMALL, "--quiet"]) == 0
    assert np.array_equal(load("a").matrix, load("b").matrix)
    assert read_manifest("a")["parser"]["name"] == "xx_fake"


def test_a_text_is_parsed_once_by_each_pipeline(corpus: str, spacy: dict[str, FakePipeline]) -> None:
    both = ["--method", "deps:min_context_count=1,syngcn:epochs=1", "--context-cache", "kept", "--quiet", *SMALL]
    assert main(["train", corpus, *both, "--parse", "tiny", "--out", "a"]) == 0
    assert main(["train", corpus, *both, "--parse", "tiny", "--out", "b"]) == 0
    assert spacy["tiny"].read == 96
    assert np.array_equal(load("a/syngcn").matrix, load("b/syngcn").matrix)
    assert main(["train", corpus, *both, "--parse", "other", "--out", "c"]) == 0
    assert spacy["other"].read == 96
    assert len([*Path("kept").glob("parses-*.conllu")]) == 2


def test_a_pipeline_of_spacys_own_parses_from_its_folder(corpus: str) -> None:
    spacy = pytest.importorskip("spacy")
    pipeline = spacy.blank("en")
    pipeline.add_pipe("parser", config={"min_action_freq": 1})
    documents = [pipeline.make_doc(sentence) for sentence in sentences(6)]
    trees = [{"heads": [0, *range(len(each) - 1)], "deps": ["ROOT"] + ["dep"] * (len(each) - 1)} for each in documents]
    examples = [spacy.training.Example.from_dict(each, tree) for each, tree in zip(documents, trees, strict=True)]
    optimizer = pipeline.initialize(lambda: examples)
    for _ in range(5):
        pipeline.update(examples, sgd=optimizer)
    pipeline.to_disk("pipeline")
    method = ["--method", "deps:min_context_count=1", "--context-cache", "kept", *SMALL, "--quiet"]
    assert main(["train", corpus, *method, "--parse", "pipeline", "--out", "out"]) == 0
    assert main(["train", corpus, *method, "--parse", "pipeline", "--out", "again"]) == 0
    (kept,) = Path("kept").glob("parses-*.conllu")  # the digest of a pipeline is the same whenever it is loaded
    forms = [form for parse in Corpus(kept).parses() for form in parse.forms]
    assert forms == [token.text for sentence in Corpus(corpus).sentences() for token in pipeline.make_doc(sentence)]


@pytest.mark.parametrize(
    ("name", "expected"), [("nowhere", "download nowhere"), ("text.txt", "[E053]"), ("no/where", "no/where")]
)
def test_a_pipeline_that_cannot_be_loaded_is_reported(
    name: str, expected: str, corpus: str, spacy: dict[str, FakePipeline], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", corpus, "--method", "deps", "--parse", name, "--out", "out"]) in (1, 2)
    said = capsys.readouterr().err
    assert expected in said
    assert "\nMore" not in said


REFUSED = {
    "unknown method": (["text.txt", "--method", "skipgam"], "did you mean 'skipgram'"),
    "unknown setting": (["text.txt", "--method", "glove:epoch=1"], "did you mean 'epochs'"),
    "unknown preset": (["text.txt", "--method", "glove:settings=nobody-1999"], "pennington-2014"),
    "a setting that is no number": (["text.txt", "--method", "glove:epochs=many"], "'many'"),
    "no corpus there": (["nowhere.txt"], "nowhere.txt"),
    "an empty corpus": (["empty.txt"], "empty.txt"),
    "only signs": (["signs.txt"], "no words"),
    "too few words": (["text.txt", "--min-count", "9999"], "lower --min-count"),
    "one word a sentence": (["short.txt", "--min-count", "1", "--method", "glove"], "two known words"),
    "no parses": (["text.txt", "--method", "deps"], "CoNLL-U"),
    "nothing to parse": (["text.txt", "--method", "glove", "--parse", "x"], "parser"),
    "a broken parse": (["broken.conllu", "--method", "deps", "--min-count", "1"], "broken.conllu:2"),
    "no context often enough": (["parsed.conllu", "--method", "deps:min_context_count=9999"], "min_context_count="),
    "no threads": (["text.txt", "--threads", "0"], "threads"),
    "out is a file": (["text.txt", "--out", "empty.txt"], "empty.txt"),
}


@pytest.mark.parametrize("case", [*REFUSED])
def test_what_cannot_be_trained_is_reported_in_one_line(
    case: str, corpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("empty.txt").write_text("", "utf-8")
    Path("signs.txt").write_text("... !!! ---\n", "utf-8")
    Path("short.txt").write_text("Yes!\nNo!\nYes!\n", "utf-8")
    Path("broken.conllu").write_text(as_conllu(["A dog barks."]).replace("\t1\tdep", "\t7\tdep", 1), "utf-8")
    words, named = REFUSED[case]
    before = {path.name for path in Path().iterdir()}
    stderr = refused(capsys, main(["train", "--out", "out", "--quiet", *words]))
    assert named in stderr
    assert {path.name for path in Path().iterdir()} - {"cache"} == before - {"cache"}


def test_only_ngrams_answer_for_words_never_seen(corpus: str, capsys: pytest.CaptureFixture[str]) -> None:
    stderr = refused(capsys, main(["train", corpus, "--oov", "guess", "--out", "out"]))
    assert "subword" in stderr
    assert not Path("out").exists()


def test_without_a_corpus_there_is_nothing_to_train() -> None:
    with pytest.raises(UsageError, match="corpus"):
        stillvec.train(method="glove")


def test_resume_is_for_methods_with_checkpoints_and_the_others_say_so(
    corpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("gensim")
    method = f"skipgram:epochs=1,{QUICK}"
    assert main(["train", corpus, "--method", method, "--out", "out", *SMALL, "--resume", "--quiet"]) == 0
    note = capsys.readouterr().err
    assert note.startswith("Note: skipgram")
    assert "gensim" in note
    assert note.count("\n") == 1


def test_a_stopped_training_continues_and_leaves_no_checkpoint(
    corpus: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("stillvec.training.checkpoint._EVERY", 0.0)
    call = ["train", corpus, "--method", "sent2vec:epochs=4", *SMALL, "--quiet", "--context-cache", "kept"]
    assert main([*call, "--out", "whole"]) == 0
    from stillvec.baselines.sent2vec import Sent2vecModel

    learn, calls = Sent2vecModel.train_job, []

    def stopping(self: Any, job: Any) -> Any:
        calls.append(job.seed[1])
        if job.seed[1] == 2:
            raise KeyboardInterrupt
        return learn(self, job)

    with monkeypatch.context() as patched:
        patched.setattr(Sent2vecModel, "train_job", stopping)
        assert main([*call, "--out", "half"]) == 130
    assert not Path("half").exists()
    (checkpoint,) = Path("kept").glob("training-*")
    message = capsys.readouterr().err
    assert "--resume" in message
    assert str(checkpoint) in message
    assert main([*call, "--out", "half", "--resume"]) == 0
    assert np.array_equal(load("whole").matrix, load("half").matrix)
    assert [*Path("kept").glob("training-*")] == []
    assert json.loads(Path("half/manifest.json").read_text("utf-8"))["seed"] == 0
