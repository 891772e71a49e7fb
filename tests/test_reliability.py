"""Findings of a reliability review that do not belong to one package: each test failed before its fix."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_corpus import refused
from tiny_teachers import write_tiny_model

from stillvec import distill, refine
from stillvec.cli import main
from stillvec.encoding.context_store import check_room
from stillvec.errors import FormatError, StillvecError, TeacherError, UsageError
from stillvec.formats import load, save
from stillvec.formats.vector_table import MAX_CHECKED
from stillvec.pipeline.previous_result import report_damage
from stillvec.refinement.natural_alpha import NaturalAlpha
from stillvec.teachers import load_teacher
from stillvec.vectors import WordVectors
from stillvec.verbs.recipe import read_recipe

VECTORS = WordVectors(["a", "b"], np.ones((2, 4), np.float32))


def change_manifest(folder: Path, **facts: object) -> None:
    file = folder / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | facts), "utf-8")


@pytest.mark.parametrize("steps", [5, "center", {"step": "center"}, [1], ["center"], [None]])
def test_steps_of_another_type_in_a_manifest_are_reported(tmp_path: Path, steps: object) -> None:
    save(VECTORS, tmp_path / "v")
    change_manifest(tmp_path / "v", refined=steps)
    for call in (lambda: refine(tmp_path / "v", "center"), lambda: refine(VECTORS, [], like=tmp_path / "v")):
        with pytest.raises(FormatError) as caught:
            call()
        assert "refined" in str(caught.value)


@pytest.mark.parametrize("step", [{"step": []}, {"step": "center", "settings": 3}, {"settings": {}}])
def test_a_damaged_step_of_a_manifest_is_reported(tmp_path: Path, step: object) -> None:
    save(VECTORS, tmp_path / "v")
    change_manifest(tmp_path / "v", refined=[step])
    with pytest.raises(StillvecError):
        refine(VECTORS, [], like=tmp_path / "v")


@pytest.fixture
def teacher(tmp_path: Path) -> Path:
    write_tiny_model(tmp_path / "bert", "bert")
    return tmp_path / "bert"


def test_a_config_that_is_nested_too_deeply_is_reported(teacher: Path) -> None:
    (teacher / "config.json").write_text("[" * 100_000, "utf-8")
    with pytest.raises(TeacherError):
        load_teacher(str(teacher), device="cpu")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("key", ["num_hidden_layers", "n_layer"])
def test_a_million_layers_are_refused(teacher: Path, key: str) -> None:
    config = json.loads((teacher / "config.json").read_text("utf-8"))
    (teacher / "config.json").write_text(json.dumps(config | {key: 1_000_000}), "utf-8")
    with pytest.raises(TeacherError, match="1,000,000"):
        load_teacher(str(teacher), device="cpu")


def test_a_token_id_of_billions_is_refused(teacher: Path) -> None:
    tokenizer = json.loads((teacher / "tokenizer.json").read_text("utf-8"))
    tokenizer["model"]["vocab"]["damaged"] = 1 << 28
    (teacher / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    with pytest.raises(TeacherError, match="token ids"):
        load_teacher(str(teacher), device="cpu")


def test_weights_that_are_not_finite_are_refused_before_the_pass(teacher: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(teacher / "model.safetensors")
    name = next(name for name in weights if name.endswith("output.dense.weight"))
    weights[name][0, 0] = torch.nan
    save_file(weights, teacher / "model.safetensors", {"format": "pt"})
    with pytest.raises(TeacherError, match="NaN"):
        load_teacher(str(teacher), device="cpu")


def run_cli(*words: str | bytes, redirect: str = "", **environment: str) -> subprocess.CompletedProcess[bytes]:
    call = [os.fsencode(sys.executable), b"-m", b"stillvec", *map(os.fsencode, words)]
    shell = [b"sh", b"-c", b'"$@" ' + redirect.encode(), b"sh", *call]
    return subprocess.run(shell, capture_output=True, env=os.environ | environment, check=False)


def test_no_output_and_words_that_are_not_text_leave_no_traceback(tmp_path: Path) -> None:
    save(WordVectors(["ä", "b"], np.ones((2, 4), np.float32)), tmp_path / "v")
    path = str(tmp_path / "v")
    for call in (
        run_cli("info", path, redirect=">&-"),
        run_cli("nearest", path, b"\xff"),
        run_cli("nearest", path, "b", PYTHONIOENCODING="ascii"),
        run_cli("convert", path, str(tmp_path / "ä.vec"), PYTHONIOENCODING="ascii"),
    ):
        assert b"Traceback" not in call.stderr, call.stderr
    assert call.returncode == 0


def test_a_nul_in_a_recipe_is_reported(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text('[train]\ncorpus = "a"\nout = "a\\u0000b"\n', "utf-8")
    with pytest.raises(UsageError, match="path"):
        read_recipe(tmp_path / "r.toml")


def test_nan_that_loading_a_large_file_did_not_see_is_reported_when_used(tmp_path: Path) -> None:
    matrix = np.ones((MAX_CHECKED // 8, 16), np.float32)
    words = [f"w{row}" for row in range(len(matrix))]
    matrix[(row := 5_000), 3] = np.nan  # between two samples
    np.save(tmp_path / "v.npy", matrix)
    (tmp_path / "v.words.txt").write_text("\n".join(words), "utf-8")
    vectors = load(tmp_path / "v.npy")
    for use in (lambda: vectors[words[row]], lambda: vectors[[*words[:2], words[row]]], lambda: vectors.nearest("w1")):
        with pytest.raises(FormatError, match=words[row]):
            use()


def test_the_space_that_stays_free_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Usage", (), {"free": 73_400_000}))
    with pytest.raises(StillvecError, match=r"67\.1 MB"):
        check_room(tmp_path, 16_200_000)


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"2.0 2.0\na 1 2\n", "header"), (b"1 2\na 0,5 0,25\n", "0,5"), ("1 2\na ١ ٢\n".encode(), "a ")],
)
def test_a_text_that_is_almost_vectors_is_not_guessed(tmp_path: Path, content: bytes, what: str) -> None:
    (tmp_path / "v.txt").write_bytes(content)
    with pytest.raises(FormatError, match=what) as caught:
        load(tmp_path / "v.txt")
    assert caught.value.line in (1, 2)
    assert "truncated" not in str(caught.value)


def test_a_byte_order_mark_before_the_header_is_read_over(tmp_path: Path) -> None:
    (tmp_path / "v.vec").write_bytes(b"\xef\xbb\xbf1 2\na 1 2\n")
    assert load(tmp_path / "v.vec").words == ("a",)


def test_out_of_memory_is_one_sentence_with_the_stage(
    teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    (tmp_path / "c.txt").write_text("the old river and the bread\n" * 9, "utf-8")
    call = ["distill", str(tmp_path / "c.txt"), "--teacher", str(teacher), "--out", str(tmp_path / "o"), "--quiet"]
    for error in (MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate")):

        def fail(*arguments: object, error: Exception = error, **more: object) -> None:
            raise error

        monkeypatch.setattr("stillvec.learners.auto.Auto.finish", fail)
        message = refused(capsys, main([*call, "--method", "auto"]))
        assert "computing vectors (auto)" in message
        assert "--dry-run" in message
    monkeypatch.setattr("transformers.AutoModel.from_pretrained", fail)
    with pytest.raises(StillvecError) as caught:
        distill(tmp_path / "c.txt", teacher=str(teacher))
    assert caught.value.code == "out-of-memory"
    monkeypatch.setattr("stillvec.formats.load", fail)
    monkeypatch.setattr("stillvec.cli.nearest_command.load", fail)
    assert "memory" in refused(capsys, main(["nearest", "v", "a"]))


def _use_pool(connection: Any) -> None:
    from stillvec.corpus.text_chunk import TextChunk
    from stillvec.corpus.worker_pool import WorkerPool

    big: Any = ["x" * (1 << 22)]  # more than a pipe takes
    pool = WorkerPool(lambda chunk: big, 2)
    connection.send([process.pid for process in pool._processes])
    stream = pool.results(TextChunk(["a"]) for _ in range(100))
    next(stream, None)
    time.sleep(60)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_workers_end_when_their_parent_is_killed_while_they_answer() -> None:
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    parent = context.Process(target=_use_pool, args=(sender,))
    parent.start()
    workers = receiver.recv()
    time.sleep(1)
    assert parent.pid is not None
    os.kill(parent.pid, signal.SIGKILL)
    parent.join()
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline and any(map(_is_running, workers)):
        time.sleep(0.1)
    running = [worker for worker in workers if _is_running(worker)]
    for worker in running:
        os.kill(worker, signal.SIGKILL)
    assert not running


def _is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


INTERRUPTED_IMPORT = """
import runpy, sys

