"""A run that is killed goes on with --resume, to the bytes of one that was left alone."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from tiny_corpus import refused, sentences

import stillvec
from stillvec import memory
from stillvec.cli import main
from stillvec.encoding import BatchBudget
from stillvec.formats import read_manifest
from stillvec.pipeline import pass_checkpoint
from stillvec.pipeline.distillation_run import Run
from stillvec.pipeline.pass_checkpoint import PassCheckpoint

TEXTS = sentences(240)
FILES = ("vectors.safetensors", "statistics.safetensors", "vocabulary.tsv")
MANY = "auto,first_component,whitened_context,whitened_window,token_table,x2static"
PARAGRAPHS = "x2static:context=paragraph"

Call = Callable[..., list[str]]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many batches, and a checkpoint after each."""
    monkeypatch.setattr(BatchBudget, "for_teacher", lambda *_: BatchBudget(256, 32))
    monkeypatch.setattr(pass_checkpoint, "EVERY", 0.0)
    monkeypatch.setattr(pass_checkpoint, "_TIMES", 0)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    lines = [" ".join(TEXTS[at : at + 4]) for at in range(0, len(TEXTS), 4)]
    path.write_text("\n".join(lines), "utf-8")
    (tmp_path / "keep.txt").write_text("zebra\nnew york\n", "utf-8")  # which no sentence has
    return path


@pytest.fixture
def call(model: str, corpus: Path, tmp_path: Path) -> Call:
    def made(out: str, *more: object) -> list[str]:
        given = [
            "distill",
            corpus,
            "--teacher",
            model,
            "--out",
            tmp_path / out,
            "--context-cache",
            tmp_path / f"store-{out}",
        ]
        given += ["--include-words", tmp_path / "keep.txt", "--min-count", "1", "--device", "cpu", "--quiet", *more]
        return [str(each) for each in given]

    return made


def contents(folder: Path) -> dict[str, bytes]:
    """What must be the same: all but the manifest, which tells the time."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.name in FILES}


class Killed(BaseException):
    """Nothing catches it: the end of a process, played."""


@pytest.fixture
def stop(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Run, and be stopped right after a number of checkpoints."""

    def run(arguments: list[str], after: int) -> None:
        written: list[int] = []
        once = PassCheckpoint.write

        def write(self: PassCheckpoint, *given: Any) -> None:
            once(self, *given)
            written.append(1)
            if len(written) == after:
                raise Killed

        with monkeypatch.context() as patched:
            patched.setattr(PassCheckpoint, "write", write)
            with pytest.raises(Killed):
                main(arguments)

    return run


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("method", [MANY, PARAGRAPHS, "decontextualized"])
@pytest.mark.parametrize("contexts", ["2", "all"])
def test_a_run_stopped_in_any_part_of_the_pass_goes_on(
    call: Call, stop: Callable[..., None], tmp_path: Path, method: str, contexts: str
) -> None:
    given = ("--method", method, "--contexts", contexts)
    assert main(call("alone", *given)) == 0
    for after in (1, 7):
        stop(call("stopped", *given, "--resume"), after)
        assert (tmp_path / "stopped.checkpoint").exists()
        assert not (tmp_path / "stopped").exists()
    assert main(call("stopped", *given, "--resume")) == 0
    assert not (tmp_path / "stopped.checkpoint").exists()
    assert contents(tmp_path / "stopped") == contents(tmp_path / "alone") != {}
    folders = [next((tmp_path / name).rglob("manifest.json")).parent for name in ("alone", "stopped")]
    alone, stopped = (read_manifest(folder)["read"] for folder in folders)
    assert {**alone, "seconds": 0, "pieces_a_second": 0} == {**stopped, "seconds": 0, "pieces_a_second": 0}


