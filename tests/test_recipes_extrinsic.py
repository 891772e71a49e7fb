"""The recipe of the extrinsic tables on tiny datasets: it resumes, restricts vectors, and compares with a reference."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stillvec
from stillvec import WordVectors
from stillvec.evaluation.classification import Classification
from stillvec.evaluation.intervals import Resampling

RECIPES = Path(__file__).resolve().parents[1] / "recipes"
if not RECIPES.exists():
    pytest.skip("a wheel has no recipes", allow_module_level=True)

sys.path.insert(0, str(RECIPES))
import extrinsic  # noqa: E402

GOOD, BAD, PLAIN = ("fine", "great"), ("dull", "poor"), ("a", "film", "the", "plot")


def write_data(folder: Path) -> None:
    generator = np.random.default_rng(0)
    for path in extrinsic.DATASETS.values():
        for part in ("train", "test") if ".test" in path else ("",):
            file = folder / path.replace("test", part)
            file.parent.mkdir(parents=True, exist_ok=True)
            sentences = [
                [*generator.choice(PLAIN, 3), generator.choice(GOOD if at % 2 else BAD)]
                for at in range(20 if part == "test" else 40)
            ]
            if file.parent.name == "classification":
                lines = [f"{at % 2} {' '.join(words)}" for at, words in enumerate(sentences)]
            else:
                lines = [line for words in sentences for line in tag(words, file.suffix == ".conllu")]
            file.write_text("\n".join(lines) + "\n", "utf-8")


def tag(words: list[str], conllu: bool) -> list[str]:
    if conllu:
        tagged = [(word, "NOUN" if word in PLAIN else "ADJ") for word in words]
        rows = [f"{at}\t{word}\t_\t{kind}\t_\t_\t0\troot\t_\t_" for at, (word, kind) in enumerate(tagged, 1)]
        return [*rows, ""]
    return [*(f"{word} {'O' if word in PLAIN else 'B-X'}" for word in words), ""]


def make_vectors(seed: int, dim: int) -> WordVectors:
    matrix = np.random.default_rng(seed).standard_normal((9, dim)).astype(np.float16).astype(np.float32)
    return WordVectors([*GOOD, *BAD, *PLAIN, "zebra"], matrix)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["extrinsic.py", *map(str, arguments)])
    extrinsic.main()


def test_the_tables_are_those_of_every_set_and_of_the_control(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_data(tmp_path / "data")
    monkeypatch.setenv("STILLVEC_DATA", str(tmp_path / "data"))
    specs, out = [], tmp_path / "out.jsonl"
    for number, name in enumerate(("one", "two")):
        stillvec.save(make_vectors(number, 8 + number), tmp_path / name)
        specs.append(f"{name}={tmp_path / name}")
    run(monkeypatch, *specs, "--quick", "--device", "cpu", "--json", out)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    done = {(line["dataset"], line["vectors"]) for line in lines}
    assert len(lines) == len(done) == 9 * 3

    def refuse(*_: Any) -> Any:
        raise AssertionError

    with monkeypatch.context() as patch:  # a second run has nothing to train
        patch.setattr(Classification, "answer_sets", refuse)
        run(patch, *specs, "--quick", "--device", "cpu", "--json", out)

    restricted = [f"{name}={tmp_path / 'small' / name}" for name in ("one", "two")]
    run(monkeypatch, *specs, "--restrict", tmp_path / "small")
    assert len(stillvec.load(tmp_path / "small" / "one")) == 8
    monkeypatch.setenv("STILLVEC_DATA", str(tmp_path / "small" / "data"))
    run(monkeypatch, *restricted, "--quick", "--device", "cpu", "--only", "TREC", "--json", tmp_path / "small.jsonl")
    of_small = [json.loads(line) for line in (tmp_path / "small.jsonl").read_text().splitlines()]
    of_whole = [line for line in lines if line["dataset"] == "TREC"]
    assert of_small[:2] == of_whole[:2]  # the control has other words

    capsys.readouterr()
    with out.open("a") as stream:
        stream.write('{"dataset": "MR", "vec')  # a run that was stopped
    run(monkeypatch, "--print", "--json", out, "--reference", "two")
    printed = capsys.readouterr().out
    for name in ("extrinsic-classification", "extrinsic-tagging"):
        assert extrinsic.HEADERS[name] in printed
    rows = [
        line.strip("| ").split(" | ")
        for line in printed.splitlines()
        if line.startswith(("| one", "| two", "| random"))
    ]
    assert len(rows) == 6
    assert [row[-2] for row in rows if row[0] == "two"] == ["reference"] * 2
    assert all(row[2] == "100.0%" for row in rows)


def test_a_difference_is_tested_on_the_same_items(capsys: pytest.CaptureFixture[str]) -> None:
    right = np.random.default_rng(0).random((400, 6)) < 0.7
    better = right | (np.random.default_rng(1).random((400, 6)) < 0.1)

    def scores(answers: Any) -> list[Any]:
        resampled = [
            np.concatenate([w @ column / 400 for w in Resampling(1000).weights(400, at)])
            for at, column in enumerate(answers.T)
        ]
        values = answers.mean(axis=0)
        return [extrinsic.DatasetScore(v, v, 0.0, r, np.ones(2), 400) for v, r in zip(values, resampled, strict=True)]

    sets = {"a": scores(right), "b": scores(better)}
    columns = ["CR", "MR", "MPQA", "SUBJ", "TREC", "SST-5"]
    extrinsic.print_table("extrinsic-classification", columns, sets, {"a": 3, "b": 3}, "a")
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("| b"))
    difference, p = row.strip("| ").split(" | ")[-2:]
    change = better.mean() - right.mean()
    error = np.sqrt(np.sum((better * 1.0 - right).var(axis=0, ddof=1) / 400)) / 6
    assert difference.startswith(f"{100 * change:+.1f} [")
    low, high = (float(bound) for bound in difference[difference.index("[") + 1 : -1].split(", "))
    assert (high - low) / 2 == pytest.approx(100 * 1.966 * error, abs=0.15)
    assert p == "< 0.001"


@pytest.mark.parametrize(
    "arguments", [["x"], ["random=x"], ["--print", "--json", "nothing.jsonl"], ["a=b", "--only", "XX"]]
)
def test_a_wrong_call_ends_in_a_sentence(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises((SystemExit, stillvec.StillvecError)) as caught:
        run(monkeypatch, *arguments)
    assert str(caught.value)


def test_a_dataset_that_was_not_run_is_in_no_mean(capsys: pytest.CaptureFixture[str]) -> None:
    score = extrinsic.DatasetScore(0.5, 0.5, 0.0, np.full(1000, 0.5), np.ones(2), 400)
    sets = {"a": [score], "b": [score]}
    extrinsic.print_table("extrinsic-tagging", ["WNUT-17 entities"], sets, {"a": 3, "b": 3}, "a")
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("| a "))
    assert [cell.strip() for cell in row.strip("|").split("|")][3:7] == ["–", "50.0 / 50.0 ± 0.0", "–", "50.0 / 50.0"]


def test_seeds_are_runs_of_one_method(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The mean and the standard deviation over the vectors `a`, `a seed 1` and `a seed 2`."""
    accuracies = {"a": 0.5, "a seed 1": 0.6, "a seed 2": 0.7, "b": 0.1}
    monkeypatch.setattr(extrinsic, "score_runs", lambda lines: iter(accuracies[name] for name in lines))
    datasets = ["CR", "MR", "MPQA", "SUBJ", "TREC", "SST-5"]
    extrinsic.print_seeds({(dataset, name): {} for dataset in datasets for name in accuracies})
    *_, row = capsys.readouterr().out.splitlines()
    assert row == "| a, 3 seeds | " + " | ".join(["60.0 ± 10.0"] * 7) + " |"
