"""Attention that is returned and drawn, against a slow computation from the folder's own files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from tiny_corpus import counted, sentences, slow_states, words_of
from tiny_teachers import write_tiny_model

from stillvec import distill
from stillvec.cli import main
from stillvec.errors import FormatError, UsageError
from stillvec.formats import load, read_model
from stillvec.pipeline.sentence_attention import attention
from stillvec.teachers import load_teacher

SENTENCE = "The farmer never sells zebras near the old river!"
CLOSED = "start=closed,whiten=true,projection_rate=0,optimizer=adam,rate=0.001,epochs=1"  # weights that differ
METHODS = {
    "attentive": f"attentive_skipgram:window=3,attention=2,include_center=false,bias=true,{CLOSED}",
    "with its own": f"attentive_skipgram:window=2,attention=5,include_center=true,bias=false,{CLOSED}",
    "context to vec": "context_to_vec:window=5,pool=attention,attention=3,context_weight=0.4,activation=tanh,"
    f"include_center=false,bias=true,{CLOSED}",
    "defaults": "attentive_skipgram",
    "summed": "attentive_skipgram:pool=sum",
    "another": "aggregate",
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("attending")
    write_tiny_model(folder / "teacher", "bert")
    write_tiny_model(folder / "other-teacher", "bert", seed=1)
    (folder / "text.txt").write_text("\n".join(sentences(96)), "utf-8")
    given = {"teacher": str(folder / "teacher"), "min_count": 1, "contexts": None, "context_cache": folder / "store"}
    for name, method in METHODS.items():
        distill(folder / "text.txt", method=method, out=folder / name, **given)
    return folder


def slow_attention(folder: Path, window: int, scale: float, *, own: bool, around: float) -> np.ndarray:
    """Word by word, in float64, from the files of the result."""
    model = {name: np.array(array, np.float64) for name, array in read_model(folder).items()}
    index = load(folder).vocabulary.index
    every, spans = slow_states(load_teacher(str(folder.parent / "teacher")), SENTENCE)
    words = words_of(SENTENCE)
    states = [
        every[-1][[i for i, (a, b) in enumerate(spans) if a < end and b > start]].mean(0) - model["mean"]
        for _, start, end in words
    ]
    dim = model["projection-0"].shape[1]
    found = np.full((len(words), len(words)), np.nan)
    for i in range(len(words)):
        near = [j for j in range(len(words)) if abs(i - j) <= window]
        u = states[i] @ model["projection-0"]
        if around:
            mean = np.tanh(np.mean([states[j] for j in near if j != i], axis=0))
            u = (1 - around) * u + around * mean @ model["projection-1"]
        there = [j for j in near if words[j][0] in index and (own or i != j)]
        raised = np.exp([scale * float(u @ model["table"][index[words[j][0]], :dim]) for j in there])
        found[i, there] = raised / raised.sum()
    return found


@pytest.mark.parametrize(
    ("name", "window", "scale", "own", "around"),
    [("attentive", 3, 2.0, False, 0.0), ("with its own", 2, 5.0, True, 0.0), ("context to vec", 5, 3.0, False, 0.4)],
)
def test_weights_are_those_of_a_slow_computation(
    name: str, window: int, scale: float, own: bool, around: float, directory: Path
) -> None:
    found = attention(directory / name, SENTENCE)
    assert found.words == ("The", "farmer", "never", "sells", "zebras", "near", "the", "old", "river")
    assert found.known == tuple(word != "zebras" for word in found.words)
    wanted = slow_attention(directory / name, window, scale, own=own, around=around)
    assert np.array_equal(np.isnan(found.weights), np.isnan(wanted))
    assert np.nanmax(np.abs(found.weights - wanted)) < 5e-3  # states are kept as halves
    assert np.nansum(found.weights, axis=1) == pytest.approx(np.ones(9), abs=1e-5)
    assert np.nanstd(wanted) > 0.05, "the weights differ"


def test_by_default_a_word_attends_to_its_neighbours_and_not_to_itself(directory: Path) -> None:
    result = attention(directory / "defaults", SENTENCE)
    assert np.isnan(np.diag(result.weights)).all()
    assert np.nansum(result.weights, axis=1) == pytest.approx(np.ones(len(result.words)), abs=1e-5)
    assert (np.nan_to_num(result.weights) > 0).sum(1).min() > 1


def test_a_teacher_can_be_given_as_folder_or_loaded(directory: Path) -> None:
    named = attention(directory / "attentive", SENTENCE)
    for teacher in (str(directory / "teacher"), load_teacher(str(directory / "teacher"))):
        assert np.array_equal(
            attention(directory / "attentive", SENTENCE, teacher).weights, named.weights, equal_nan=True
        )


def test_another_teacher_is_refused(directory: Path) -> None:
    with pytest.raises(UsageError, match=r"got .*other-teacher"):
        attention(directory / "attentive", SENTENCE, str(directory / "other-teacher"))


@pytest.mark.parametrize(
    ("name", "expected"), [("another", "made by aggregate"), ("summed", "attentive_skipgram with pool=sum")]
)
def test_vectors_without_attention_are_refused_by_how_they_were_made(name: str, expected: str, directory: Path) -> None:
    with pytest.raises(UsageError, match=expected):
        attention(directory / name, SENTENCE)


def test_a_folder_that_lost_its_model_is_reported(directory: Path, tmp_path: Path) -> None:
    for file in (directory / "attentive").iterdir():
        if file.name != "model.safetensors":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    with pytest.raises(FormatError, match=r"no model\.safetensors"):
        attention(tmp_path, SENTENCE)


@pytest.mark.parametrize(("sentence", "known"), [("Zebras eat farmer", 1), ("Zebras eat", 0), ("", 0)])
def test_a_sentence_with_fewer_than_two_known_words_is_refused(sentence: str, known: int, directory: Path) -> None:
    with pytest.raises(UsageError, match=f"got {known}"):
        attention(directory / "attentive", sentence)


def test_the_verb_prints_a_table_in_line_and_names_unknown_words(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(
            ["attention", str(directory / "attentive"), "farmer sells zebras", "--teacher", str(directory / "teacher")]
        )
        == 0
    )
    out = capsys.readouterr().out.splitlines()
    assert out[1].split() == ["farmer", "sells", "zebras"]
    assert out[2].split() == ["farmer", "100"]
    assert out[2].index("100") == out[1].index("sells")
    assert out[3].index("100") == out[1].index("farmer")
    assert out[4].split()[0] == "zebras"
    assert out[5] == "Out of vocabulary, so without attention: zebras."


def test_the_verb_writes_json(directory: Path, tmp_path: Path) -> None:
    assert main(["attention", str(directory / "attentive"), SENTENCE, "--json", str(tmp_path / "a.json")]) == 0
    said = json.loads((tmp_path / "a.json").read_text("utf-8"))
    weights = np.array(said["weights"], float)
    assert said["words"][1:3] == ["farmer", "never"]
    assert said["weights"][0][0] is None
    assert np.array_equal(
        weights.astype(np.float32), attention(directory / "attentive", SENTENCE).weights, equal_nan=True
    )


def test_an_svg_says_all_words_and_weights_and_is_the_same_twice(directory: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("a.svg", "b.svg"):
        assert main(["attention", str(directory / "attentive"), SENTENCE, "--out", str(tmp_path / name)]) == 0
    tree = ElementTree.fromstring((tmp_path / "a.svg").read_text("utf-8"))
    texts = [each.text for each in tree.iter("{http://www.w3.org/2000/svg}text")]
    found = attention(directory / "attentive", SENTENCE)
    named = [each for each in texts if each in found.words]
    assert named == [*found.words, *found.words], "above and beside"
    numbers = [f"{100 * each:.0f}" for each in found.weights[~np.isnan(found.weights)].tolist()]
    assert [each for each in texts if each and each.isdigit()] == numbers
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_long_sentence_is_drawn_without_numbers(directory: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    long = " ".join(sentences(4)).replace(".", "")
    assert len(counted([long])) < len(words_of(long)) > 24
    assert main(["attention", str(directory / "attentive"), long, "--out", str(tmp_path / "a.png")]) == 0
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"


def test_another_kind_of_picture_is_refused_before_the_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attention", str(tmp_path / "nothing"), SENTENCE, "--out", "a.gif"]) == 2
    assert "a.gif" in capsys.readouterr().err


def test_without_matplotlib_the_extra_is_named_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["attention", str(tmp_path / "nothing"), SENTENCE, "--out", str(tmp_path / "a.svg")]) == 1
    stderr = capsys.readouterr().err
    assert "needs the package 'matplotlib'" in stderr
    assert "stillvec[plot]" in stderr
    assert not (tmp_path / "a.svg").exists()