class Finder:
    def find_spec(self, name, *_):
        if name == "MODULE":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Finder())
runpy.run_module("stillvec", run_name="__main__")
"""


@pytest.mark.parametrize("module", ["stillvec.cli", "torch"])
def test_ctrl_c_during_an_import_is_one_line(module: str, tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_text("the old river\n", "utf-8")
    script = INTERRUPTED_IMPORT.replace("MODULE", module)
    command = [sys.executable, "-c", script, "distill", "c.txt", "--out", "o"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 130
    assert len(done.stderr.splitlines()) == 1
    assert "interrupted" in done.stderr


def test_a_reader_does_not_blame_the_file_when_memory_runs_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(VECTORS, tmp_path / "v.npy")
    save(VECTORS, tmp_path / "packed")
    change_manifest(tmp_path / "packed", stored="int8", words=2, dim=4)

    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(np, "load", fail)
    with pytest.raises(MemoryError):
        load(tmp_path / "v.npy")
    with pytest.raises(MemoryError):
        NaturalAlpha(contexts=str(tmp_path / "v.npy"))(VECTORS)
    (tmp_path / "v.npy").write_bytes(b"\x93NUMPY, damaged")  # parsing such a header may end in a MemoryError too
    with pytest.raises(FormatError):
        load(tmp_path / "v.npy")
    monkeypatch.setattr("stillvec.formats.stillvec_folder.unpack", fail)
    with pytest.raises(FormatError) as caught:
        load(tmp_path / "packed")
    assert caught.value.code == "out-of-memory"
    with pytest.raises(MemoryError), report_damage(tmp_path):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")


def test_a_run_under_a_limit_of_memory_ends_with_one_sentence(teacher: Path, tmp_path: Path) -> None:
    """The limit of ulimit -d, at the size of Python and torch, and some megabytes above what they take."""
    (tmp_path / "c.txt").write_text("the old river and the bread\n" * 9, "utf-8")
    script = (
        "import resource, sys; from pathlib import Path; import torch, transformers; from stillvec.cli import main; "
        "lines = Path('/proc/self/status').read_text().split('VmData:')[1]; "
        "size = int(lines.split()[0]) * 1024 + (40 << 20); "
        "resource.setrlimit(resource.RLIMIT_DATA, (size, size)); sys.exit(main(sys.argv[1:]))"
    )
    call = ["distill", "c.txt", "--teacher", str(teacher), "--out", "o", "--min-count", "1", "--quiet"]
    done = subprocess.run([sys.executable, "-c", script, *call], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "memory" in done.stderr
    assert not (tmp_path / "o").exists()
