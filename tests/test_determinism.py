"""What docs/determinism.md promises: the same bytes from two processes, and a test for each row of its table."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_corpus import sentences

import stillvec
from stillvec.cli import main
from stillvec.formats import load

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "determinism.md"
DISTILL = "distill text.txt --min-count 1 --device cpu --quiet --context-cache contexts --teacher"
CALLS = f"""
{DISTILL} MODEL --threads 1 --method aggregate,auto,x2static --out distill
{DISTILL} MODEL --threads 1 --method aggregate --seed 3 --out other
train text.txt --min-count 1 --threads 1 --dim 8 --method glove,skipgram --quiet --out train
refine distill/aggregate --step center --step pca:dim=6 --step quantize --out refine
combine distill/aggregate distill/x2static --method gcca --out combine
merge distill/aggregate other --out merge
fit distill/aggregate --on labels.txt --head cnn:epochs=2 --device cpu --quiet --out fit
adapt MODEL --step prune --step pretrain:text=text.txt,max_steps=2,length=16 --device cpu --quiet --out adapt
index text.txt --vectors refine --out index --quiet
convert distill/aggregate convert/v.vec.gz
convert distill/aggregate convert/v.npy.xz
convert distill/aggregate convert/v.parquet
evaluate distill/aggregate distill/x2static --data data --tasks similarity --no-cache --json evaluate/scores.json
analyze distill/aggregate --no-components --json analyze/analysis.json
"""
PROGRAM = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from test_determinism import run_calls

run_calls(sys.argv[1])
"""
NOT_COMPARED = ("manifest.json", "adaptation.json", "README.md")  # they contain the time


def prepare(folder: Path) -> Path:
    (folder / "data" / "similarity").mkdir(parents=True)
    texts = sentences(120)
    (folder / "text.txt").write_text("\n".join(texts), "utf-8")
    labels = (f"{'ab'[number % 2]} {text}" for number, text in enumerate(texts))
    (folder / "labels.txt").write_text("\n".join(labels), "utf-8")
    pairs = ["farmer\tbaker\t7", "river\tharbour\t6", "bread\tbooks\t2", "king\tshoes\t1", "old\tfresh\t4"]
    (folder / "data" / "similarity" / "pairs.tsv").write_text("\n".join(pairs) + "\n", "utf-8")
    return folder


def run_calls(model: str) -> None:
    for line in CALLS.strip().splitlines():
        assert main([model if word == "MODEL" else word for word in line.split()]) == 0, line


@pytest.fixture(scope="module")
def results(model: str, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The folders in which this process and one with other hashes of strings ran the same commands."""
    folders = [prepare(tmp_path_factory.mktemp("run")) for _ in range(2)]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folders[0])
        patch.setenv("STILLVEC_CACHE", str(folders[0] / "cache"))
        run_calls(model)
    settings = {"PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") == "0" else "0"}
    settings |= {"STILLVEC_CACHE": str(folders[1] / "cache")}
    paths = os.pathsep.join([str(Path(stillvec.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, model],
        cwd=folders[1],
        env={**os.environ, **settings, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folders


@pytest.mark.parametrize(
    "command",
    [
        "distill",
        "train",
        "refine",
        "combine",
        "merge",
        "fit",
        "adapt",
        "index",
        "convert",
        "evaluate",
        "analyze",
        "contexts",
    ],
)
def test_the_same_command_gives_the_same_bytes(command: str, results: list[Path]) -> None:
    one, two = (
        {path.relative_to(folder): path.read_bytes() for path in (folder / command).rglob("*") if path.is_file()}
        for folder in results
    )
    assert one.keys() == two.keys()
    assert len(one) > 0
    assert [str(path) for path in one if path.name not in NOT_COMPARED and one[path] != two[path]] == []


def test_the_number_of_threads_does_not_change_what_is_read(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(prepare(tmp_path))
    for threads in ("1", "2"):
        call = [*DISTILL.split(), model, "--method", "aggregate", "--threads", threads, "--out", threads]
        assert main(call) == 0
    one, two = load("1"), load("2")
    assert one.words == two.words
    np.testing.assert_array_equal(one.matrix, two.matrix)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")
@pytest.mark.parametrize("method", ["aggregate", "x2static"])
def test_two_runs_on_a_gpu_only_round_differently(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.chdir(prepare(tmp_path))
    for out in ("one", "two"):
        call = DISTILL.replace("cpu", "cuda").replace("contexts", f"contexts-{out}").split()
        assert main([*call, model, "--method", method, "--out", out]) == 0
    one, two = load("one"), load("two")
    np.testing.assert_allclose(one.matrix, two.matrix, atol=1e-5)


@pytest.mark.skipif(not PAGE.exists(), reason="not a checkout of the repository")
def test_every_row_of_the_page_has_a_test() -> None:
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 10
    for row in rows:
        file, name = re.findall(r"`(test_\w+\.py)::(test_\w+)` \|$", row)[0]
        assert f"def {name}(" in (TESTS / file).read_text("utf-8"), row
