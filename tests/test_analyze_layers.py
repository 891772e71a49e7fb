"""What the layers of a teacher keep of their input: information against scikit-learn, controls, the verb."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from stillvec import WordVectors, save
from stillvec.analysis import analyze_layers
from stillvec.cli import main
from stillvec.encoding.word_states import MarkedTexts
from stillvec.errors import CorpusError, UsageError
from stillvec.evaluation.information import bias, cross_tabulate, label_information
from stillvec.evaluation.teacher_states import StateReader, TeacherSource
from stillvec.heads.sequence_batches import SPECIAL
from stillvec.numerics import kmeans
from stillvec.progress import drain

WORDS = ("the", "house", "dog", "sea", "book", "sun", "old", "new", "good", "sleeps", "reads", "stands")


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    generator = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("text") / "text.txt"
    lines = [" ".join(generator.choice(WORDS, generator.integers(3, 12))).capitalize() + "." for _ in range(120)]
    path.write_text("\n\n".join(lines), "utf-8")
    return str(path)


def test_information_of_labels_is_that_of_scikit_learn() -> None:
    generator = np.random.default_rng(0)
    a = generator.integers(0, 7, 500)
    b = np.where(generator.random(500) < 0.5, a, generator.integers(0, 5, 500))
    ours = label_information(a, b)
    assert ours.value + ours.bias == pytest.approx(mutual_info_score(a, b))
    assert abs(ours.shuffled) < 0.03
    times = generator.integers(0, 4, 500)
    weighted = label_information(a, b, 0, times)
    repeated = np.repeat(np.arange(500), times)
    assert weighted.value + weighted.bias == pytest.approx(mutual_info_score(a[repeated], b[repeated]))


def test_each_layer_is_measured_as_by_hand(model: str, text: str) -> None:
    analysis = analyze_layers(model, text, n_words=6, k=8, seeds=1)
    assert [layer.layer for layer in analysis.layers] == [0, 1, 2]
    assert (analysis.n_sentences, analysis.n_words, analysis.seeds) == (120, 6, 1)

    sentences = [line for line in Path(text).read_text("utf-8").split("\n\n") if line]
    marked = MarkedTexts.from_texts(sentences)
    words = [word.lower() for word in marked.words]
    frequent = sorted({*words}, key=lambda word: (-words.count(word), words.index(word)))[:6]
    chosen = [at for at, word in enumerate(words) if word in frequent]
    assert analysis.n_occurrences == len(chosen)
    stores = drain(StateReader(TeacherSource(model), None, ["all"]).read_steps(marked))

    def cluster(layer: int, side: int) -> list[int]:
        states = stores[layer].states
        assert states is not None
        rows = np.array(states[SPECIAL:][chosen], np.float32)
        return kmeans(rows, 8, np.random.default_rng((0, side)), n_rounds=30).labels.tolist()

    label = [frequent.index(words[at]) for at in chosen]
    for layer in analysis.layers:
        by_cluster = cluster(layer.layer, 0)
        table = cross_tabulate(np.array(label), np.array(by_cluster))
        assert layer.of_words.value == pytest.approx(mutual_info_score(label, by_cluster) - bias(table))
        table = cross_tabulate(np.array(cluster(0, 1)), np.array(by_cluster))
        assert layer.of_input.value == pytest.approx(mutual_info_score(cluster(0, 1), by_cluster) - bias(table))
        assert layer.of_input.low < layer.of_input.value < layer.of_input.high
        assert abs(layer.of_words_shuffled) < 0.05


def test_depth_mixes_the_words_of_a_sentence(model: str, text: str, tmp_path: Path) -> None:
    analysis = analyze_layers(f"teacher:{model}", text, n_words=12, k=12, cache=tmp_path)
    values = [layer.of_words.value for layer in analysis.layers]
    assert values[0] > values[2]  # random weights, so that a state depends on all of its context
    assert max(values) <= analysis.word_entropy + 0.01 <= math.log(12) + 0.01
    assert len([*tmp_path.glob("*/store.json")]) == 3
    assert analyze_layers(model, text, n_words=12, k=12, cache=tmp_path) == analyze_layers(
        model, text, n_words=12, k=12
    )
    drawn = analyze_layers(model, text, n_words=5, k=5, seeds=1, sample="random", cache=tmp_path)
    assert drawn.n_words == 5


def test_the_verb_prints_a_row_per_layer(model: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["analyze", f"teacher:{model}", "--text", text, "--clusters", "5", "--words", "6", "--seeds", "1"]
    assert main(call) == 0
    printed = capsys.readouterr().out
    assert "I(input; layer)" in printed
    assert "6 most frequent words in 120 sentences, 5 clusters" in printed
    assert main([*call, "--json", "-"]) == 0
    layers = json.loads(capsys.readouterr().out)["layers"]
    assert [layer["layer"] for layer in layers] == [0, 1, 2]


def test_what_cannot_be_measured_is_said_in_a_sentence(
    model: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match="layer"):
        analyze_layers(f"teacher:{model}@1", text)
    with pytest.raises(UsageError, match="sample"):
        analyze_layers(model, text, sample="rare")  # type: ignore[arg-type]
    with pytest.raises(CorpusError, match="clusters"):
        analyze_layers(model, text, k=5000)
    save(WordVectors(["a", "b"], np.eye(2)), tmp_path / "vectors")
    for call, important in (
        ([str(tmp_path / "vectors"), "--text", text], "teacher:"),
        ([f"teacher:{model}"], "--text"),
    ):
        assert main(["analyze", *call]) == 2  # a wrong call
        error = capsys.readouterr().err
        assert important in error
        assert error.count("\n") == 1
