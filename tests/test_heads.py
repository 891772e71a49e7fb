"""Heads: what they learn, that NumPy predicts what torch trained, their folder, and options at zero."""

from __future__ import annotations

import dataclasses
import io
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

import stillvec
from stillvec.cli import main
from stillvec.errors import DatasetError, FormatError, StillvecWarning, TrainingError, UsageError
from stillvec.heads import HEADS, numpy_layers
from stillvec.heads.crf import best_paths
from stillvec.heads.fitted_head import Head
from stillvec.heads.head_folder import load_head
from stillvec.heads.labelled_data import read_data
from stillvec.heads.numpy_layers import find_best_paths, find_tag_chances, run_both_ways
from stillvec.heads.sequence_batches import Sequences
from stillvec.heads.training_options import OPTIONS
from stillvec.vectors import WordVectors
from stillvec.verbs.fitting import fit

COLD, WARM = ("ice", "snow", "frost", "hail"), ("fire", "heat", "sun", "steam")
PLAIN = ("the", "a", "was", "seen", "here", "again")
QUICK = {
    "linear": "linear",
    "cnn": "cnn:epochs=20,rate=0.01",
    "attention": "attention:epochs=20,rate=0.02",
    "knn": "knn:k=3",
}


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    words = (*COLD, *WARM, *PLAIN)
    matrix = np.random.default_rng(0).standard_normal((len(words), 8)).astype(np.float32) * 0.4
    matrix[: len(COLD), 0] += 3
    matrix[len(COLD) : len(COLD) + len(WARM), 0] -= 3
    return WordVectors(words, matrix)


def sentences(n: int = 120, seed: int = 1) -> list[tuple[str, str]]:
    random = np.random.default_rng(seed)
    pairs = []
    for number in range(n):
        label, words = ("cold", COLD) if number % 2 else ("warm", WARM)
        drawn = [*random.choice(PLAIN, 3), *random.choice(words, 1), *random.choice(PLAIN, int(random.integers(0, 4)))]
        pairs.append((" ".join(drawn), label))
    return pairs


def tagged(n: int = 160) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    tags = dict.fromkeys(COLD, "B-COLD") | dict.fromkeys(WARM, "B-WARM")
    words = [tuple(text.split()) for text, _ in sentences(n)]
    return [(sentence, tuple(tags.get(word, "O") for word in sentence)) for sentence in words]


@pytest.mark.parametrize("name", QUICK)
def test_a_head_learns_and_its_folder_predicts_the_same(name: str, vectors: WordVectors, tmp_path: Path) -> None:
    head = fit(vectors, sentences(), QUICK[name], out=tmp_path / "head")
    texts, gold = zip(*sentences(40, seed=2), strict=True)
    assert np.mean([ours == theirs for ours, theirs in zip(head.predict(texts), gold, strict=True)]) > 0.9
    loaded = stillvec.load_head(tmp_path / "head")
    np.testing.assert_array_equal(loaded.predict_proba(texts), head.predict_proba(texts))
    np.testing.assert_allclose(head.predict_proba(texts).sum(axis=1), 1, atol=1e-5)
    assert loaded.labels == ("cold", "warm")
    assert main(["info", str(tmp_path / "head"), "--verify"]) == 0
    assert len(head.predict(["", "unknown words only"])) == 2


