"""A teacher at a layer: states as of a plain forward pass, the same from the cache, controls by type, calls refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tiny_teachers import write_tiny_model
from transformers import AutoModel, AutoTokenizer

from stillvec import WordVectors, evaluate, save
from stillvec.cli import main
from stillvec.encoding.word_states import MarkedTexts
from stillvec.errors import UsageError
from stillvec.evaluation.compounds import Compounds
from stillvec.evaluation.probing import Probing, randomize
from stillvec.evaluation.teacher_states import TeacherStates, open_teachers, parse_teacher
from stillvec.files.user_cache import list_cache
from stillvec.heads.lookup import Lookup
from stillvec.heads.pooling import POOLINGS
from stillvec.heads.sequence_batches import UNKNOWN, Representation

SENTENCES = (
    ("The", "house", "stands", "by", "the", "sea", "."),
    ("He", "reads", "a", "good", "book"),
    ("Zebras", "do", "n't", "read", ",", "he", "says"),
    ("dog",),
)
KINDS = ("NOUN", "VERB", "ADJ")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STILLVEC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _open(text: str, folder: Path | None = None) -> TeacherStates:
    return open_teachers({"teacher": text}, folder, "cpu")["teacher"]


def _plain(folder: str, sentence: tuple[str, ...], layer: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """One sentence through transformers: the mean state of the tokens of each word (W, D), and [CLS] (D,)."""
    network, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    pieces = [tokenizer(word, add_special_tokens=False).input_ids for word in sentence]
    ids = [tokenizer.cls_token_id, *(piece for word in pieces for piece in word), tokenizer.sep_token_id]
    with torch.inference_mode():
        states = network(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states[layer][0].numpy()
    ends = 1 + np.cumsum([len(word) for word in pieces])
    rows = [states[end - len(word) : end].mean(0) for end, word in zip(ends, pieces, strict=True)]
    return np.stack(rows), states[0]


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_states_are_those_of_a_plain_forward_pass(model: str, layer: int) -> None:
    words = _open(f"teacher:{model}@{layer}").read_tokens(SENTENCES)
    firsts = _open(f"teacher:{model}@{layer}:cls").read_tokens(SENTENCES)
    start = 0
    for number, sentence in enumerate(SENTENCES):
        rows, first = _plain(model, sentence, layer)
        end = words.ends[number]
        np.testing.assert_allclose(words.table[words.ids[start:end]], rows, atol=4e-3)  # float16
        np.testing.assert_allclose(firsts.table[firsts.ids[start:end]], np.tile(first, (end - start, 1)), atol=4e-3)
        np.testing.assert_allclose(POOLINGS["mean"](words)[number], rows.mean(0), atol=4e-3)
        np.testing.assert_allclose(POOLINGS["mean"](firsts)[number], first, atol=4e-3)
        start = end
    assert words.lengths.tolist() == firsts.lengths.tolist() == [len(sentence) for sentence in SENTENCES]


def test_several_layers_are_their_mean(model: str) -> None:
    tables = {layer: _open(f"teacher:{model}@{layer}").read_tokens(SENTENCES).table for layer in ("0", "1", "2", "1-2")}
    both = (tables["1"].astype(np.float32) + tables["2"]) / 2
    np.testing.assert_allclose(tables["1-2"], both, atol=1e-6)
    for same, layers in (("last", "2"), ("-2", "1"), ("last2", "1-2")):
        np.testing.assert_array_equal(_open(f"teacher:{model}@{same}").read_tokens(SENTENCES).table, tables[layers])


def test_the_cache_gives_the_same_bytes_and_maps_them(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = _open(f"teacher:{model}@1").read_tokens(SENTENCES)
    first = _open(f"teacher:{model}@1", tmp_path).read_tokens(SENTENCES)
    monkeypatch.setattr("stillvec.encoding.word_states.encode_batch", None)  # the teacher does not read again
    second = _open(f"teacher:{model}@1", tmp_path).read_tokens(SENTENCES)
    for cached in (first, second):
        assert isinstance(cached.table.base, np.memmap) or isinstance(cached.table, np.memmap)
        assert cached.table.tobytes() == plain.table.tobytes()
        assert cached.ids.tolist() == plain.ids.tolist()
    with pytest.raises(TypeError):  # another text is another store
        _open(f"teacher:{model}@1", tmp_path).read_tokens(SENTENCES[1:])


def test_representations_of_one_teacher_read_a_text_once(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from stillvec.encoding import word_states

    n_batches: list[int] = []
    original = word_states.encode_batch
    monkeypatch.setattr(word_states, "encode_batch", lambda *args: n_batches.append(1) or original(*args))  # type: ignore[func-returns-value]
    names = {name: f"teacher:{model}@{name}" for name in ("0", "1", "1:cls", "1-2")}
    opened = open_teachers(names, None, "cpu")
    opened["0"].read_tokens(SENTENCES)
    before = len(n_batches)
    for states in opened.values():
        states.read_tokens(SENTENCES)
    assert len(n_batches) == before > 0


def test_a_long_text_keeps_its_order_over_blocks_and_windows(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    words = ["house", "dog", "sea", "sleeps", "zebra", "the"]
    sentences = [tuple(generator.choice(words, n)) for n in generator.integers(1, 90, 12)]  # windows have 64 tokens
    whole = _open(f"teacher:{model}@2").read_tokens(sentences)
    monkeypatch.setattr("stillvec.encoding.word_states._BLOCK", 5)
    blocks = _open(f"teacher:{model}@2").read_tokens(sentences)
    np.testing.assert_allclose(blocks.table[blocks.ids].astype(float), whole.table[whole.ids].astype(float), atol=4e-3)
    for number in (0, 7, 11):
        if len(sentences[number]) < 10:
            start = whole.ends[number] - len(sentences[number])
            rows, _ = _plain(model, sentences[number], 2)
            np.testing.assert_allclose(whole.table[whole.ids[start : whole.ends[number]]], rows, atol=4e-3)


def test_the_words_of_raw_texts_have_the_states_of_where_they_are(model: str) -> None:
    raw = _open(f"teacher:{model}@1").read_texts(["The house stands by the sea", "", "He reads a good book!"])
    tokens = _open(f"teacher:{model}@1").read_tokens([SENTENCES[0][:-1]])
    np.testing.assert_array_equal(raw.table[raw.ids[:6]], tokens.table[tokens.ids])
    assert raw.lengths.tolist() == [6, 0, 5]
    assert raw.types[0] == raw.types[4] != raw.types[1]  # The, the, house
    with_mark = _open(f"teacher:{model}@1").read_tokens([("He", "reads", "a", "good", "book", "!")])
    np.testing.assert_allclose(raw.table[raw.ids[6:]], with_mark.table[with_mark.ids[:5]], atol=4e-3)


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_the_vector_of_a_text_is_that_of_a_plain_forward_pass(model: str, layer: int) -> None:
    texts = ["the house stands by the sea", "dog", "", "he reads a good book " * 40]  # the last is longer than a window
    mean, first = (_open(f"teacher:{model}@{layer}{cls}").encode_texts(texts) for cls in ("", ":cls"))
    assert mean.dtype == np.float32
    network, tokenizer = AutoModel.from_pretrained(model).eval(), AutoTokenizer.from_pretrained(model)
    for at in (0, 1, 3):
        ids = tokenizer(texts[at], return_tensors="pt", truncation=True, max_length=64)
        with torch.inference_mode():
            states = network(**ids, output_hidden_states=True).hidden_states[layer][0].numpy()
        np.testing.assert_allclose(mean[at], states.mean(axis=0), atol=1e-5)
        np.testing.assert_allclose(first[at], states[0], atol=1e-5)
    assert not mean[2].any()
    assert not first[2].any()


def test_vectors_of_texts_are_cached_and_mapped(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["the house stands", "", "dog"]
    plain = _open(f"teacher:{model}@1-2").encode_texts(texts)
    opened = {name: f"teacher:{model}@{name}" for name in ("1", "2", "1-2", "2:cls")}
    layers = {name: states.encode_texts(texts) for name, states in open_teachers(opened, tmp_path, "cpu").items()}
    np.testing.assert_allclose((layers["1"] + layers["2"]) / 2, plain, atol=1e-6)
    assert len([*tmp_path.glob("texts/*.npy")]) == 4  # of each layer the mean and the first token, from one pass
    assert {entry.kind for entry in list_cache(tmp_path)} >= {"texts"}
    monkeypatch.setattr("stillvec.encoding.text_states._fill", None)  # the teacher does not read again
    again = _open(f"teacher:{model}@1", tmp_path).encode_texts(texts)
    assert isinstance(again, np.memmap)
    assert again.tobytes() == layers["1"].tobytes()
    with pytest.raises(TypeError):
        _open(f"teacher:{model}@1", tmp_path).encode_texts(texts[1:])
    for file in tmp_path.glob("texts/*.npy"):
        file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(TypeError):  # a damaged file is computed again
        _open(f"teacher:{model}@1", tmp_path).encode_texts(texts)


def test_the_vector_of_a_text_of_static_vectors_is_the_mean_of_its_known_words() -> None:
    static = Lookup(WordVectors(["the", "sea", "dog"], np.arange(9, dtype=np.float32).reshape(3, 3)))
    texts = ["The sea, the zebra", "zebra", ""]
    assert static.encode_texts(texts).tolist() == [[1, 2, 3], [0, 0, 0], [0, 0, 0]]
    assert static.count_words(texts).tolist() == [[3, 4], [0, 1], [0, 0]]


def test_a_teacher_knows_the_words_that_have_a_token(model: str) -> None:
    teacher = _open(f"teacher:{model}")
    texts = ["dog sea", "", "The zebra!"]
    np.testing.assert_array_equal(teacher.count_words(texts), teacher.read_texts(texts).known_of_all)


def test_words_are_marked_where_they_are() -> None:
    marked = MarkedTexts.from_tokens([["He", "reads"], [], ["Zebras", "do", "n't"]])
    assert marked.words == ["He", "reads", "Zebras", "do", "n't"]
    assert [*marked.texts] == ["He reads", "", "Zebras do n't"]
    assert MarkedTexts.from_texts(["He reads.", "(Zebras!)"]).words == ["He", "reads", "Zebras"]


def test_a_word_without_a_token_is_unknown(model: str) -> None:
    sequences = _open(f"teacher:{model}").read_tokens([["dog", "\u200d", "sea"], ["\ufe0f"]])
    assert (sequences.ids == UNKNOWN).tolist() == [False, True, False, True]
    assert sequences.known.tolist() == [2, 0]


def test_random_controls_have_one_vector_per_type(model: str) -> None:
    sequences = _open(f"teacher:{model}@1").read_tokens([["the", "sea", "The", "dog"], ["sea"]])
    assert len({*sequences.ids.tolist()}) == 5
    control = randomize(sequences)
    assert control.ids[0] == control.ids[2] != control.ids[3]
    assert control.ids[1] == control.ids[4]
    assert control.table.shape == (5, 16)
    vectors = WordVectors(["the", "sea", "dog"], np.ones((3, 16)))
    static: Representation = Lookup(vectors)
    np.testing.assert_array_equal(randomize(static.read_tokens([["the", "sea"]])).table[:2], control.table[:2])


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("teacher:minilm", ("minilm", "last", False, None)),
        ("teacher:minilm:prompt=STS", ("minilm", "last", False, "STS")),
        ("teacher:minilm@4", ("minilm", "4", False, None)),
        ("teacher:minilm:cls", ("minilm", "last", True, None)),
        ("teacher:minilm@-2:cls", ("minilm", "-2", True, None)),
        ("teacher:a@b/model@4-6", ("a@b/model", "4-6", False, None)),
    ],
)
def test_the_name_of_a_representation(text: str, parts: tuple[str, str, bool, str | None]) -> None:
    assert parse_teacher(text) == parts


def _treebank(folder: Path) -> Path:
    generator = np.random.default_rng(0)
    (folder / "tagging").mkdir()
    for part, n_sentences in {"train": 80, "dev": 20, "test": 40}.items():
        blocks = []
        for _ in range(n_sentences):
            kinds = generator.choice(KINDS, generator.integers(2, 9))
            words = [f"{kind.lower()}{generator.integers(0, 8)}" for kind in kinds]
            rows = zip(range(1, 99), words, kinds, strict=False)
            blocks.append("\n".join(f"{n}\t{w}\t{w}\t{k}\tX\t_\t{n - 1}\t{k.lower()}\t_\t_" for n, w, k in rows))
        (folder / "tagging" / f"toy.{part}.conllu").write_text("\n\n".join(blocks) + "\n", "utf-8")
    return folder


def test_teachers_and_vectors_are_evaluated_side_by_side(
    model: str, tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = _treebank(tmp_path)
    words = [f"{kind.lower()}{n}" for kind in KINDS for n in range(8)]
    save(WordVectors(words, np.random.default_rng(0).standard_normal((24, 16))), tmp_path / "static")
    call = ["evaluate", str(tmp_path / "static"), f"teacher:{model}@1", f"teacher:{model}:cls"]
    call += ["--data", str(data), "--tasks", "probing:pooling=mean,information:k=5", "--json", "-"]
    assert main(call) == 0
    first = json.loads(capsys.readouterr().out)
    assert [each["vectors"] for each in first] == ["static", "bert@1", "bert:cls"]
    scores = {each["vectors"]: {s["metric"]: s["value"] for s in each["scores"]} for each in first}
    assert scores["static"].keys() == scores["bert@1"].keys() >= {"all-mean", "all-mean-random", "upos-vectors"}
    assert scores["bert@1"]["all-length"] == scores["bert:cls"]["all-length"] == scores["static"]["all-length"]
    assert len([*cache.glob("*/store.json")]) == 2  # two layers of one text
    assert main([*call, "--report", str(tmp_path / "report.html")]) == 0
    assert json.loads(capsys.readouterr().out) == first
    assert "bert@1" in (tmp_path / "report.html").read_text("utf-8")


def test_labels_and_tags_are_learned_from_teachers_mixes_and_vectors_alike(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stillvec.heads.networks._LONGEST", 50)
    words = [f"{kind.lower()}{n}" for kind in KINDS for n in range(8)]
    static = WordVectors(words, np.random.default_rng(0).standard_normal((24, 16)))
    sources = {"static": static, "layer": f"teacher:{model}@1", "mix": f"teacher:{model}@mix"}
    report = evaluate(sources, _treebank(tmp_path), "labels:hidden=40,seeds=2,tagging:epochs=1,seeds=1", resamples=20)
    scores = {(score.vectors, score.metric): score.value for score in report.scores if score.words == "own"}
    for name in sources:
        assert scores[name, "upos-majority"] == scores["static", "upos-majority"]  # by type, not by occurrence
        assert 0 <= scores[name, "accuracy"] <= 1
    assert scores["static", "upos-probe"] > 0.95
    probe = next(each for each in report.label_probes if each.kind == "upos")
    assert probe.names == ("static", "layer", "mix", "random vectors", "majority label")
    assert np.isfinite(probe.matrix("same")[:3, :3]).all()
    assert {*probe.f1["mix"]} == {*KINDS}


def test_in_python_a_teacher_can_be_named(model: str, tmp_path: Path) -> None:
    report = evaluate({"mine": f"teacher:{model}@1"}, _treebank(tmp_path), "probing:pooling=mean", resamples=0)
    assert {score.vectors for score in report.scores} == {"mine"}


def test_the_probe_sees_the_context_of_a_word(model: str, tmp_path: Path) -> None:
    task = Probing(pooling="first")
    items = task.read(_treebank(tmp_path) / "tagging" / "toy.test.conllu")
    answers = task.answer(_open(f"teacher:{model}@2"), items)
    assert answers.covered.all()
    assert np.isfinite(answers.values["first"]).all()


@pytest.mark.parametrize(
    ("source", "tasks", "code", "important"),
    [
        ("teacher:{}@1", "similarity", "conflict", "labels,information"),
        ("teacher:{}@1", "probing,tagging:tuned=true", "conflict", "tuned"),
        ("teacher:{}@1", "probing,analogy", "conflict", "analogy"),
        ("teacher:{}@3", "probing", "unexpected-value", "@3"),
        ("teacher:{}@cls", "probing", "unexpected-value", "@cls"),
        ("teacher:", "probing", "unexpected-value", "teacher:NAME"),
    ],
)
def test_what_a_teacher_cannot_do_is_said_in_a_sentence(
    model: str, tmp_path: Path, source: str, tasks: str, code: str, important: str
) -> None:
    with pytest.raises(UsageError, match=important) as caught:
        evaluate(source.format(model), _treebank(tmp_path), tasks)
    assert caught.value.code == code


def test_cls_needs_a_token_before_the_text(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "gpt", "t5")
    with pytest.raises(UsageError, match="before a text"):
        _open(f"teacher:{tmp_path / 'gpt'}:cls").read_tokens(SENTENCES)


def _write_text_tasks(folder: Path) -> None:
    """A tiny dataset of each task that compares texts with their words."""
    texts = ["the house stands by the sea", "he reads a good book", "a dog reads", "the sea", "he says a dog stands"]
    files = {
        "trees/t.txt": "".join(f"(2 {''.join(f'(1 {word})' for word in text.split())})\n" for text in texts * 4),
        "specificity/s.tsv": "".join(f"{text}\t{len(text)}\n" for text in texts),
        "compounds/c.tsv": "good book\t3\nsea house\t2\ndog house\t1\n",
        "flips/f.tsv": "0\tthe dog reads\t1\tthe house reads\n1\ta house\t0\ta dog\n",
        "classification/f.train.txt": "".join(
            f"{n % 2} {'house' if n % 2 else 'dog'} {texts[n % 5]}\n" for n in range(20)
        ),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir()
        (folder / name).write_text(text, "utf-8")


def test_texts_and_their_words_are_compared_for_teachers_and_vectors(model: str, tmp_path: Path) -> None:
    _write_text_tasks(tmp_path)
    words = sorted({word for sentence in SENTENCES for word in sentence} | {"good book", "sea house", "dog house"})
    vectors = WordVectors(words, np.random.default_rng(0).normal(size=(len(words), 8)).astype(np.float32))
    tasks = ["composition:min_count=1", "flips", "specificity", "compounds:of=phrase"]
    report = evaluate({"v": vectors, "t": f"teacher:{model}"}, tmp_path, tasks, resamples=5)
    assert report.errors == ()
    own = {(score.vectors, score.task, score.metric): score for score in report.scores if score.words == "own"}
    for task, metric, n in (("composition", "tre", 20), ("flips", "pss", 2), ("specificity", "norm-sum", 5)):
        assert [own[name, task, metric].n_covered for name in ("v", "t")] == [n, n]
    assert ("v", "specificity", "information") in own
    assert ("t", "specificity", "information") not in own
    encoded = _open(f"teacher:{model}").encode_texts(["good", "book", "good book"]).astype(np.float64)
    first, second, whole = (row / np.linalg.norm(row) for row in encoded)
    task = Compounds(of="phrase")
    answers = task.answer(_open(f"teacher:{model}"), task.read(tmp_path / "compounds" / "c.tsv"))
    assert answers.values["spearman"][0] == pytest.approx((first + second) @ whole / np.linalg.norm(first + second))
