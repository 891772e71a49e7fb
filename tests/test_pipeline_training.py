"""Methods that train, from the command line: stores that are used again, stops that can be gone on from, the stream."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tiny_corpus import likeness, refused, sentences
from tiny_teachers import write_tiny_model

from stillvec import distill, distill_all
from stillvec.cli import main
from stillvec.encoding.context_store import Contexts
from stillvec.errors import StillvecError
from stillvec.files import cache_folder
from stillvec.formats import load, read_manifest
from stillvec.learners import context_blocks, trained_learner, training_loop
from stillvec.teachers import Teacher

TEXTS = sentences(96)
METHODS = ["x2static", "attentive_skipgram", "context_to_vec"]
Distil = Callable[..., int]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("training")
    write_tiny_model(folder / "teacher", "bert")
    write_tiny_model(folder / "other-teacher", "bert", seed=1)
    texts = {"lines": TEXTS, "other": [*TEXTS[1:], TEXTS[0]]}
    texts["paragraphs"] = [" ".join(TEXTS[at : at + 4]) for at in range(0, 96, 4)]
    for name, lines in texts.items():
        (folder / f"{name}.txt").write_text("\n".join(lines), "utf-8")
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Where $STILLVEC_CACHE points to in every test."""
    return tmp_path / "cache"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def arguments(directory: Path, out: Path, method: str, *more: object, corpus: str = "lines") -> list[str]:
    given = [
        "distill",
        directory / f"{corpus}.txt",
        "--teacher",
        directory / "teacher",
        "--out",
        out,
        "--min-count",
        "1",
    ]
    return [*map(str, given), "--method", method, *map(str, more)]


@pytest.fixture
def distil(directory: Path, out: Path) -> Distil:
    def call(method: str, *more: object, to: Path = out, corpus: str = "lines") -> int:
        return main(arguments(directory, to, method, "--quiet", "--force", *more, corpus=corpus))

    return call


def stores(folder: Path) -> list[str]:
    """Whole ones; what is not whole begins with a dot."""
    return sorted(path.name for path in folder.iterdir() if path.name[0] != ".") if folder.exists() else []


def leftovers(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob(".*")) if folder.exists() else []