NETWORKS = [
    "linear:tuned=true",
    "linear:hidden=5",
    "linear:objective=coco",
    "cnn",
    "cnn:objective=arcface",
    "attention",
    "attention:form=dot",
]


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("options", [(), ("concat", "residual")])
def test_numpy_predicts_what_torch_trained(
    name: str, options: tuple[str, ...], vectors: WordVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stillvec.heads import head_training

    if options and not name.startswith("attention"):
        pytest.skip("options of attention")
    groups: list[Any] = []
    measure = head_training._measure_labels
    monkeypatch.setattr(
        head_training, "_measure_labels", lambda group, lesson: groups.append(group) or measure(group, lesson)
    )
    spec = f"{name}{',' if ':' in name else ':'}epochs=2"
    head = fit(vectors, sentences(), spec, options, packing="none")
    (group,) = groups
    data = read_data(sentences(), "text")
    rows = np.arange(len(data.items))
    expected = group.predict_scores(rows)[0]
    tolerance = 5e-3 if "tuned" in name else 1e-4  # trained vectors are stored in 16 bits
    np.testing.assert_allclose(head.score([*data.items]), expected, atol=tolerance)


@pytest.mark.parametrize("options", [(), ("experts:size=6",), ("auxiliary",), ("experts:size=6", "auxiliary")])
def test_a_tagger_learns_and_numpy_tags_as_torch(
    options: tuple[str, ...], vectors: WordVectors, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from stillvec.heads import networks

    groups: list[Any] = []
    monkeypatch.setattr(networks, "_UNITS", 16)
    build = networks.TaggerNetworks.__init__
    monkeypatch.setattr(
        networks.TaggerNetworks, "__init__", lambda self, *a, **k: (groups.append(self), build(self, *a, **k))[1]
    )
    head = fit(vectors, tagged(), "tagger:epochs=12,rate=0.03,patience=20", options, out=tmp_path / "t", packing="none")
    said = head.predict([words for words, _ in tagged()])
    expected = groups[0].predict_words(np.arange(160))[0]
    assert [head.labels[number] for number in expected] == [tag for tags in said for tag in tags]
    right = [
        ours == theirs
        for tags, (_, gold) in zip(said, tagged(), strict=True)
        for ours, theirs in zip(tags, gold, strict=True)
    ]
    assert np.mean(right) > 0.95
    assert stillvec.load_head(tmp_path / "t").predict(["a was here snow again"]) == [["O", "O", "O", "B-COLD", "O"]]
    why = head.explain(["a was here snow again", ["the", "was", "fire"]])
    assert (why[0].tags, why[0].spans[3], why[1].spans) == (("O", "O", "O", "B-COLD", "O"), (11, 15), ())
    assert all(0 < chance <= 1 + 1e-6 for each in why for chance in each.weights)
    assert min(why[0].weights) > 0.5
    if "experts:size=6" in options:
        (why,) = head.explain(["the snow"])
        assert [name for name, _ in why.experts] == ["COLD", "O", "WARM"]
        assert dict(why.experts)["COLD"][1] > 0.5
        np.testing.assert_allclose(np.sum([weights for _, weights in why.experts], axis=0), 1, atol=1e-5)


@pytest.mark.parametrize(
    "spec", ["cnn:tuned=true", "attention:tuned=true", "tagger:tuned=true", "primitives:tuned=true"]
)
def test_the_vector_of_unknown_words_that_was_trained_is_used(spec: str, vectors: WordVectors, tmp_path: Path) -> None:
    """Else the head reads something else than what its development score is of."""
    name = spec.partition(":")[0]
    data: list[Any] = [(f"unknown{number} house", ("cold", "warm")[number % 2]) for number in range(40)]
    if name in ("tagger", "primitives"):
        data = [(text.split(), [label, "O"]) for text, label in data]
    head = fit(vectors, data, f"{spec},epochs=2", out=tmp_path / "head", device="cpu")
    loaded = stillvec.load_head(tmp_path / "head")
    assert np.abs(head.arrays["unknown"]).max() > 0
    for each in (head, loaded):
        np.testing.assert_array_equal(each._lookup.read_texts(["nothing known"]).table[1], head.arrays["unknown"])


ZEROS = {name: [f"{name}:{zero}=0" for zero in OPTIONS[name].zeros] for name in OPTIONS}
ZEROS |= {name: [f"{name}:on=false"] for name in ("concat", "residual")}
ZEROS |= {"teacher": ["teacher:model=none,weight=0"]}
ZEROS["adversarial"] += ["adversarial:alpha=0,label=0"]


@pytest.mark.parametrize("option", [*OPTIONS])
def test_an_option_at_zero_gives_the_bytes_of_the_plain_head(option: str, vectors: WordVectors) -> None:
    for head in OPTIONS[option].heads:
        data: list[Any] = tagged(20) if head == "tagger" else sentences(40)
        if head == "pair":
            data = [((text, "the snow"), label) for text, label in data]
        spec = f"{head}:epochs=1" + (",hidden=4" if head in ("linear", "pair") else "")
        plain, *others = (fit(vectors, data, spec, options) for options in ((), *((zero,) for zero in ZEROS[option])))
        for zero in others:
            assert {name: array.tobytes() for name, array in zero.arrays.items()} == {
                name: array.tobytes() for name, array in plain.arrays.items()
            }
    with pytest.raises(UsageError, match="is for"):
        fit(vectors, sentences(40), "knn", ZEROS[option][:1])


@pytest.mark.parametrize("option", ["adversarial", "tying", "masking", "concat", "residual"])
def test_an_option_changes_what_is_learnt(option: str, vectors: WordVectors) -> None:
    plain, other = (fit(vectors, sentences(40), "attention:epochs=1", options) for options in ((), (option,)))
    assert not np.array_equal(plain.arrays["recur"], other.arrays["recur"])


@pytest.mark.parametrize("option", ["auxiliary", "experts:size=6"])
def test_an_option_changes_what_a_tagger_learns(option: str, vectors: WordVectors) -> None:
    plain, other = (fit(vectors, tagged(40), "tagger:epochs=1", options) for options in ((), (option,)))
    assert not np.array_equal(plain.arrays["recur"], other.arrays["recur"])


def test_several_labels_of_a_text(vectors: WordVectors, tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    lines = []
    for _ in range(80):
        chosen = [random.random() < 0.5, random.random() < 0.5]
        labels = [name for name, has in zip(("cold", "warm"), chosen, strict=True) if has] or ["none"]
        words = [str(random.choice(side)) for side, has in zip((COLD, WARM), chosen, strict=True) if has]
        lines.append(f"{','.join(labels)} the {' '.join(words)} here")
    (tmp_path / "multilabel").mkdir()
    (tmp_path / "multilabel" / "x.txt").write_text("\n".join(lines) + "\n")
    for head in ("linear", "cnn:epochs=12,rate=0.02"):
        fitted = fit(vectors, tmp_path / "multilabel" / "x.txt", head)
        assert fitted.multilabel
        assert fitted.predict(["the ice fire here", "the hail here"]) == [("cold", "warm"), ("cold",)]


def test_linear_is_the_regression_that_evaluate_fits(vectors: WordVectors) -> None:
    from stillvec.heads.linear_probe import PENALTIES, Scaling, logistic

    data = read_data(sentences(), "text")
    head = fit(vectors, sentences(), "linear", packing="none")
    x, y = vectors.encode([*data.items]), data.targets().argmax(axis=1)
    scaling = Scaling.of(x)
    fitted = [logistic(scaling(x), np.eye(2)[y], penalty) for penalty in PENALTIES]
    scores = [scaling(x) @ weights[:-1] + weights[-1] for weights in fitted]
    assert sum(np.allclose(head.score([*data.items]), each, atol=0.02) for each in scores) == 1


@pytest.mark.parametrize("settings", ["k=1", "k=5", "k=5,balanced=true", "k=5,center=false", "k=200"])
def test_the_votes_of_knn_are_those_of_a_loop(settings: str) -> None:
    random = np.random.default_rng(0)
    words = [f"w{number}" for number in range(40)]
    vectors = WordVectors(words, random.standard_normal((40, 6)).astype(np.float32) + 0.5)
    texts = [" ".join(random.choice(words, int(random.integers(2, 6)), replace=False)) for _ in range(100)]
    labels = random.choice(["a", "b", "c"], 100, p=[0.6, 0.3, 0.1]).tolist()
    asked = [f"unknown {text} w0" for text in texts[:30]]
    given = dict(pair.split("=") for pair in settings.split(","))
    k, is_balanced, is_centred = int(given["k"]), "balanced" in given, "center" not in given

    def average(text: str) -> np.ndarray[Any, Any]:
        return np.mean([vectors[word] for word in text.split() if word in vectors], axis=0)

    known = [average(text) for text in texts]
    mean = np.mean(known, axis=0) if is_centred else np.zeros(6)
    expected = []
    for text in asked:
        x = average(text) - mean
        found = []
        for example, label in zip(known, labels, strict=True):
            y = example - mean
            found.append((-(x @ y) / (np.linalg.norm(x) * np.linalg.norm(y)), label))
        votes = {"a": 0.0, "b": 0.0, "c": 0.0}
        for _, label in sorted(found)[:k]:
            votes[label] += 1 / labels.count(label) if is_balanced else 1
        expected.append([votes[label] / sum(votes.values()) for label in "abc"])
    head = fit(vectors, zip(texts, labels, strict=True), f"knn:{settings}", packing="none")
    np.testing.assert_allclose(np.exp(head.score(asked)), expected, atol=1e-5)


def test_explanations_of_linear_and_cnn_sum_to_the_score(vectors: WordVectors) -> None:
    texts = ["the ice was here", "a fire again seen here"]
    for name in ("linear", "cnn:epochs=2"):
        head = fit(vectors, sentences(), name)
        scores = head.score(texts)
        for row, why in zip(scores, head.explain(texts), strict=True):
            place = head.labels.index(why.label)
            assert sum(why.weights) + head.arrays["bias"][place] == pytest.approx(float(row[place]), abs=1e-4)
        assert why.words[1] == "fire"
    near = fit(vectors, sentences(), "knn").explain(["the ice was here"])[0]
    assert near.label == "cold"
    assert near.examples[0][2] <= 1 + 1e-6


def test_a_csv_of_the_user_and_its_errors(vectors: WordVectors, tmp_path: Path) -> None:
    rows = [f'"{text}",{label}' for text, label in sentences(40)]
    file = tmp_path / "my.csv"
    file.write_text("text,label\n" + "\n".join(rows) + "\n")
    assert fit(vectors, file).predict(["snow"]) == ["cold"]
    file.write_text("body,kind\n" + "\n".join(rows) + "\n")
    assert fit(vectors, file, text_field="body", label_field="kind").labels == ("cold", "warm")
    with pytest.raises(DatasetError) as caught:
        fit(vectors, file)
    assert (caught.value.path, caught.value.line) == (str(file), 1)
    file.write_text("text,label\n" + "\n".join([*rows[:3], "a,b,c"]) + "\n")
    with pytest.raises(DatasetError) as caught:
        fit(vectors, file)
    assert caught.value.line == 5
    with pytest.raises(DatasetError):
        fit(vectors, tmp_path / "none")
    with pytest.raises(DatasetError):
        fit(vectors, [("ice", "cold")] * 20)


@pytest.mark.parametrize(
    ("lines", "cure"),
    [(["snow\tN", "falls\tV", ""], "--head tagger"), (["same\tthe snow\tthe ice", "other\tsnow\tfire"], "--head pair")],
)
def test_tagged_words_and_pairs_are_not_read_as_texts(
    lines: list[str], cure: str, vectors: WordVectors, tmp_path: Path
) -> None:
    """Each word would be a label of its own, and the training very long."""
    file = tmp_path / "data.tsv"
    file.write_text("\n".join(lines * 20) + "\n", "utf-8")
    with pytest.raises(DatasetError, match=cure):
        fit(vectors, file)
    file.write_text("cold\tthe snow\nwarm\tfire\n" * 20, "utf-8")  # a label, a tab and a text
    assert fit(vectors, file).predict(["snow"]) == ["cold"]
    file.write_text("cold the snow\n\nwarm fire\n\n" * 20, "utf-8")
    assert fit(vectors, file).predict(["snow"]) == ["cold"]


@pytest.mark.parametrize(
    "lines", [["0 how did it caf\xe9 ?", "1 what is"], ["cold\tthe snow", "warm\tfire"], ["text,label", "a b,c"]]
)
def test_texts_are_not_read_as_tagged_words(lines: list[str], vectors: WordVectors, tmp_path: Path) -> None:
    """Also if they are not UTF-8: the form is what is wrong."""
    file = tmp_path / "data.txt"
    file.write_text("\n".join(lines * 20) + "\n", "latin-1")
    with pytest.raises(DatasetError, match="--head cnn") as caught:
        fit(vectors, file, "tagger:epochs=1")
    assert (caught.value.path, caught.value.line) == (str(file), 1)
    file.write_text("the O\nsnow B-COLD\n\nfire B-WARM x\n\n" * 20, "utf-8")
    assert fit(vectors, file, "tagger:epochs=1").labels == ("B-COLD", "O", "x")


def test_the_parts_of_a_dataset_are_found_and_the_test_part_is_never_learnt(
    vectors: WordVectors, tmp_path: Path
) -> None:
    (tmp_path / "d.train.txt").write_text("".join(f"{label} {text}\n" for text, label in sentences(40)))
    (tmp_path / "d.test.txt").write_text(
        "".join(f"{label} {text}\n" for text, label in sentences(10, seed=4)) + "odd ice\n"
    )
    head = fit(vectors, tmp_path / "d")
    assert head.labels == ("cold", "warm")
    assert head.manifest["data"]["test"] == 11
    assert 0.7 < head.manifest["scores"]["test"]["accuracy"] < 1


def test_training_continues_from_a_checkpoint_with_the_same_bytes(
    vectors: WordVectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stillvec.training import checkpoint

    monkeypatch.setattr(checkpoint, "_EVERY", 0.0)
    whole = fit(vectors, sentences(40), "cnn:epochs=4,patience=9")
    write, out = checkpoint.Checkpoint.write, tmp_path / "head"

    def interrupt(self: Any, model: Any, done: int) -> None:
        write(self, model, done)
        if done == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint.Checkpoint, "write", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fit(vectors, sentences(40), "cnn:epochs=4,patience=9", out=out)
    assert not out.exists()
    with pytest.warns(StillvecWarning, match="other data"), pytest.raises(KeyboardInterrupt):
        fit(vectors, sentences(44), "cnn:epochs=4,patience=9", out=out, resume=True)
    monkeypatch.setattr(checkpoint.Checkpoint, "write", write)
    again = fit(vectors, sentences(40), "cnn:epochs=4,patience=9", out=out, resume=True)
    assert all(whole.arrays[name].tobytes() == array.tobytes() for name, array in again.arrays.items())
    assert {path.name for path in tmp_path.iterdir()} == {"head"}


def test_a_training_that_diverges_says_so(vectors: WordVectors) -> None:
    with pytest.raises(TrainingError) as caught:
        fit(vectors, sentences(40), "cnn:rate=1e30")
    assert caught.value.code == "diverged"


def test_a_finished_head_is_not_made_again_and_another_not_replaced(vectors: WordVectors, tmp_path: Path) -> None:
    out = tmp_path / "head"
    fit(vectors, sentences(40), "knn", out=out)
    before = (out / "manifest.json").stat().st_mtime_ns
    with pytest.warns(stillvec.errors.AlreadyFinished):
        fit(vectors, sentences(40), "knn", out=out)
    assert (out / "manifest.json").stat().st_mtime_ns == before
    with pytest.raises(UsageError) as caught:
        fit(vectors, sentences(40), "linear", out=out)
    assert caught.value.code == "exists"
    assert fit(vectors, sentences(40), "linear", out=out, force=True).name == "linear"


def test_a_damaged_head_is_one_error(vectors: WordVectors, tmp_path: Path) -> None:
    out = tmp_path / "head"
    fit(vectors, sentences(40), "knn", out=out)
    with pytest.raises(FormatError) as caught:
        stillvec.load(out)
    assert caught.value.code == "head"
    with pytest.raises(FormatError):
        load_head(out / "vectors")
    manifest = json.loads((out / "manifest.json").read_text())
    for change in ({"head_format": 9}, {"head": "linear", "settings": {}}, {"labels": 3}, {"settings": {"k": "x"}}):
        (out / "manifest.json").write_text(json.dumps(manifest | change))
        with pytest.raises(FormatError):
            load_head(out)


@pytest.mark.parametrize(("name", "value"), [("n_labels", 503_316_480), ("examples", float("nan"))])
def test_arrays_with_impossible_numbers_are_refused(
    name: str, value: float, vectors: WordVectors, tmp_path: Path
) -> None:
    fit(vectors, sentences(40), "knn", out=tmp_path / "head")
    file = tmp_path / "head/head.safetensors"
    arrays = load_file(file)
    arrays[name] = np.full_like(arrays[name], value)
    save_file(arrays, file)
    with pytest.raises(FormatError) as caught:
        load_head(tmp_path / "head")
    assert (caught.value.code, caught.value.path) == ("damaged", str(file))


def test_the_command_line(vectors: WordVectors, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stillvec.save(vectors, tmp_path / "v")
    (tmp_path / "d.txt").write_text("".join(f"{label} {text}\n" for text, label in sentences(40)))
    out = str(tmp_path / "head")
    assert main(["fit", str(tmp_path / "v"), "--on", str(tmp_path / "d.txt"), "--out", out, "--quiet"]) == 0
    assert "accuracy" in capsys.readouterr().out
    assert main(["predict", out, "the snow", "a fire", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["label"] for line in lines] == ["cold", "warm"]
    assert lines[0]["probabilities"]["cold"] > 0.5
    (tmp_path / "t.txt").write_text("the snow\nheat\n")
    assert main(["predict", out, str(tmp_path / "t.txt"), "--explain"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("cold\t")
    assert "snow +" in shown
    assert main(["predict", out, "the snow", "--explain", "heat", "--json"]) == 0  # texts before and after flags
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["text"] for line in lines] == ["the snow", "heat"]
    assert lines[1]["words"][0].keys() == {"word", "start", "end", "weight"}
    assert main(["predict", out, "--json", "--", "-5 degrees", "--frost"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert main(["predict", out, "missing.txt"]) == 2
    answers = tmp_path / "new.json"
    assert main(["predict", out, "the snow", "heat", "--json", str(answers)]) == 0
    assert str(answers) in capsys.readouterr().out
    assert [json.loads(line)["label"] for line in answers.read_text().splitlines()] == ["cold", "warm"]
    assert main(["predict", out, str(answers)]) == 2  # no file of texts
    assert capsys.readouterr().out == ""
    (tmp_path / "t.csv").write_text('label,text\n?,"the snow, cold"\n?,heat\n')
    (tmp_path / "t.tsv").write_text("body\tlabel\nthe snow\t?\nheat\t?\n")
    (tmp_path / "t.jsonl").write_text('{"text": "the snow", "label": "?"}\n{"text": "heat"}\n')
    for name, first, *more in (
        ("t.csv", "the snow, cold"), ("t.tsv", "the snow", "--text-field", "body"), ("t.jsonl", "the snow")
    ):  # fmt: skip
        assert main(["predict", out, str(tmp_path / name), *more, "--json"]) == 0
        lines = [json.loads(line)["text"] for line in capsys.readouterr().out.splitlines()]
        assert lines == [first, "heat"]
    (tmp_path / "t.jsonl").write_text('{"text": "the snow"}\n{"body": "heat"}\n')
    assert main(["predict", out, str(tmp_path / "t.jsonl")]) == 1
    assert "t.jsonl:2" in capsys.readouterr().err
    (tmp_path / "none.txt").write_text("")
    assert main(["predict", out, str(tmp_path / "none.txt")]) == 0  # as a filter: no lines for none
    shown, error = capsys.readouterr()
    assert (shown, "no texts" in error) == ("", True)
    assert main(["predict", out, "", "--json"]) == 0  # one text without words
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert main(["fit", str(tmp_path / "v"), "--on", str(tmp_path / "d.txt"), "--out", out, "--head", "cmn"]) == 2
    assert "cnn" in capsys.readouterr().err


def test_viterbi_and_the_lstm_in_numpy_are_those_of_torch() -> None:
    random = torch.Generator().manual_seed(0)
    scores, lengths = torch.randn(1, 5, 7, 4, generator=random), torch.tensor([7, 1, 4, 3, 0])
    field = [torch.randn(1, *shape, generator=random) for shape in ((4,), (4, 4), (4,))]
    inside = torch.arange(7) < lengths[:, None]
    expected = best_paths(scores, inside[None], (field[0], field[1], field[2]))[0].numpy()
    ours = find_best_paths(scores[0].numpy(), lengths.numpy(), *(part[0].numpy() for part in field))
    np.testing.assert_array_equal(ours, expected)
    from stillvec.heads.networks import lstm_shapes, run_lstm

    parts = [torch.randn(1, *shape, generator=random) * 0.3 for shape, _ in lstm_shapes(6, 5)]
    inputs = torch.randn(1, 5, 7, 6, generator=random)
    states = run_lstm(inputs, inside[None], *parts)[0].numpy() * inside.numpy()[..., None]
    arrays = {name: part[0].numpy() for name, part in zip(("enter", "recur", "biases"), parts, strict=True)}
    np.testing.assert_allclose(run_both_ways(inputs[0].numpy(), lengths.numpy(), arrays), states, atol=1e-5)


def test_the_chances_of_tags_are_sums_over_all_paths() -> None:
    random = np.random.default_rng(4)
    scores, lengths = random.standard_normal((3, 4, 3)).astype(np.float32), np.array([4, 1, 3])
    begin, step, end = (random.standard_normal(shape).astype(np.float32) for shape in ((3,), (3, 3), (3,)))
    found = find_tag_chances(scores * 3, lengths, begin, step, end)
    for text, length in enumerate(lengths):
        expected = np.zeros((4, 3))
        for path in itertools.product(range(3), repeat=int(length)):
            total = begin[path[0]] + end[path[-1]] + sum(step[pair] for pair in itertools.pairwise(path))
            worth = np.exp(total + sum(3 * scores[text, at, tag] for at, tag in enumerate(path)))
            expected[range(length), path] += worth
        expected[:length] /= expected[:length].sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found[text], expected, atol=1e-5)


@pytest.mark.parametrize("name", ["cnn:epochs=1", "attention:epochs=1"])
def test_a_long_text_is_not_padded_beside_short_ones(
    name: str, vectors: WordVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, texts = fit(vectors, sentences(40), name), ["snow", " ".join(["fire a"] * 30), "the ice", "", "a hail was"]
    together = head.predict_proba(texts)
    monkeypatch.setattr(numpy_layers, "_MOST", 40)
    shapes: list[tuple[int, ...]] = []
    pad = Sequences.pad
    monkeypatch.setattr(Sequences, "pad", lambda *given: (shapes.append((found := pad(*given)).shape), found)[1])
    np.testing.assert_allclose(head.predict_proba(texts), together, atol=1e-5)
    assert all(rows == 1 or rows * columns <= 40 for rows, columns in shapes)
    assert len(shapes) > 1


def test_every_head_has_settings_that_its_manifest_restores() -> None:
    for name in HEADS:
        kind = HEADS[name]()
        assert dataclasses.asdict(
            stillvec.registry.settings_from(HEADS[name], dataclasses.asdict(kind))
        ) == dataclasses.asdict(kind)
        assert Head.__doc__


def test_standard_input_is_read_as_a_file_is(
    vectors: WordVectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fit(vectors, sentences(), out=tmp_path / "head")
    random = np.random.default_rng(0).bytes(3000)
    for content, said in ((random, "got binary data"), (b"snow\ncaf\xe9\n", "standard input:2"), (b"snow", None)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))  # type: ignore[arg-type]
        assert main(["predict", str(tmp_path / "head")]) == (1 if said else 0)
        out, error = capsys.readouterr()
        assert (said in error and out == "") if said else out.startswith("cold")


def test_a_binary_file_is_no_dataset(vectors: WordVectors, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(np.random.default_rng(0).bytes(3000))
    with pytest.raises(DatasetError) as caught:
        fit(vectors, tmp_path / "a.txt")
    assert caught.value.code == "not-text"


def test_a_text_that_all_others_would_be_padded_to_is_refused(vectors: WordVectors) -> None:
    data = [*sentences(), (f"{COLD[0]} " * 40_000, "cold")]
    with pytest.raises(DatasetError, match="texts of at most 32,768 words, got one of 40,000"):
        fit(vectors, data, "cnn")
    assert fit(vectors, data).predict([COLD[0]]) == ["cold"], "a mean has no length"


def test_json_lines_are_read_and_a_wrong_one_is_named(vectors: WordVectors, tmp_path: Path) -> None:
    rows = [json.dumps({"id": 1, "text": text, "label": label}) for text, label in sentences()]
    (tmp_path / "a.jsonl").write_text("\n".join(rows), "utf-8")
    (tmp_path / "a.csv").write_text("text,label\n" + "".join(f"{a},{b}\n" for a, b in sentences()), "utf-8")
    same = [read_data(tmp_path / name, "text") for name in ("a.jsonl", "a.csv")]
    assert same[0].items == same[1].items
    assert same[0].labels == same[1].labels
    (tmp_path / "a.jsonl").write_text("\n".join([*rows[:6], '{"text": "no label"}', *rows]), "utf-8")
    with pytest.raises(DatasetError) as caught:
        fit(vectors, tmp_path / "a.jsonl")
    assert caught.value.line == 7


def test_a_recipe_fits_a_head_on_the_vectors_of_an_earlier_step(
    vectors: WordVectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stillvec.save(vectors, tmp_path / "v")
    (tmp_path / "d.txt").write_text("".join(f"{label} {text}\n" for text, label in sentences(40)))
    recipe = '[[refine]]\nin = "v"\nsteps = ["normalize"]\nout = "n"\n\n[[fit]]\nin = "n"\non = "d.txt"\nout = "head"\n'
    (tmp_path / "r.toml").write_text(recipe)
    stillvec.run(tmp_path / "r.toml")
    assert stillvec.load_head(tmp_path / "head").labels == ("cold", "warm")
    (tmp_path / "r.toml").write_text(recipe.replace('out = "head"', 'out = "other"\nhead = "cmn"'))
    with pytest.raises(UsageError):
        stillvec.run(tmp_path / "r.toml")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("head", "item", "label", "message"),
    [
        ("linear", 1, "cold", "a text, got 1"),
        ("linear", "ice", ["cold", "warm"], "one label, got 2 labels; several need multilabel=True"),
        ("linear", "ice", [], "one label, got 0 labels"),
        ("linear", "ice", "", "labels of one line, got ''"),
        ("linear", "ice", "very\ncold", r"labels of one line, got 'very\\ncold'"),
        ("pair", "ab", "cold", "a pair of texts, got 'ab'"),
        ("pair", ("a", "b", "c"), "cold", "a pair of texts, got a tuple"),
        ("tagger", "ice cold", ["A", "B"], "a list of words, got 'ice cold'"),
        ("tagger", ["ice", "cold"], ["A"], "2 tags of 2 words, got 1"),
    ],
)
def test_a_wrong_item_or_label_in_memory_is_named(
    head: str, item: Any, label: Any, message: str, vectors: WordVectors
) -> None:
    fine: dict[str, tuple[Any, Any]] = {"pair": (("a", "b"), "cold"), "tagger": (["ice", "fire"], ["A", "B"])}
    data = [fine.get(head, ("ice", "cold")), fine.get(head, ("fire", "warm"))] * 10
    with pytest.raises((UsageError, DatasetError), match=rf"xpected {message}"):
        fit(vectors, [*data, (item, label)] * 2, head)


def test_a_text_is_no_pair_of_its_two_characters(vectors: WordVectors) -> None:
    head = fit(vectors, [(("ice", "snow"), "same"), (("ice", "fire"), "other")] * 10, "pair")
    with pytest.raises(UsageError, match="a pair of texts, got 'ab'"):
        head.predict([("a", "b"), "ab"])
