"""ONNX: onnxruntime makes of rows of words what `encode` makes of texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stillvec import Vocabulary, WordVectors, load, save
from stillvec.cli import main
from stillvec.errors import FormatError
from stillvec.vocabulary import WordMatcher

MATRIX = np.random.default_rng(9).normal(size=(4, 6)).astype(np.float32)
OURS = WordVectors(Vocabulary(["ice", "snow", "北京", "[PAD]"], [9, 4, 2, 0], lowercase=True), MATRIX)
TEXTS = ["Ice and snow and ice", "北京", "nothing", "snow"]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("onnx") / "v.onnx"
    save(OURS, path, format="onnx")
    return path


def test_onnxruntime_gives_the_mean_that_encode_gives(file: Path) -> None:
    import onnxruntime

    found = WordMatcher(OURS.vocabulary).match(TEXTS)
    rows = np.full((len(TEXTS), 7), -1, np.int64)
    for number in range(len(TEXTS)):
        ids = found.ids[found.text_index == number]
        rows[number, : len(ids)] = ids
    session = onnxruntime.InferenceSession(file)
    (means,) = session.run(["mean"], {"rows": rows})
    np.testing.assert_allclose(means, OURS.encode(TEXTS), atol=1e-7)
    assert not means[2].any()
    (none,) = session.run(["mean"], {"rows": rows[:, :0]})
    assert not none.any()
    assert session.get_modelmeta().custom_metadata_map["words"] == '["ice", "snow", "北京", "[PAD]"]'


def test_the_model_is_sound_and_counts_come_back(file: Path) -> None:
    import onnx

    onnx.checker.check_model(onnx.load(file), full_check=True)
    assert load(file).vocabulary == OURS.vocabulary


def with_(edit: Callable[[Any], object]) -> Callable[[bytes], bytes]:
    def work(raw: bytes) -> bytes:
        import onnx

        model = onnx.ModelProto.FromString(raw)
        edit(model)
        return bytes(model.SerializeToString())

    return work


def meta(name: str, value: str) -> Callable[[Any], None]:
    def work(model: Any) -> None:
        next(entry for entry in model.metadata_props if entry.key == name).value = value

    return work


def nan(model: Any) -> None:
    model.graph.initializer[0].raw_data = b"\xff" * len(model.graph.initializer[0].raw_data)


BAD: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "cut": (lambda raw: raw[:-9], "expected ONNX"),
    "another model": (with_(lambda model: model.ClearField("metadata_props")), "written by stillvec"),
    "fewer words": (with_(meta("words", '["ice"]')), "1 words and 4 vectors"),
    "a word twice": (with_(meta("words", '["a", "b", "a", "c"]')), "'a'"),
    "no words": (with_(meta("words", "[")), "damaged"),
    "a NaN": (with_(nan), "'ice'"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_model_that_is_not_ours_is_reported_in_one_sentence(
    tmp_path: Path, file: Path, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil, sentence = BAD[case]
    (tmp_path / "v.onnx").write_bytes(spoil(file.read_bytes()))
    with pytest.raises(FormatError, match=sentence):
        load(tmp_path / "v.onnx")
    assert main(["convert", str(tmp_path / "v.onnx"), str(tmp_path / "o.vec")]) == 1
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_more_than_a_model_holds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stillvec.formats.onnx._MAX_BYTES", 100)
    with pytest.raises(FormatError, match="2 GiB"):
        save(OURS, tmp_path / "v.onnx", format="onnx")