@pytest.mark.usefixtures("small")
def test_ctrl_c_after_a_checkpoint_exits_with_130_and_names_resume(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write = PassCheckpoint.write

    def interrupt(self: PassCheckpoint, *arguments: Any) -> None:
        write(self, *arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(PassCheckpoint, "write", interrupt)
        assert main(call("stopped", "--method", "aggregate")) == 130
    assert "--resume" in capsys.readouterr().err
    assert not (tmp_path / "stopped").exists()
    assert main(call("stopped", "--method", "aggregate", "--resume")) == 0


@pytest.mark.usefixtures("small")
def test_what_was_read_is_not_read_again(
    call: Call, stop: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from stillvec.encoding import forward_pass

    read: list[int] = []
    one_reader = ("--method", "aggregate", "--threads", 1)  # several would read ahead
    once = forward_pass.encode_batch
    monkeypatch.setattr(forward_pass, "encode_batch", lambda *given: (read.append(1), once(*given))[1])
    assert main(call("alone", *one_reader)) == 0
    whole = len(read)
    read.clear()
    stop(call("out", *one_reader), 5)
    assert len(read) == 5
    assert main(call("out", *one_reader, "--resume")) == 0
    assert len(read) == whole


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("after", [1, 4])
def test_a_run_whose_threads_read_ahead_goes_on_after_the_last_batch_it_added(
    call: Call, stop: Callable[..., None], tmp_path: Path, after: int
) -> None:
    assert main(call("alone", "--method", "aggregate", "--threads", 1)) == 0
    stop(call("stopped", "--method", "aggregate", "--threads", 3, "--resume"), after)
    assert main(call("stopped", "--method", "aggregate", "--threads", 3, "--resume")) == 0
    assert contents(tmp_path / "stopped") == contents(tmp_path / "alone") != {}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("threads", [1, 2])
def test_another_number_of_threads_is_said(call: Call, stop: Callable[..., None], capsys: Any, threads: int) -> None:
    stop(call("out", "--method", "aggregate", "--threads", 1), 2)
    assert main(call("out", "--method", "aggregate", "--threads", threads, "--resume")) == 0
    assert ("threads" in capsys.readouterr().err) == (threads == 2)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (["--min-count", "2"], "min_count of the stopped run, 1, got 2"),
        (["--method", "first_component"], "method of the stopped run, aggregate, got first_component"),
        (["--contexts", "all"], "contexts of the stopped run, 20, got none"),
        (["--seed", "3"], "seed of the stopped run, 0, got 3"),
        (["--include-words", "corpus.txt"], "the keep of "),
        (["--precision", "bf16"], "precision of the stopped run, fp32, got bf16"),
        ([], "the corpus of "),
    ],
)
def test_another_corpus_or_setting_is_refused_with_what_differs(
    call: Call,
    stop: Callable[..., None],
    tmp_path: Path,
    capsys: Any,
    monkeypatch: pytest.MonkeyPatch,
    more: list[str],
    expected: str,
) -> None:
    stop(call("out", "--method", "aggregate"), 2)
    before = (tmp_path / "out.checkpoint").read_bytes()
    if not more:
        (tmp_path / "corpus.txt").write_text("\n".join(TEXTS[:200]), "utf-8")
    monkeypatch.chdir(tmp_path)
    given = call("out", "--method", "aggregate", "--resume", *more)
    said = refused(capsys, main(given))
    assert expected in said
    assert "leave out --resume" in said
    assert (tmp_path / "out.checkpoint").read_bytes() == before
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("small")
def test_without_resume_a_run_says_that_it_starts_again(
    call: Call, stop: Callable[..., None], tmp_path: Path, capsys: Any
) -> None:
    stop(call("out", "--method", "aggregate"), 2)
    loud = [each for each in call("out", "--method", "aggregate") if each != "--quiet"]
    assert main(loud) == 0
    assert "starting over" in capsys.readouterr().err
    assert not (tmp_path / "out.checkpoint").exists()


@pytest.mark.usefixtures("small")
def test_half_a_checkpoint_is_nothing_to_go_on_from(
    call: Call, stop: Callable[..., None], tmp_path: Path, capsys: Any
) -> None:
    assert main(call("alone", "--method", "aggregate")) == 0
    stop(call("out", "--method", "aggregate"), 3)
    whole = (tmp_path / "out.checkpoint").read_bytes()
    (tmp_path / ".out.checkpoint.part").write_bytes(whole[: len(whole) // 2])  # as a killed run leaves it
    assert main(call("out", "--method", "aggregate", "--resume")) == 0
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")
    assert not (tmp_path / ".out.checkpoint.part").exists()
    (tmp_path / "out.checkpoint").write_bytes(whole[: len(whole) // 2])  # as a broken disk leaves it
    assert "not a readable checkpoint" in refused(capsys, main(call("out", "--resume")))
    at = 8 + int.from_bytes(whole[:8], "little")  # of the first number of the state
    (tmp_path / "other.checkpoint").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    arguments = call("other", "--method", "aggregate", "--resume")
    assert "not a readable checkpoint" in refused(capsys, main(arguments))


@pytest.mark.usefixtures("small")
def test_a_checkpoint_with_a_stage_of_another_version_is_refused(
    call: Call, stop: Callable[..., None], tmp_path: Path, capsys: Any
) -> None:
    stop(call("out", "--method", "aggregate"), 3)
    arrays = load_file(tmp_path / "out.checkpoint")
    facts = json.loads(bytes(arrays.pop("facts")))
    PassCheckpoint(tmp_path / "out").write(facts, lambda: {**arrays, "way/own-1": arrays["way/corpus"]})
    assert "not a readable checkpoint" in refused(capsys, main(call("out", "--method", "aggregate", "--resume")))
    PassCheckpoint(tmp_path / "out").write(facts, lambda: arrays)
    assert main(call("out", "--method", "aggregate", "--resume")) == 0


@pytest.mark.usefixtures("small")
def test_a_run_that_was_never_stopped_takes_resume_as_well(call: Call, tmp_path: Path) -> None:
    assert main(call("alone", "--method", "aggregate")) == 0
    assert main(call("out", "--method", "aggregate", "--resume")) == 0
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")


@pytest.mark.parametrize(("took", "wait"), [(0.1, 30.0), (2.0, 66.0), (3.0, 99.0)])
def test_checkpoints_are_half_a_minute_apart_or_more_if_they_take_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, took: float, wait: float
) -> None:
    now = [100.0]
    monkeypatch.setattr(pass_checkpoint.time, "perf_counter", lambda: now[0])
    checkpoint = PassCheckpoint(tmp_path / "out")

    def slow() -> dict[str, np.ndarray]:
        now[0] += took
        return {"numbers": np.arange(3)}

    now[0] += 14
    assert not checkpoint.due(finished=True)
    now[0] += 2
    assert checkpoint.due(finished=True)
    assert not checkpoint.due()
    now[0] += 14
    assert checkpoint.due()
    checkpoint.write({}, slow)
    now[0] += wait - 1
    assert not checkpoint.due()
    now[0] += 2
    assert checkpoint.due()


# ---- a full disk


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Writing safetensors under a path with this in it fails."""

    def fill(where: str) -> None:
        for module in ("stillvec.pipeline.pass_checkpoint", "stillvec.formats.stillvec_folder"):
            once = getattr(sys.modules[module], "write_tensors")  # noqa: B009

            def write(path: Path, arrays: Any, *given: Any, once: Any = once) -> None:
                once(path, arrays, *given)
                if where in path.name:
                    path.write_bytes(path.read_bytes()[:100])
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

            monkeypatch.setattr(f"{module}.write_tensors", write)

    return fill


@pytest.mark.usefixtures("small")
def test_if_a_checkpoint_does_not_fit_on_the_disk_the_run_warns_once_and_continues(
    call: Call, full_disk: Callable[[str], None], tmp_path: Path, capsys: Any
) -> None:
    assert main(call("alone", "--method", "aggregate")) == 0
    full_disk("checkpoint")
    assert main(call("out", "--method", "aggregate")) == 0
    stderr = capsys.readouterr().err
    assert stderr.count("Could not write the checkpoint") == 1
    assert "No space left" in stderr
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")
    assert [path.name for path in tmp_path.iterdir() if "checkpoint" in path.name] == []


@pytest.mark.usefixtures("small")
def test_if_the_result_does_not_fit_on_the_disk_the_checkpoint_stays(
    call: Call, full_disk: Callable[[str], None], tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(call("alone", "--method", "aggregate")) == 0
    with monkeypatch.context() as patched:
        full_disk("vectors.safetensors")
        stderr = refused(capsys, main(call("out", "--method", "aggregate")))
        patched.undo()
    assert "could not be written: No space left" in stderr
    assert "--resume continues" in stderr
    assert not (tmp_path / "out").exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.fixture
def little_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 300 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(place)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("There is no mount here.")
    if done.returncode:
        pytest.skip("No small disk can be mounted here.")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.usefixtures("small")
def test_on_a_full_disk_the_run_continues_once_there_is_space(
    call: Call, little_disk: Path, tmp_path: Path, capsys: Any
) -> None:
    assert main(call("alone", "--method", MANY)) == 0
    given = call("out", "--method", MANY)
    given[given.index("--out") + 1] = str(little_disk / "out")
    given[given.index("--context-cache") + 1] = str(tmp_path / "store")
    (little_disk / "ballast").write_bytes(bytes(100_000))
    assert main(given) == 1
    note, error = capsys.readouterr().err.splitlines()  # of the checkpoint, when it happens, and of the result
    assert note.startswith("Note: ")
    assert "No space left" in error
    assert [path.name for path in little_disk.iterdir() if path.name.startswith(".")] == []
    subprocess.run(["mount", "-o", "remount,size=20m", str(little_disk)], check=True)
    assert main([*given, "--resume"]) == 0
    assert contents(little_disk / "out") == contents(tmp_path / "alone")


# ---- contexts on disk


@pytest.mark.usefixtures("small")
def test_half_a_store_waits_for_its_run_and_for_no_other(call: Call, stop: Callable[..., None], tmp_path: Path) -> None:
    store = ["--context-cache", tmp_path / "store"]
    stop(call("out", "--method", "x2static", *store), 3)
    (half,) = (tmp_path / "store").glob(".*.part")
    assert main(call("other", "--method", "attentive_skipgram", *store)) == 0
    assert half.exists(), "what a checkpoint goes on from is not swept"
    for file in half.glob("*.*"):  # as a run leaves it that was killed between two checkpoints
        file.write_bytes(file.read_bytes() + bytes(96))
    assert main(call("out", "--method", "x2static", *store, "--resume")) == 0
    assert main(call("alone", "--method", "x2static")) == 0
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")
    assert [*(tmp_path / "store").glob(".*.part")] == []
    stop(call("out", "--method", "x2static:directions=2", *store, "--seed", "1", "--force"), 3)
    (half,) = (tmp_path / "store").glob(".*.part")
    (tmp_path / "out.checkpoint").unlink()
    os.rename(half, half.with_name(half.name.replace(f".{os.getpid()}.", ".999999999.")))  # its process is gone
    assert main(call("other", "--method", "attentive_skipgram", *store, "--seed", "2", "--force")) == 0
    assert [*(tmp_path / "store").glob(".*.part")] == []


@pytest.mark.usefixtures("small")
def test_a_store_that_is_missing_or_elsewhere_is_reported(
    call: Call, stop: Callable[..., None], tmp_path: Path, capsys: Any
) -> None:
    stop(call("out", "--method", "x2static"), 3)
    elsewhere = refused(
        capsys, main(call("out", "--method", "x2static", "--resume", "--context-cache", tmp_path / "b"))
    )
    assert f"are in {tmp_path / 'store-out'}; give it as --context-cache" in elsewhere
    for file in (tmp_path / "store-out").glob(".*.part/*.f16"):
        file.unlink()
    assert "are gone; leave out --resume" in refused(capsys, main(call("out", "--method", "x2static", "--resume")))


@pytest.mark.usefixtures("small")
def test_streaming_training_starts_again_and_says_so(call: Call, tmp_path: Path, capsys: Any) -> None:
    given = ("--method", "x2static:stream=true")
    assert main(call("alone", *given)) == 0
    assert not (tmp_path / "alone.checkpoint").exists()
    assert main(call("out", *given, "--resume")) == 0
    assert "starts over" in capsys.readouterr().err
    assert contents(tmp_path / "out") == contents(tmp_path / "alone") != {}


@pytest.mark.usefixtures("small")
def test_adding_to_a_result_continues_and_is_never_done_twice(
    call: Call, stop: Callable[..., None], tmp_path: Path, capsys: Any
) -> None:
    assert main(call("first", "--method", "aggregate")) == 0
    adding = ("--method", "aggregate", "--add-to", tmp_path / "first")
    assert main(call("alone", *adding)) == 0
    stop(call("out", *adding), 4)
    kept = (tmp_path / "out.checkpoint").read_bytes()
    assert main(call("out", *adding, "--resume")) == 0
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")
    (tmp_path / "out.checkpoint").write_bytes(kept)
    os.utime(tmp_path / "first" / "manifest.json")
    manifest = json.loads((tmp_path / "first" / "manifest.json").read_text())
    (tmp_path / "first" / "manifest.json").write_text(json.dumps({**manifest, "made": "later"}))
    assert "add_to of the stopped run, first" in refused(capsys, main(call("out", *adding, "--resume")))


def test_a_run_without_an_output_keeps_no_checkpoint() -> None:
    from stillvec.pipeline.settings import Distillation

    assert Run(Distillation(), None).checkpoint is None


@pytest.mark.usefixtures("small")
def test_a_dry_run_of_a_stopped_run_is_of_what_remains_and_writes_nothing(
    call: Call, stop: Callable[..., None], tmp_path: Path, corpus: Path, model: str
) -> None:
    given: dict[str, Any] = {"teacher": model, "method": MANY, "min_count": 1, "device": "cpu", "contexts": None}
    given |= {"include_words": ["zebra", "new york"], "out": tmp_path / "stopped"}
    given["context_cache"] = tmp_path / "store-stopped"
    whole = stillvec.plan(corpus, **given)
    stop(call("stopped", "--method", MANY, "--contexts", "all"), 25)
    before = sorted(tmp_path.rglob("*"))
    rest = stillvec.plan(corpus, **given, resume=True)
    assert sorted(tmp_path.rglob("*")) == before
    assert 0 < rest.n_tokens < whole.n_tokens
    assert (rest.n_words, rest.disk) == (whole.n_words, pytest.approx(whole.disk, rel=0.1))
    assert main([*call("stopped", "--method", MANY, "--contexts", "all", "--resume"), "--dry-run"]) == 0
    assert main(call("stopped", "--method", MANY, "--contexts", "all", "--resume")) == 0


@pytest.mark.usefixtures("small")
def test_a_dry_run_refuses_a_checkpoint_of_other_settings(
    call: Call, stop: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    stop(call("stopped", "--method", "aggregate"), 1)
    arguments = call("stopped", "--method", "aggregate", "--resume", "--dry-run", "--seed", "5")
    assert "seed" in refused(capsys, main(arguments))


@pytest.mark.usefixtures("small")
def test_a_run_that_memory_is_short_for_writes_a_checkpoint_and_stops(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--method", "auto,x2static", "--contexts", "all")
    assert main(call("alone", *given)) == 0
    capsys.readouterr()
    free = iter([1 << 40] * 12)  # then none
    with monkeypatch.context() as patched:
        patched.setattr(memory, "free_memory", lambda: next(free, 0))
        patched.setattr(memory, "_WATCH_SECONDS", 0.0)
        patched.setattr(pass_checkpoint, "EVERY", 1000.0)
        message = refused(capsys, main(call("stopped", *given)))
    assert "--resume" in message
    assert "memory" in message
    assert (tmp_path / "stopped.checkpoint").exists()
    assert not (tmp_path / "stopped").exists()
    assert main(call("stopped", *given, "--resume")) == 0
    assert contents(tmp_path / "stopped") == contents(tmp_path / "alone") != {}


def test_locks_of_a_killed_run_of_all_layers_are_no_results(call: Call, tmp_path: Path) -> None:
    (tmp_path / "layers").mkdir()
    (tmp_path / "layers" / ".aggregate-layer-0.lock").touch()
    assert main(call("layers", "--method", "aggregate", "--layer", "all", "--contexts", "2")) == 0
