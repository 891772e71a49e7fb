"""combine, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from stillvec.cli import main
from stillvec.combination import COMBINERS
from stillvec.combination.concat import Concat
from stillvec.formats import load, read_manifest, save, write_folder
from stillvec.registry import settings_from
from stillvec.vectors import WordVectors

WORDS = ["ice", "snow", "fire", "sun", "sea", "salt"]


@pytest.fixture
def inputs(tmp_path: Path) -> list[str]:
    """A folder that says how it was made, a text file, a binary file."""
    random = np.random.default_rng(0)
    rows = [random.normal(size=(6, dim)).astype(np.float32) for dim in (4, 3, 5)]
    made = {"method": "aggregate", "settings": {"layer": "3"}, "refined": [{"step": "unit"}], "seconds": 3}
    write_folder(WordVectors(WORDS, rows[0]), tmp_path / "ours", made)
    save(WordVectors(WORDS[1:], rows[1][1:]), tmp_path / "theirs.txt", format="glove")
    save(WordVectors(WORDS[:5], rows[2][:5]), tmp_path / "others.bin", format="word2vec-binary")
    return [str(tmp_path / name) for name in ("ours", "theirs.txt", "others.bin")]


@pytest.mark.parametrize("name", [name for name in COMBINERS if name != "attention"])
def test_every_method_makes_one_folder_of_three_formats(name: str, inputs: list[str], tmp_path: Path) -> None:
    assert main(["combine", *inputs, "--method", name, "--out", str(tmp_path / "out")]) == 0
    manifest = read_manifest(tmp_path / "out")
    made = load(tmp_path / "out")
    again = settings_from(COMBINERS[manifest["method"]], manifest["settings"])(*map(load, inputs))
    assert made.words == again.words
    assert np.array_equal(made.matrix, again.matrix)


def test_the_manifest_says_what_was_made_of_what(inputs: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["combine", *inputs, "--method", "concat:weights=1,2,0.5,words=intersection", "--out", str(out)]) == 0
    manifest = read_manifest(out)
    assert manifest["method"] == "concat"
    assert manifest["settings"] == {"weights": [1, 2, 0.5], "unit": True, "words": "intersection"}
    assert manifest["combined"] == [
        {
            "name": "ours",
            "words": 6,
            "dim": 4,
            "method": "aggregate",
            "settings": {"layer": "3"},
            "refined": [{"step": "unit"}],
        },
        {"name": "theirs.txt", "words": 5, "dim": 3},
        {"name": "others.bin", "words": 5, "dim": 5},
    ]
    assert str(tmp_path) not in json.dumps(manifest)
    assert load(out).words == tuple(WORDS[1:5])
    expected = Concat((1, 2, 0.5), words="intersection")(*map(load, inputs))
    assert np.array_equal(load(out).matrix, expected.matrix)


def test_it_says_what_was_written(inputs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["combine", *inputs, "--method", "average", "--out", str(tmp_path / "out")])
    assert capsys.readouterr().out.endswith("out: 6 words x 5 from 3 sets with 4 words in common\n")


def test_what_was_combined_is_combined_again_and_says_so(inputs: list[str], tmp_path: Path) -> None:
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    assert main(["combine", *inputs[:2], "--method", "average", "--out", first]) == 0
    assert main(["combine", first, inputs[2], "--method", "concat", "--out", second]) == 0
    assert [each["name"] for each in read_manifest(second)["combined"][0]["combined"]] == ["ours", "theirs.txt"]


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("avarage", "did you mean 'average'"),
        ("svd:dims=3", "did you mean 'dim'"),
        ("svd:dim=99", "1 to 12"),
        ("concat:words=some", "'union' or 'intersection'"),
    ],
)
def test_a_wrong_method_is_one_sentence_and_nothing_is_written(
    method: str, expected: str, inputs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["combine", *inputs, "--method", method, "--out", str(tmp_path / "out")]) == 2
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_one_set_alone_and_a_set_twice_are_refused(
    inputs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["combine", inputs[0], "--method", "concat", "--out", str(tmp_path / "out")]) == 2
    assert "two or more" in capsys.readouterr().err
    assert main(["combine", inputs[0], inputs[0], "--method", "concat", "--out", str(tmp_path / "out")]) == 2
    assert "given twice" in capsys.readouterr().err


def test_a_folder_of_other_things_is_left_alone(
    inputs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    assert main(["combine", *inputs, "--method", "concat", "--out", str(tmp_path / "mine")]) == 2
    assert "manifest.json" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]
