"""What interrupted runs leave: nothing half-written, nothing in $TMPDIR, and what was trained."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from error_checks import raises
from tiny_corpus import sentences

import stillvec
from stillvec.cli import main
from stillvec.errors import FormatError, StillvecError
from stillvec.files import remove_abandoned
from stillvec.result import Result

OLD = stillvec.WordVectors(["cat", "dog", "sun"], np.eye(3, dtype=np.float32))
NEW = stillvec.WordVectors(["sun", "cat", "dog"], np.eye(3, dtype=np.float32))


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(sentences(200)), "utf-8")
    return path


# ---- .npy and its words


@pytest.mark.parametrize("failing", ["v.npy", "v.words.txt"])
def test_a_table_never_has_the_words_of_another(failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stillvec.save(OLD, tmp_path / "v.npy")
    replace = Path.replace

    def fail(self: Path, to: Path) -> Path:
        if to.name == failing and self.name.endswith(".part"):
            raise OSError(5, "the disk went away")
        return replace(self, to)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", fail)
        with pytest.raises(OSError, match="went away"):
            stillvec.save(NEW, tmp_path / "v.npy", force=True)
    if failing == "v.npy":
        assert np.array_equal(stillvec.load(tmp_path / "v.npy")["dog"], OLD["dog"])
    else:
        with raises(FormatError, code="not-found", path=tmp_path / "v.words.txt"):
            stillvec.load(tmp_path / "v.npy")
    stillvec.save(NEW, tmp_path / "v.npy", force=True)
    assert np.array_equal(stillvec.load(tmp_path / "v.npy")["dog"], NEW["dog"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["v.npy", "v.words.txt"]


# ---- signals and $TMPDIR

SLOW = """
import sys, time
from stillvec.pipeline import training_run
write = training_run.TrainingRun._train
def slow(self, *given):
    print("training", flush=True)
    time.sleep(60)
    yield
training_run.TrainingRun._train = slow
from stillvec.cli import main
sys.exit(main(sys.argv[1:]))
"""


def restore_signals() -> None:
    for number in (signal.SIGINT, signal.SIGHUP):  # ignored in background jobs of a shell, and under nohup
        signal.signal(number, signal.SIG_DFL)


def start(text: Path, room: Path) -> Any:
    """A training that has just begun."""
    room.mkdir(exist_ok=True)
    call = ["train", str(text), "--method", "glove", "--min-count", "1", "--quiet", "--out", str(room.parent / "out")]
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, *call],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(room)},
        preexec_fn=restore_signals,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "training\n"
    assert len([*room.iterdir()]) == 1
    return process


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_cleans_up_as_an_interrupt_does(name: str, text: Path, tmp_path: Path) -> None:
    process = start(text, tmp_path / "room")
    process.send_signal(getattr(signal, name))
    error = process.communicate(timeout=60)[1]
    assert process.returncode == 128 + getattr(signal, name)
    assert "Traceback" not in error
    assert [*(tmp_path / "room").iterdir()] == []
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "cache") == ["room", "text.txt"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_what_a_killed_run_left_is_removed_by_the_next(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = start(text, tmp_path / "room")
    process.kill()
    process.communicate()
    assert len([*(tmp_path / "room").iterdir()]) == 1
    living = start(text, tmp_path / "room2")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "room"))
    remove_abandoned(tmp_path / "room")
    remove_abandoned(tmp_path / "room2")
    assert [*(tmp_path / "room").iterdir()] == []
    assert len([*(tmp_path / "room2").iterdir()]) == 1, "of a living run"
    living.terminate()
    living.communicate()


# ---- training keeps what it has


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stillvec.training.checkpoint._EVERY", 0.0)


def train(text: Path, tmp_path: Path, *more: str) -> int:
    call = ["train", str(text), "--min-count", "1", "--dim", "4", "--quiet", "--threads", "1"]
    return main([*call, "--context-cache", str(tmp_path / "store"), "--out", str(tmp_path / "out"), *more])


@pytest.mark.usefixtures("often")
def test_a_training_whose_result_cannot_be_written_is_resumed(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("numba")

    def fail(self: Result, *_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Result, "save", fail)
        assert train(text, tmp_path, "--method", "glove:epochs=3") == 1
    assert str(tmp_path / "out") in capsys.readouterr().err
    assert [*(tmp_path / "store").glob("training-*.safetensors")]
    assert train(text, tmp_path, "--method", "glove:epochs=3", "--resume") == 0
    assert not [*(tmp_path / "store").glob("training-*.safetensors")]


@pytest.mark.usefixtures("often")
def test_a_finished_method_is_not_trained_again(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    from stillvec.pipeline.training_run import TrainingRun

    both = ("--method", "glove:epochs=2,sent2vec:epochs=2")
    trained: list[str] = []
    once = TrainingRun._train

    def fail_in_second(self: TrainingRun, name: str, *given: Any) -> Any:
        trained.append(name)
        if trained == ["glove", "sent2vec"]:
            raise StillvecError("killed")
        return once(self, name, *given)

    monkeypatch.setattr(TrainingRun, "_train", fail_in_second)
    assert train(text, tmp_path, *both) == 1
    written = (tmp_path / "out" / "glove" / "manifest.json").stat().st_mtime_ns
    time.sleep(0.01)
    assert train(text, tmp_path, *both, "--resume") == 0
    assert trained == ["glove", "sent2vec", "sent2vec"]
    assert (tmp_path / "out" / "glove" / "manifest.json").stat().st_mtime_ns == written
    assert train(text, tmp_path, *both, "--resume", "--seed", "1", "--force") == 0
    assert trained[3:] == ["glove", "sent2vec"], "other settings are trained"


def test_a_signal_is_no_error_of_the_library_it_arrives_in(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """torch may raise an error of its own while an interrupt passes through it."""

    def interrupted(options: Any) -> int:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        except KeyboardInterrupt:
            raise StillvecError("trying to pop from empty mode stack") from None
        return 0

    monkeypatch.setattr("stillvec.cli.cache_command.run", interrupted)
    assert main(["cache"]) == 128 + signal.SIGTERM
    assert "interrupted" in capsys.readouterr().err