@pytest.fixture
def nobody_reads(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def fail(*_: object) -> None:
        raise AssertionError("the teacher was asked")

    return lambda: monkeypatch.setattr(Teacher, "states", fail)


# ---- the store is used again


@pytest.mark.parametrize("method", [*METHODS, "x2static:context=paragraph"])
def test_a_second_run_with_other_settings_does_not_ask_the_teacher(
    method: str, distil: Distil, cache: Path, out: Path, nobody_reads: Callable[[], None], capsys: Any
) -> None:
    assert distil(method, corpus="paragraphs") == 0
    assert "The teacher read " in capsys.readouterr().out
    assert read_manifest(out)["read"]["pieces"] > 0
    first = load(out)
    (name,) = stores(cache)
    nobody_reads()
    comma = "," if ":" in method else ":"
    assert distil(f"{method}{comma}rate=0.05,epochs=3", corpus="paragraphs") == 0
    stdout = capsys.readouterr().out.splitlines()
    assert "The teacher was not run: its contexts were cached by an earlier run." in stdout
    assert read_manifest(out)["read"]["pieces"] == 0
    assert not np.allclose(load(out).matrix, first.matrix, atol=1e-3)
    assert distil(method, corpus="paragraphs") == 0
    assert load(out).matrix.tobytes() == first.matrix.tobytes(), "from the store it is the same"
    assert stores(cache) == [name]
    assert leftovers(cache) == []


def test_methods_share_what_they_can(
    distil: Distil, cache: Path, out: Path, nobody_reads: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: list[int] = []
    states = Teacher.states
    with monkeypatch.context() as patch:
        patch.setattr(
            Teacher, "states", lambda self, ids, *rest: (requested.append(len(ids)), states(self, ids, *rest))[1]
        )
        assert distil("x2static,x2static:epochs=2,attentive_skipgram,context_to_vec,aggregate") == 0
    assert sum(requested) == 96, "every sentence once"
    assert len(stores(cache)) == 2, "without the states of words, and with them"
    assert sorted(path.name for path in out.iterdir()) == [
        "aggregate", "attentive_skipgram", "context_to_vec", "x2static", "x2static-2",
    ]  # fmt: skip
    nobody_reads()
    for method in METHODS:
        assert distil(method, to=out.with_name("alone")) == 0
        alone, together = load(out.with_name("alone")), load(out / method)
        assert alone.matrix.tobytes() == together.matrix.tobytes(), method


def test_methods_without_a_store_still_get_their_statistics(distil: Distil, out: Path) -> None:
    """The pass goes on for others where the contexts of one are kept already."""
    assert distil("x2static") == 0
    first = load(out).matrix.tobytes()
    shutil.rmtree(out)
    assert distil("x2static,aggregate") == 0
    assert read_manifest(out / "aggregate")["read"]["sentences"] == 96
    assert load(out / "x2static").matrix.tobytes() == first
    assert distil("aggregate", to=out.with_name("plain")) == 0
    assert load(out / "aggregate").matrix.tobytes() == load(out.with_name("plain")).matrix.tobytes()


OTHER: dict[str, list[str]] = {
    "a layer": ["--layer", "1"],
    "a vocabulary": ["--max-words", "40"],
    "capitals": ["--cased"],
    "a seed": ["--seed", "1"],
    "contexts": ["--contexts", "4"],
    "all contexts": ["--contexts", "all"],
    "a precision": ["--precision", "bf16"],
}


def test_what_the_contexts_depend_on_has_a_store_of_its_own(
    distil: Distil, cache: Path, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert distil("x2static") == 0
    count = 1
    calls = [(["x2static", *given], "lines") for given in OTHER.values()]
    calls += [(["x2static"], "other"), (["x2static", "--teacher", str(directory / "other-teacher")], "lines")]
    for call, corpus in calls:
        capsys.readouterr()
        assert distil(*call, corpus=corpus) == 0
        count += 1
        assert "The teacher read" in capsys.readouterr().out, call
        assert len(stores(cache)) == count, call
    assert distil("x2static", "--contexts", "all", "--seed", "5") == 0
    assert len(stores(cache)) == count, "where all is read, there is nothing to choose by a seed"


def test_where_everything_is_read_a_seed_only_trains_otherwise(distil: Distil, out: Path) -> None:
    made = []
    for seed in (0, 1):
        assert distil("x2static", "--contexts", "all", "--seed", seed) == 0
        made.append(load(out).matrix)
    assert not np.array_equal(*made)


def test_the_same_text_elsewhere_is_the_same_corpus(
    distil: Distil, directory: Path, cache: Path, tmp_path: Path, nobody_reads: Callable[[], None]
) -> None:
    assert distil("x2static") == 0
    shutil.copy(directory / "lines.txt", tmp_path / "copy.txt")
    nobody_reads()
    again = arguments(directory, tmp_path / "copied", "x2static", "--quiet")
    again[1] = str(tmp_path / "copy.txt")
    assert main(again) == 0
    assert len(stores(cache)) == 1


# ---- where it lies


def test_the_store_is_in_the_given_folder(distil: Distil, cache: Path, tmp_path: Path, monkeypatch: Any) -> None:
    assert distil("x2static", "--context-cache", tmp_path / "deep" / "mine") == 0
    assert len(stores(tmp_path / "deep" / "mine")) == 1
    assert not cache.exists()
    monkeypatch.setenv("STILLVEC_CACHE", str(tmp_path / "another"))
    assert distil("x2static") == 0
    assert stores(tmp_path / "another") == stores(tmp_path / "deep" / "mine")


def test_by_default_the_store_is_in_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("STILLVEC_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "stillvec"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "stillvec"


def test_in_python_too(directory: Path, tmp_path: Path, nobody_reads: Callable[[], None]) -> None:
    given = {
        "teacher": str(directory / "teacher"),
        "method": "x2static",
        "min_count": 1,
        "context_cache": tmp_path / "mine",
    }
    seen: list[str] = []
    first = distill(directory / "lines.txt", progress=lambda step: seen.append(step.note), **given)
    assert any(re.match(r"contexts will take about \d+\.\d MB in ", note) for note in seen)
    assert len(stores(tmp_path / "mine")) == 1
    nobody_reads()
    again = distill(directory / "lines.txt", resume=True, **given)
    assert not isinstance(first, dict)
    assert not isinstance(again, dict)
    assert first.matrix.tobytes() == again.matrix.tobytes()


def test_methods_that_do_not_train_keep_no_contexts(distil: Distil, cache: Path) -> None:
    assert distil("auto,aggregate,token_table") == 0
    assert not cache.exists()


def test_a_store_that_is_damaged_is_refused_in_one_line(distil: Distil, cache: Path, capsys: Any) -> None:
    assert distil("x2static") == 0
    (name,) = stores(cache)
    file = cache / name / "contexts.f16"
    file.write_bytes(file.read_bytes()[:-100])
    assert f"remove {cache / name}" in refused(capsys, distil("x2static"))
    (cache / name / "store.json").write_text("[]", "utf-8")
    assert "not a context cache; remove it" in refused(capsys, distil("x2static"))
    shutil.rmtree(cache / name)
    assert distil("x2static") == 0
    assert Contexts.open(cache / name).contexts.shape == (96, 16)


def test_too_small_a_disk_is_refused_before_the_teacher_reads(
    distil: Distil,
    cache: Path,
    out: Path,
    nobody_reads: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(total=10**9, used=0, free=5 * 10**7))
    nobody_reads()
    stderr = refused(capsys, distil("attentive_skipgram"))
    assert re.search(r"need about 0\.\d MB", stderr)
    assert "50.0 MB free" in stderr
    assert "--context-cache" in stderr
    assert not cache.exists()
    assert not out.exists()


@pytest.mark.parametrize("where", ["the pass", "the training"])
def test_ctrl_c_leaves_nothing_that_looks_whole_but_is_not(
    where: str, distil: Distil, cache: Path, out: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if where == "the pass":
            patch.setattr(Teacher, "states", stop)
        else:
            patch.setattr(training_loop, "train_block", stop)
        assert "interrupted" in refused(capsys, distil("x2static"))
    assert len(stores(cache)) == (where == "the training"), "what was kept serves the next run"
    assert leftovers(cache) == []
    assert not out.exists()
    assert distil("x2static") == 0


# ---- a run that is killed

KILLED = """
import json, os, signal, sys, time
from transformers import AutoConfig, AutoModel, AutoTokenizer, BertModel  # once, for all that is forked
from stillvec.learners import context_blocks
from stillvec.training import checkpoint
from stillvec.training.checkpoint import Checkpoint
from stillvec.teachers import Teacher
from stillvec.encoding import BatchBudget
from stillvec.pipeline import pass_checkpoint
from stillvec.cli import main

def patch(owner, name, after, here):
    seen, done = [], getattr(owner, name)
    def watched(*given):
        found = done(*given)
        seen.append(1)
        if len(seen) == after:
            os.write(here, b"here")
            time.sleep(600)
        return found
    setattr(owner, name, watched)

def kill_child(where, call):
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        if where == "pass":
            patch(Teacher, "states", 5, writer)
        else:
            patch(Checkpoint, "write", 3, writer)
        os._exit(main(call))
    os.close(writer)
    line = os.read(reader, 4).decode()
    os.kill(child, signal.SIGKILL)
    return line, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

context_blocks.BLOCK_SENTENCES, checkpoint._EVERY = 20, 0.0
BatchBudget.for_teacher = classmethod(lambda cls, *_: cls(128, 16))
pass_checkpoint.EVERY = 1e9  # however slow the machine is, the pass writes no checkpoint
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
for line in sys.stdin:
    print(json.dumps(kill_child(*json.loads(line))), file=answers, flush=True)
"""


@pytest.fixture(scope="module")
def killer() -> Iterator[subprocess.Popen[str]]:
    """A process that has imported all, and forks runs that it ends with kill -9 when they are in the midst of it."""
    pipe, settings = subprocess.PIPE, {**os.environ, "TOKENIZERS_PARALLELISM": "false"}
    with subprocess.Popen([sys.executable, "-c", KILLED], stdin=pipe, stdout=pipe, text=True, env=settings) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture
def kill_in(killer: subprocess.Popen[str], cache: Path) -> Callable[[str, list[str]], None]:
    def kill(where: str, call: list[str]) -> None:
        assert killer.stdin is not None
        assert killer.stdout is not None
        print(json.dumps([where, [*call, "--context-cache", str(cache)]]), file=killer.stdin, flush=True)
        assert json.loads(killer.stdout.readline()) == ["here", -signal.SIGKILL]

    return kill


def test_a_run_killed_in_the_pass_leaves_no_store_and_the_next_one_sweeps(
    distil: Distil, directory: Path, cache: Path, out: Path, kill_in: Callable[[str, list[str]], None]
) -> None:
    kill_in("pass", arguments(directory, out, "attentive_skipgram", "--quiet"))
    assert stores(cache) == []
    parts = [path for path in cache.iterdir() if path.is_dir()]
    assert len(parts) == 1
    assert not (parts[0] / "store.json").exists()
    assert not out.exists()
    assert distil("x2static") == 0, "another store sweeps as well"
    assert leftovers(cache) == []
    assert distil("attentive_skipgram") == 0
    assert len(stores(cache)) == 2
    assert read_manifest(out)["read"]["sentences"] == 96


def test_a_run_killed_in_training_is_gone_on_with(
    distil: Distil,
    directory: Path,
    cache: Path,
    out: Path,
    kill_in: Callable[[str, list[str]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    method = "context_to_vec:epochs=2,batch=4,dim=8"
    kill_in("training", arguments(directory, out, method, "--quiet"))
    (name,) = stores(cache)
    (checkpoint,) = (cache / name).glob("training-*.safetensors")
    kept = checkpoint.read_bytes()
    monkeypatch.setattr(context_blocks, "BLOCK_SENTENCES", 20)
    trained: list[int] = []
    once = training_loop.train_block
    monkeypatch.setattr(training_loop, "train_block", lambda *given: (trained.append(given[3]), once(*given))[1])
    assert distil(method, "--resume", to=out.with_name("resumed")) == 0
    assert trained == [*range(3, 10)]
    assert read_manifest(out.with_name("resumed"))["read"]["pieces"] == 0
    assert not checkpoint.exists()
    trained.clear()
    checkpoint.write_bytes(kept)
    assert distil(method) == 0
    assert trained == [*range(10)], "without --resume, from the beginning"
    assert not checkpoint.exists()
    for file in ("vectors.safetensors", "model.safetensors"):
        assert (out / file).read_bytes() == (out.with_name("resumed") / file).read_bytes(), file
    assert read_manifest(out)["notes"] == read_manifest(out.with_name("resumed"))["notes"]
    checkpoint.write_bytes(kept[:-10])
    with pytest.raises(StillvecError, match="Cannot read the checkpoint"):
        distill(
            directory / "lines.txt", teacher=str(directory / "teacher"), method=method, min_count=1, resume=True,
        )  # fmt: skip


# ---- in the stream


@pytest.mark.parametrize("method", METHODS)
def test_in_the_stream_no_store_is_written_and_the_result_is_alike(
    method: str, distil: Distil, cache: Path, out: Path, tmp_path: Path
) -> None:
    settings = "batch=8,directions=0,start=closed,whiten=true,bias=true,rate=1e-3"
    settings += ",subsample=1e-4" if method == "x2static" else ""
    settings += "" if method == "x2static" else ",projection_rate=0,include_center=true,optimizer=adam"
    assert distil(f"{method}:{settings},stream=true") == 0
    assert not cache.exists()
    assert distil(f"{method}:{settings},stream=true", to=tmp_path / "again") == 0
    assert distil(f"{method}:{settings},epochs=1", to=tmp_path / "kept") == 0
    assert distil(f"{method}:{settings},epochs=0", to=tmp_path / "start") == 0
    stream, again, kept, start = (
        load(folder) for folder in (out, tmp_path / "again", tmp_path / "kept", tmp_path / "start")
    )
    assert stream.words == kept.words
    assert stream.matrix.tobytes() == again.matrix.tobytes()
    assert not np.allclose(stream.matrix, start.matrix, atol=1e-4), "it has learnt"
    ours, theirs = (likeness(np.array(each.matrix)).ravel() for each in (stream, kept))
    assert np.corrcoef(ours, theirs)[0, 1] > 0.98
    assert read_manifest(out)["notes"].keys() == read_manifest(tmp_path / "kept")["notes"].keys() == {"loss"}
    one, two = (read_manifest(folder)["notes"]["loss"] for folder in (out, tmp_path / "kept"))
    assert one == pytest.approx(two, rel=0.2)
    assert sorted(path.name for path in out.iterdir()) == sorted(path.name for path in (tmp_path / "kept").iterdir())


def test_in_the_stream_many_shards_are_learnt(distil: Distil, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ways: list[tuple[float, float]] = []
    once = training_loop.train_block

    def watched(model: Any, block: Any, schedule: Any, number: int, span: tuple[float, float], monitor: Any) -> Any:
        assert number == len(ways)
        ways.append(span)
        return once(model, block, schedule, number, span, monitor)

    monkeypatch.setattr(trained_learner, "train_block", watched)
    monkeypatch.setattr(context_blocks, "BLOCK_SENTENCES", 20)
    monkeypatch.setattr(
        "stillvec.encoding.batch_loader.BatchBudget.for_teacher", classmethod(lambda cls, *_: cls(128, 16))
    )
    assert distil("x2static:stream=true", "--max-words", "40", "--contexts", "all") == 0
    assert len(ways) >= 4
    assert ways[0][0] == 0.0
    assert [begun for begun, _ in ways[1:]] == [ended for _, ended in ways[:-1]]
    assert ways[-1][1] == pytest.approx(1.0), "unknown words do not make the way shorter"


def test_the_stream_serves_many_in_one_pass(distil: Distil, cache: Path, out: Path) -> None:
    assert distil("x2static:stream=true,attentive_skipgram:stream=true,x2static,aggregate") == 0
    assert len(stores(cache)) == 1
    for method in ("x2static:stream=true", "attentive_skipgram:stream=true", "aggregate"):
        assert distil(method, to=out.with_name("alone")) == 0
        alone = load(out.with_name("alone")).matrix
        assert load(out / method.partition(":")[0]).matrix.tobytes() == alone.tobytes(), method
    assert read_manifest(out / "x2static-3")["settings"]["stream"] is False


def test_paragraphs_can_be_streamed(distil: Distil, cache: Path, out: Path, tmp_path: Path) -> None:
    start = "directions=0,batch=8,epochs=1,start=closed,whiten=true"
    settings = f"x2static:context=paragraph,{start}"
    assert distil(f"{settings},stream=true", corpus="paragraphs") == 0
    assert not cache.exists()
    assert distil(settings, corpus="paragraphs", to=tmp_path / "kept") == 0
    ours, theirs = (likeness(np.array(load(each).matrix)).ravel() for each in (out, tmp_path / "kept"))
    assert np.corrcoef(ours, theirs)[0, 1] > 0.98
    assert distil(f"x2static:{start}", corpus="paragraphs", to=tmp_path / "sentences") == 0
    assert not np.allclose(load(tmp_path / "sentences").matrix, load(tmp_path / "kept").matrix, atol=1e-2)


def test_a_single_diverging_step_of_the_stream_is_reported(
    distil: Distil, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "diverged" in refused(capsys, distil("x2static:stream=true,batch=100000,rate=1e6"))
    assert not out.exists()


def test_divergence_in_the_stream_is_one_line(distil: Distil, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "diverged" in refused(capsys, distil("x2static:stream=true,batch=4,rate=1e4"))
    assert not out.exists()


# ---- what is told, and what is refused


def test_progress_shows_the_loss(directory: Path, out: Path, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(directory, out, "x2static:epochs=3")) == 0
    lines = capsys.readouterr().err.splitlines()
    (room_line,) = [line for line in lines if line.startswith("contexts will take")]
    assert re.fullmatch(rf"contexts will take about 0\.\d MB in {re.escape(str(cache))}", room_line)
    line_of_training = next(line for line in lines if line.startswith("training (x2static)") and "loss" in line)
    loss = float(line_of_training.rpartition("loss ")[2].partition(",")[0])
    assert "96 of 288 sentences" in line_of_training
    assert 0 < loss < 20
    assert read_manifest(out)["notes"]["loss"] == pytest.approx(loss, rel=0.5)


def test_progress_of_the_stream_shows_the_losses_of_all_methods_that_train_in_it(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context_blocks, "BLOCK_SENTENCES", 20)
    monkeypatch.setattr(
        "stillvec.encoding.batch_loader.BatchBudget.for_teacher", classmethod(lambda cls, *_: cls(128, 16))
    )
    seen: list[str] = []
    distill_all(
        directory / "lines.txt", teacher=str(directory / "teacher"), min_count=1,
        progress=lambda step: seen.append(step.remark if step.unit else ""),
        method="x2static:stream=true,context_to_vec:stream=true,aggregate",
    )  # fmt: skip
    remarks = [remark for remark in seen if remark]
    assert len(remarks) > 4
    assert all(remark.count("loss ") == 2 for remark in remarks)
    assert len(set(remarks)) > 2, "they change as shards are learnt"


@pytest.mark.parametrize(("method", "closed"), [("x2static", "context"), ("context_to_vec:epochs=2", "window")])
def test_a_run_that_trains_on_little_text_names_the_closed_form(
    method: str, closed: str, directory: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(directory, out, method)) == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if f"whitened_{closed}" in line]
    assert re.search(r"\b[\d,]+ words", line)


@pytest.mark.parametrize("method", ["x2static:epochs=0", "x2static:start=closed", "whitened_context"])
def test_nothing_is_said_of_little_text_where_nothing_random_is_trained(
    method: str, directory: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(directory, out, method)) == 0
    assert "closed form" not in capsys.readouterr().err


def test_divergence_ends_with_1_and_one_line(distil: Distil, cache: Path, out: Path, capsys: Any) -> None:
    stderr = refused(capsys, distil("attentive_skipgram:rate=1e4,batch=4,epochs=9"))
    assert "diverged" in stderr
    assert "rate=1000" in stderr
    assert not out.exists()
    assert leftovers(cache) == []
    assert distil("attentive_skipgram:batch=4") == 0


def test_without_an_epoch_the_manifest_is_json(distil: Distil, out: Path) -> None:
    assert distil("x2static:epochs=0") == 0
    text = (out / "manifest.json").read_text("utf-8")

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    assert json.loads(text, parse_constant=refuse)["notes"] == {}


@pytest.mark.parametrize("method", ["x2static", "x2static:stream=true", "attentive_skipgram"])
def test_what_was_trained_does_not_merge_and_says_so(
    method: str, distil: Distil, out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert distil(method) == 0
    assert distil(method, corpus="other", to=tmp_path / "two") == 0
    capsys.readouterr()
    code = main(["merge", str(out), str(tmp_path / "two"), "--out", str(tmp_path / "merged")])
    assert "merged" in refused(capsys, code)
    for other in (method, "aggregate"):
        stderr = refused(capsys, distil(other, "--add-to", out, to=tmp_path / "added", corpus="other"))
        assert "merged" in stderr
    assert not (tmp_path / "merged").exists()
    assert not (tmp_path / "added").exists()


WRONG = {
    "x2static:context=page": "'page'",
    "x2static:start=foo": "closed, zero or random",
    "attentive_skipgram:pool=foo": "attention, mean, sum, each",
    "context_to_vec:decay=foo": "'linear'",
    "x2static:settings=nobody": "gupta-jaggi-2021",
    "attentive_skipgram:settings=wang2020": "did you mean 'wang-2020'",
    "x2static:stream=true,epochs=2": "epochs=2",
    "x2static:stream=true,epochs=5": "epochs=5",  # the default, given explicitly
    "x2static:rate=fast": "a number",
    "x2static:epochs=1.5": "a whole number",
    "x2static:stream=perhaps": "true or false",
    "x2static:layer=9": "0 (input) to 2 (last)",
    "x2static:seed=-1": "seed",
    "x2static:settings=gupta-jaggi-2021,context=paragraph": "3 or more sentences",
    "x2static:settings=gupta-jaggi-2021,context=paragraph,stream=true": "3 or more sentences",
}


@pytest.mark.parametrize("method", [*WRONG])
def test_a_setting_that_is_invalid_is_one_line(
    method: str, distil: Distil, cache: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert WRONG[method] in refused(capsys, distil(method))
    assert not out.exists()
    assert stores(cache) == []
    assert leftovers(cache) == []


def test_a_negative_seed_is_one_line(distil: Distil, capsys: pytest.CaptureFixture[str]) -> None:
    for method in ("x2static", "aggregate"):
        assert "seed" in refused(capsys, distil(method, "--seed", "-1"))


def test_a_store_that_is_a_file_is_one_line(distil: Distil, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("mine", "utf-8")
    assert "is a file" in refused(capsys, distil("x2static", "--context-cache", tmp_path / "mine"))
    assert "is a file" in refused(capsys, distil("x2static", "--context-cache", tmp_path / "mine" / "deep"))
    assert (tmp_path / "mine").read_text("utf-8") == "mine"


def test_without_a_corpus_nothing_is_kept_on_disk(directory: Path, cache: Path, out: Path, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("house\nsea\ndog\n", "utf-8")
    call = [
        "distill",
        "--include-words",
        tmp_path / "words.txt",
        "--teacher",
        directory / "teacher",
        "--out",
        out,
        "--quiet",
        "--force",
    ]
    for method in ("x2static", "x2static:settings=gupta-jaggi-2021,context=paragraph", "context_to_vec"):
        assert main([*map(str, call), "--method", method]) == 0
        assert np.isfinite(load(out).matrix).all()
    assert not cache.exists()


def test_the_papers_settings_are_in_the_manifest(distil: Distil, out: Path) -> None:
    every = ("--min-sentences", "1", "--min-characters", "0")
    assert distil("x2static:settings=gupta-jaggi-2021,batch=16", "--layer", "1", "--seed", "4", *every) == 0
    manifest = read_manifest(out)["settings"]
    wanted = {
        "settings": "gupta-jaggi-2021",
        "batch": 16,
        "shared_negatives": 0,
        "whiten": False,
        "layer": "1",
        "seed": 4,
    }
    assert manifest | wanted == manifest


def test_dimensions_are_as_requested(distil: Distil, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for method in METHODS:
        assert distil(method, "--dim", "5") == 0
        assert load(out).dim == 5
    assert "16 dimensions" in refused(capsys, distil("x2static", "--dim", "17"))
