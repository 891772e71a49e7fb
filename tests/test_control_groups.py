"""A run in a control group that is too small ends with one sentence, not by the kernel, and can be continued."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny_corpus import sentences

from stillvec.cli import main
from stillvec.memory import RESERVE

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="control groups")]
LIMITS = {Path("/sys/fs/cgroup/memory"): "memory.limit_in_bytes", Path("/sys/fs/cgroup"): "memory.max"}

# Joins the group, and lowers its limit to what is used and some megabytes at the first batch.
JOINED = """
import os, sys
from pathlib import Path
import stillvec.cli.distill_command, torch, transformers
from stillvec.cli import main
from stillvec.learners.encoding_pass import EncodingPass
limit, spare = Path(sys.argv[1]), int(sys.argv[2])
limit.with_name("cgroup.procs").write_text(str(os.getpid()))
used = limit.with_name("memory.usage_in_bytes" if "limit" in limit.name else "memory.current")
read = EncodingPass.run

def run(self, *arguments):
    for number, event in enumerate(read(self, *arguments)):
        if not number:
            limit.write_text(str(int(used.read_text()) + spare))
        yield event

if sys.argv[3] == "later":
    EncodingPass.run = run
else:
    limit.write_text(str(int(used.read_text()) + spare))
sys.exit(main(sys.argv[4:]))
"""


@pytest.fixture
def limit() -> Iterator[Path]:
    """The file with the limit of a new group."""
    for root, name in LIMITS.items():
        folder = root / f"stillvec-test-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            if (folder / name).exists():
                yield folder / name
                return
        finally:
            folder.rmdir()
    pytest.skip("No control group can be made here.")


@pytest.fixture
def call(tmp_path: Path, model: str) -> list[str]:
    (tmp_path / "corpus.txt").write_text("\n".join(sentences(120) * 80), "utf-8")
    words = f"distill {tmp_path / 'corpus.txt'} --teacher {model} --method aggregate --contexts all --min-count 1"
    return [*f"{words} --device cpu --threads 1 --quiet --out".split(), str(tmp_path / "out")]


def run(limit: Path, spare: int, moment: str, call: list[str]) -> str:
    """What the command says when it fails."""
    words = [sys.executable, "-c", JOINED, str(limit), str(spare), moment, *call]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1, (done.returncode, done.stderr)  # -9 is the kernel
    (sentence,) = done.stderr.splitlines()
    assert "memory" in sentence
    return sentence


def test_a_run_that_does_not_fit_into_its_group_is_refused_before_it_reads(limit: Path, call: list[str]) -> None:
    assert "STILLVEC_MEMORY_CHECK" in run(limit, RESERVE + (8 << 20), "now", call)
    assert not Path(call[-1]).exists()


def test_a_run_whose_group_becomes_too_small_is_continued_with_the_same_bytes(limit: Path, call: list[str]) -> None:
    assert "--resume" in run(limit, RESERVE - (8 << 20), "later", call)
    out = Path(call[-1])
    assert out.with_name("out.checkpoint").exists()
    assert not out.exists()
    assert main([*call, "--resume"]) == 0
    assert main([*call[:-1], str(out.with_name("undisturbed"))]) == 0
    for name in ("vectors.safetensors", "statistics.safetensors"):
        assert (out / name).read_bytes() == (out.with_name("undisturbed") / name).read_bytes()
