"""Heads of spans: what they learn, that NumPy reads as torch does, and that they are the probe of the task `spans`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stillvec
from stillvec import WordVectors, fit
from stillvec.cli import main
from stillvec.errors import DatasetError, UsageError
from stillvec.evaluation.network_training import SpanTraining
from stillvec.heads.labelled_data import read_data
from stillvec.heads.marked_texts import MarkedText, number_sentences, parse_marked_text
from stillvec.heads.networks import NetworkSettings, PaddedTexts
from stillvec.heads.pooling import SPAN_POOLINGS
from stillvec.heads.span_head import ask_items
from stillvec.heads.span_networks import SpanNetworks, SpanSettings
from stillvec.heads.splits import Round

WORDS = ("ice", "snow", "fire", "heat", "the", "house", "sun", "rain")
COLD = {"ice", "snow", "rain"}
SMALL = "size=16,epochs=2"


@pytest.fixture
def vectors() -> WordVectors:
    return WordVectors(WORDS, np.random.default_rng(0).standard_normal((len(WORDS), 12)).astype(np.float32))


def draw_sentences(n: int, seed: int = 0) -> list[tuple[list[str], list[list[Any]]]]:
    """Words, one unknown among them, and three spans, labelled by their last word."""
    random, made = np.random.default_rng(seed), []
    for _ in range(n):
        words = [str(word) for word in random.choice([*WORDS, "unknown"], int(random.integers(4, 9)))]
        starts = random.choice(len(words), 3, replace=False)
        marks = []
        for first in starts.tolist():
            last = min(len(words) - 1, first + int(random.integers(3)))
            marks.append([first, last, "cold" if words[last] in COLD else "warm"])
        made.append((words, marks))
    return made


def write_dataset(folder: Path, name: str, n: int, seed: int = 0) -> Path:
    """A dataset of entities, or of pairs, trees or predicates with them."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for words, marks in draw_sentences(n, seed):
        first, second, *_ = marks
        same = "same" if first[2] == second[2] else "other"
        lines.append(
            json.dumps(
                {
                    "entities": {"words": words, "spans": marks},
                    "pairs": {"words": words, "pairs": [[*first[:2], *second[:2], same]]},
                    "roles": {"words": words, "predicates": [[0, "be.01", [[*mark[:2], mark[2]] for mark in marks]]]},
                }[name]
            )
        )
    (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return folder / f"{name}.jsonl"


def write_trees(path: Path, trees: list[str]) -> Path:
    path.write_text("\n".join(trees) + "\n", "utf-8")
    return path


def test_a_head_learns_and_its_folder_predicts_the_same(
    vectors: WordVectors, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_dataset(tmp_path, "entities", 150)
    head = fit(
        vectors,
        path,
        "span:pooling=endpoint,size=32,epochs=40,patience=40,rate=1e-2",
        out=tmp_path / "head",
        device="cpu",
    )
    items = [(words, (mark[0], mark[1])) for words, marks in draw_sentences(60, 1) for mark in marks]
    gold = [mark[2] for _, marks in draw_sentences(60, 1) for mark in marks]
    assert np.mean([ours == theirs for ours, theirs in zip(head.predict(items), gold, strict=True)]) > 0.9
    loaded = stillvec.load_head(tmp_path / "head")
    np.testing.assert_array_equal(loaded.predict_proba(items), head.predict_proba(items))
    assert head.encode(items[:3]).shape == (3, 32)
    assert main(["info", str(tmp_path / "head"), "--verify"]) == 0
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "head"), "--explain", "the [snow] of the house", "a [fire], the sun"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("cold\t")
    assert lines[1].startswith("    cold: snow +")
    assert lines[2].startswith("warm\t")


@pytest.mark.parametrize("name", ["entities", "pairs", "roles"])
@pytest.mark.parametrize("pooling", SPAN_POOLINGS)
def test_numpy_predicts_what_torch_trained(
    name: str, pooling: str, vectors: WordVectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_dataset(tmp_path, name, 30)
    groups: list[SpanNetworks] = []
    start = SpanNetworks.__init__

    def keep(group: SpanNetworks, *arguments: Any, **settings: Any) -> None:
        start(group, *arguments, **settings)
        groups.append(group)

    monkeypatch.setattr(SpanNetworks, "__init__", keep)
    head = fit(vectors, path, f"span:pooling={pooling},{SMALL}", device="cpu", packing="none")
    items = read_data(path, "span").items
    expected = groups[0].predict_scores(np.arange(len(number_sentences(items)[0])))[0]
    np.testing.assert_allclose(head.score(items), expected, atol=1e-5)
    np.testing.assert_allclose(head.score(items[::-1])[::-1], expected, atol=1e-5)


def test_it_is_the_probe_that_evaluate_trains(vectors: WordVectors, tmp_path: Path) -> None:
    data = read_data(write_dataset(tmp_path, "entities", 40), "span")
    head = fit(vectors, data.files[0], f"span:{SMALL}", device="cpu", packing="none", seed=3)
    sentences, text = number_sentences(data.items)
    sequences = head._lookup.read_tokens(sentences)
    training = SpanTraining(PaddedTexts([sequences], "cpu"), ask_items(data), SpanSettings("max", 16, 16), 2)  # type: ignore[arg-type]
    train, dev = (np.unique(text[rows]) for rows in (data.train, data.dev))
    work = training.run(Round(train, dev, dev), [NetworkSettings(0, 3, head.kind.rate)])  # type: ignore[attr-defined]
    while True:
        try:
            next(work)
        except StopIteration as end:
            said, _ = end.value
            break
    np.testing.assert_array_equal(head.score([data.items[row] for row in data.dev]) > 0, said[0][data.dev])


def test_spans_of_one_sentence_are_not_divided_and_constituents_have_several_labels(
    vectors: WordVectors, tmp_path: Path
) -> None:
    data = read_data(write_dataset(tmp_path, "entities", 50), "span")
    text = number_sentences(data.items)[1]
    assert not {*text[data.train]} & {*text[data.dev]}
    tree = "(TOP (S (NP (DT the) (NN ice)) (VP (VB sun) (NP (NN rain)))))"
    with pytest.raises(DatasetError, match="sentences"):
        fit(vectors, write_trees(tmp_path / "one.txt", [tree] * 20), "span")
    trees = [tree.replace("ice", word).replace("sun", other) for word in WORDS for other in WORDS]
    write_trees(tmp_path / "trees.txt", [each.replace("(NP (NN rain))", "(S (NP (NN rain)))") for each in trees])
    head = fit(vectors, tmp_path / "trees.txt", f"span:{SMALL}", device="cpu")
    assert head.multilabel
    assert all(isinstance(labels, tuple) for labels in head.predict([(["the", "ice"], (0, 1))]))
    asked = fit(vectors, tmp_path / "trees.txt", f"span:question=detection,{SMALL}", device="cpu")
    assert asked.labels == ("no", "yes")


def test_an_explanation_is_what_an_unknown_word_would_change(vectors: WordVectors, tmp_path: Path) -> None:
    head = fit(vectors, write_dataset(tmp_path, "pairs", 40), f"span:pooling=attention,{SMALL}", device="cpu")
    words = ("the", "ice", "house", "fire", "sun")
    (why,) = head.explain([(words, (0, 1, 3, 3))])
    assert why.words == ("the", "ice", "|", "fire")
    at = head.labels.index(why.label)
    own = head.score([(words, (0, 1, 3, 3))])[0, at]
    for place, shown in ((0, 0), (1, 1), (3, 3)):
        other = tuple("zzz" if number == place else word for number, word in enumerate(words))
        assert why.weights[shown] == pytest.approx(own - head.score([(other, (0, 1, 3, 3))])[0, at], abs=1e-5)
    assert why.weights[2] == 0


def test_a_text_has_its_span_in_brackets() -> None:
    assert parse_marked_text("She lives in [New York].") == (("She", "lives", "in", "New", "York", "."), (3, 4))
    assert parse_marked_text("[The dog] [[barks]]").places == (2, 2, 0, 1)
    assert parse_marked_text("[The dog] saw [it]").places == (0, 1, 3, 3)
    assert parse_marked_text((["a", "b"], [0, 1])) == MarkedText(("a", "b"), (0, 1))


@pytest.mark.parametrize(
    "item",
    ["no span", "[a] [b] [c]", "[]", (["a"], (0, 1)), (["a"], (1, 0)), (["a"], (0,)), ("a", (0, 0)), 3, (["a"], "01")],
)
def test_a_wrong_item_is_one_sentence(item: Any) -> None:
    with pytest.raises(UsageError, match=r"[Ee]xpected"):
        parse_marked_text(item)


def test_what_does_not_fit_is_refused(vectors: WordVectors, tmp_path: Path) -> None:
    path = write_dataset(tmp_path, "entities", 30)
    for spec, message in (
        ("span:pooling=sum", "pooling"),
        ("span:question=roles", "question"),
        ("span:question=what", "question"),
    ):
        with pytest.raises(UsageError, match=message):
            fit(vectors, path, spec)
    with pytest.raises(UsageError, match="is for"):
        fit(vectors, path, "span", ["adversarial"])
    with pytest.raises(DatasetError):
        fit(vectors, tmp_path / "missing.jsonl", "span")
    head = fit(vectors, path, f"span:{SMALL}", device="cpu")
    with pytest.raises(UsageError, match="one span"):
        head.predict(["[ice] and [snow]"])
    with pytest.raises(UsageError, match="Canonical"):
        head.predict(["[ice]"], canonical=str(path))
    items = [((["ice", "sun"], (0, 0)), "cold"), ((["sun", "ice"], (0, 0, 1, 1)), "warm")] * 10
    with pytest.raises(UsageError, match="one span in each item"):
        fit(vectors, items, f"span:{SMALL}")
