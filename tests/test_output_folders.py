"""What lies in an output folder survives, a folder is replaced in one step, and one run at a time writes it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from error_checks import raises

import stillvec
from stillvec.cli import main
from stillvec.errors import StillvecWarning, UsageError
from stillvec.files import FolderLayout, atomic, atomic_folder, lock_outputs, remove_abandoned, scratch_folder
from stillvec.files.temporary_names import name_machine, temporary_name
from stillvec.formats.stillvec_folder import LAYOUT

FOLDERS = ("stillvec", "model2vec", "sentence-transformers", "spacy", "projector")


@pytest.fixture
def vectors() -> stillvec.WordVectors:
    return stillvec.WordVectors(["ice", "snow", "sea"], np.arange(6, dtype=np.float32).reshape(3, 2))


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("The house by the sea is old. The dog sleeps in the sun.\n" * 8, "utf-8")
    return path


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    """A mount point, as a Docker volume is one."""
    folder = tmp_path / "volume"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def foreign(folder: Path, name: str) -> dict[str, bytes]:
    """A folder of somebody else, with files of the names that we write."""
    contents = {
        "stillvec": {"manifest.json": '{"name": "My PWA", "format": 1}'},
        "model2vec": {"tokenizer.json": "{}", "config.json": '{"model_type": "bert"}', "model.safetensors": "?"},
        "sentence-transformers": {"modules.json": "[]", "config_sentence_transformers.json": '{"prompts": {}}'},
        "spacy": {"meta.json": '{"lang": "en", "vectors": {"name": "en_core_web_lg.vectors"}}', "vocab/vectors": "?"},
        "projector": {"metadata.tsv": "word\ncat\n", "vectors.tsv": "1\t2\n"},
    }[name]
    for file, written in {**contents, "src/thesis.tex": "years of work"}.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(written)
    return tree(folder)


# ---- what is not ours


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_of_somebody_else_is_refused_and_survives(
    name: str, tmp_path: Path, vectors: stillvec.WordVectors
) -> None:
    pytest.importorskip("spacy" if name == "spacy" else "tokenizers")
    before = foreign(tmp_path / "out", name)
    with raises(UsageError, code="conflict", path=tmp_path / "out", match="src"):
        stillvec.convert(vectors, tmp_path / "out", format=name)
    with raises(UsageError, code="conflict"):
        stillvec.save(vectors, tmp_path / "out", format=name)
    assert tree(tmp_path / "out") == before


@pytest.mark.parametrize("name", FOLDERS)
def test_force_replaces_only_the_names_that_we_write(name: str, tmp_path: Path, vectors: stillvec.WordVectors) -> None:
    pytest.importorskip("spacy" if name == "spacy" else "tokenizers")
    foreign(tmp_path / "out", name)
    stillvec.convert(vectors, tmp_path / "out", format=name, force=True)
    assert (tmp_path / "out" / "src" / "thesis.tex").read_text() == "years of work"
    assert np.array_equal(stillvec.load(tmp_path / "out", format=name)["snow"], vectors["snow"])
    assert not [path for path in (tmp_path / "out").iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("name", FOLDERS)
def test_our_own_folder_is_replaced(name: str, tmp_path: Path, vectors: stillvec.WordVectors) -> None:
    pytest.importorskip("spacy" if name == "spacy" else "tokenizers")
    for words in (vectors, vectors.subset(["sea", "ice"])):
        stillvec.convert(words, tmp_path / "out", format=name, force=True)
    assert len(stillvec.load(tmp_path / "out")) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("name", FOLDERS[1:])
def test_our_own_folder_with_other_files_in_it_is_refused_for_formats_of_others(
    name: str, tmp_path: Path, vectors: stillvec.WordVectors
) -> None:
    pytest.importorskip("spacy" if name == "spacy" else "tokenizers")
    stillvec.convert(vectors, tmp_path / "out", format=name)
    (tmp_path / "out" / "README.md").write_text("mine")
    with raises(UsageError, code="conflict", match="README"):
        stillvec.convert(vectors, tmp_path / "out", format=name)


def test_a_hidden_folder_of_the_user_survives(tmp_path: Path, vectors: stillvec.WordVectors) -> None:
    stillvec.save(vectors, tmp_path / "v")
    (tmp_path / "v" / ".notes.ready").mkdir()
    (tmp_path / "v" / ".notes.ready" / "thesis.tex").write_text("years of work")
    stillvec.save(vectors, tmp_path / "v", force=True)
    assert (tmp_path / "v" / ".notes.ready" / "thesis.tex").read_text() == "years of work"


def test_notes_and_other_results_beside_our_files_survive(tmp_path: Path, vectors: stillvec.WordVectors) -> None:
    out = tmp_path / "out"
    stillvec.refine(vectors, "center", oov="subword", out=out)
    (out / "notes.txt").write_text("important")
    stillvec.refine(vectors, "center", out=out / "auto")
    stillvec.refine(vectors, "normalize", out=out, force=True)
    assert (out / "notes.txt").read_text() == "important"
    assert stillvec.load(out / "auto").provenance["refined"][0]["step"] == "center"
    assert stillvec.load(out).provenance["refined"][0]["step"] == "normalize"
    assert not (out / "subwords.safetensors").exists(), "a file of the old result"


@pytest.mark.parametrize("verb", ["distill", "train", "refine", "combine", "merge", "convert"])
def test_every_verb_refuses_before_the_work_and_takes_force(
    verb: str, tmp_path: Path, text: Path, model: str, vectors: stillvec.WordVectors, capsys: pytest.CaptureFixture[str]
) -> None:
    if verb == "train":
        pytest.importorskip("gensim")
    out = tmp_path / "website"
    foreign(out, "stillvec")
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    distil = ["distill", str(text), "--teacher", model, "--method", "aggregate", "--min-count", "1", "--quiet", "--out"]
    if verb == "merge":
        assert main([*distil, one]) == main([*distil, two]) == 0
    else:
        stillvec.save(vectors, one)
        stillvec.save(vectors, two)
    call = {
        "distill": [*distil, str(out)],
        "train": ["train", str(text), "--method", "skipgram:epochs=1", "--dim", "4", "--quiet", "--out", str(out)],
        "refine": ["refine", one, "--step", "center", "--out", str(out)],
        "combine": ["combine", one, two, "--method", "average", "--out", str(out)],
        "merge": ["merge", one, two, "--out", str(out)],
        "convert": ["convert", one, str(out), "--format", "stillvec"],
    }[verb]
    before = tree(out)
    assert main(call) == 2
    assert "src" in capsys.readouterr().err
    assert tree(out) == before
    assert main([*call, "--force"]) == 0
    assert (out / "src" / "thesis.tex").read_text() == "years of work"
    assert len(stillvec.load(out)) > 0


# ---- places


def test_a_mount_point_is_written_inside(volume: Path, text: Path, model: str) -> None:
    (volume / "lost+found").mkdir()
    shutil.rmtree(volume / "lost+found")
    for _ in range(2):
        stillvec.distill(text, teacher=model, method="aggregate", min_count=1, out=volume, force=True)
        assert sorted(tree(volume)) == sorted({*LAYOUT.names} - {"model.safetensors", "subwords.safetensors"})
    assert [path.name for path in volume.parent.iterdir() if path.name.startswith((".volume", "volume."))] == []


def test_an_undetected_mount_point_is_written_inside(
    volume: Path, vectors: stillvec.WordVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    stillvec.save(vectors, volume)
    monkeypatch.setattr(os.path, "ismount", lambda path: False)  # as for a bind mount of the same disk
    stillvec.refine(vectors, "center", out=volume, force=True)
    assert stillvec.load(volume).provenance["refined"]
    assert [path.name for path in volume.parent.iterdir() if path.name.startswith(".")] == []


def test_a_checkpoint_of_a_mount_point_lies_inside(volume: Path) -> None:
    from stillvec.pipeline.pass_checkpoint import PassCheckpoint

    assert PassCheckpoint(volume).path.parent == volume


def test_a_folder_in_a_parent_that_cannot_be_written_is_written_inside(
    tmp_path: Path, text: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "parent" / "out"
    out.mkdir(parents=True)
    access, mkdir = os.access, Path.mkdir
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != out.parent and access(path, mode))

    def refuse(self: Path, *given: object, **more: object) -> None:
        assert self.parent != out.parent or self.exists()
        mkdir(self, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "mkdir", refuse)
    stillvec.distill(text, teacher=model, method="aggregate", min_count=1, out=out)
    assert (out / "manifest.json").is_file()
    assert [path.name for path in out.parent.iterdir()] == ["out"]


@pytest.mark.parametrize("verb", ["distill", "train", "refine"])
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    verb: str, tmp_path: Path, text: Path, vectors: stillvec.WordVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "locked").mkdir()
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "locked" and access(path, mode))
    for out in (
        "file", "file/out", "loop", "locked", "locked/out", "locked/deep/out", "x" * 256, "y/" + "x" * 256, "a\0b",
    ):  # fmt: skip
        with raises(UsageError):
            if verb == "distill":
                stillvec.distill(text, teacher="/nonexistent", out=tmp_path / out)
            elif verb == "train":
                stillvec.train(text, method="glove", out=tmp_path / out, progress=lambda _: pytest.fail("work"))
            else:
                stillvec.refine(vectors, "center", out=tmp_path / out, progress=lambda _: pytest.fail("work"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "locked", "loop", "text.txt"]


@pytest.mark.parametrize("length", [200, 232, 245, 255])
def test_a_long_name_is_written(length: int, tmp_path: Path, text: Path, model: str) -> None:
    out = tmp_path / ("ü" * 50 + "x" * (length - 100))
    for _ in range(2):
        stillvec.distill(text, teacher=model, method="aggregate", min_count=1, out=out, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt", out.name] or len([*tmp_path.iterdir()]) == 2


def test_a_dangling_link_is_followed(tmp_path: Path, vectors: stillvec.WordVectors) -> None:
    (tmp_path / "out").symlink_to("real/folder")
    for _ in range(2):
        stillvec.refine(vectors, "center", out=tmp_path / "out", force=True)
    assert (tmp_path / "out").is_symlink()
    assert (tmp_path / "real" / "folder" / "manifest.json").is_file()


def test_the_current_folder_stays_the_current_folder(
    tmp_path: Path, vectors: stillvec.WordVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for _ in range(2):
        stillvec.refine(vectors, "center", out=".", force=True)
        assert "manifest.json" in os.listdir()
        assert os.path.samefile(".", tmp_path / "here")
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


# ---- one step


def test_a_reader_always_finds_a_whole_folder(
    tmp_path: Path, vectors: stillvec.WordVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between any two renames of the replacement the folder can be loaded."""
    out = tmp_path / "out"
    stillvec.save(vectors, out)
    rename, replace, seen = Path.rename, Path.replace, []

    def check(function: object) -> object:
        def call(self: Path, to: Path) -> Path:
            seen.append(len(stillvec.load(out)))
            moved: Path = function(self, to)  # type: ignore[operator]
            seen.append(len(stillvec.load(out)))
            return moved

        return call

    exchange = atomic._exchange
    monkeypatch.setattr(Path, "rename", check(rename))
    monkeypatch.setattr(Path, "replace", check(replace))
    monkeypatch.setattr(atomic, "_exchange", lambda *paths: bool(check(lambda *p: exchange(*p))(*paths)))  # type: ignore[operator]
    stillvec.save(vectors.subset(["ice"]), out, force=True)
    assert seen == [3, 1]


KILLED = """
    import os, signal, sys
    from pathlib import Path
    import numpy as np, stillvec
    from stillvec.files import atomic
    calls, last = 0, int(sys.argv[2])

    def killing(function):
        def call(*given, **more):
            global calls
            calls += 1
            if calls == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*given, **more)
        return call

    for name in ("rename", "replace", "unlink", "mkdir", "rmdir"):
        setattr(Path, name, killing(getattr(Path, name)))
    atomic._exchange = killing(atomic._exchange)
    if sys.argv[3] == "old":
        atomic._exchange = lambda *_: False
    stillvec.save(stillvec.WordVectors(["new", "words"], np.ones((2, 2), np.float32)), sys.argv[1], force=True)
    print(calls)
"""


@pytest.mark.parametrize("system", ["exchange", "old", "notes"])
def test_a_kill_at_any_step_of_a_replacement_loses_nothing(
    system: str, tmp_path: Path, vectors: stillvec.WordVectors
) -> None:
    out, step, n_steps = tmp_path / "out", 0, 99
    while step < n_steps:
        step += 1
        shutil.rmtree(out, ignore_errors=True)
        stillvec.refine(vectors, "center", oov="subword", out=out)
        if system == "notes":
            (out / "notes.txt").write_text("important")
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(KILLED), str(out), str(step), system], capture_output=True, text=True
        )
        if done.returncode == 0:
            n_steps = int(done.stdout)
        if system == "exchange":
            assert len(stillvec.load(out)) in (2, 3)
        with lock_outputs([out], LAYOUT):  # the start of the next run
            words = {*stillvec.load(out).words}
            assert words in ({"new", "words"}, {*vectors.words})
            assert ("new" in words) != (out / "subwords.safetensors").exists()
            assert (out / "notes.txt").exists() == (system == "notes")
        left = [path for folder in (out, tmp_path) for path in folder.iterdir() if path.name.startswith(".")]
        assert left == []
    assert step >= 3


def test_the_folder_that_version_0_1_had_renamed_away_comes_back(tmp_path: Path, vectors: stillvec.WordVectors) -> None:
    stillvec.save(vectors, tmp_path / ".out.0123abcd.old", format="stillvec")
    with lock_outputs([tmp_path / "out"], LAYOUT):
        assert len(stillvec.load(tmp_path / "out")) == 3


def test_an_interrupt_while_files_are_moved_leaves_the_new_folder_whole(
    tmp_path: Path, vectors: stillvec.WordVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    stillvec.save(vectors, out)
    (out / "notes.txt").write_text("important")
    replace, calls = Path.replace, []

    def interrupt(self: Path, to: Path) -> Path:
        calls.append(to)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return replace(self, to)

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        stillvec.save(vectors.subset(["sea"]), out, force=True)
    assert stillvec.load(out).words == ("sea",) or [*stillvec.load(out).words] == ["sea"]
    assert (out / "notes.txt").exists()


def test_a_result_is_on_the_disk_before_it_gets_its_name(
    tmp_path: Path, vectors: stillvec.WordVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    sync, rename = os.fsync, Path.rename

    def note_sync(handle: int) -> None:
        events.append(os.path.basename(os.readlink(f"/proc/self/fd/{handle}")))
        sync(handle)

    def note_rename(self: Path, to: Path) -> Path:
        events.append("rename")
        return rename(self, to)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "rename", note_rename)
    stillvec.save(vectors, tmp_path / "out")
    named = events.index("rename")
    assert {"manifest.json", "vectors.safetensors", "vocabulary.tsv", "README.md"} <= {*events[:named]}
    assert tmp_path.name in events[named:]


# ---- owners


def test_what_killed_processes_left_is_removed_and_what_lives_is_not(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    here, living = name_machine(), os.getppid()
    gone = [f".out.{here}.{ended.pid}.0123abcd.part", f".stillvec.{here}.{ended.pid}.0123abcd.tmp"]
    old = [f".out.89abcdef.{living}.0123abcd.part"]  # of another machine
    stay = [f".out.{here}.{living}.0123abcd.part", f".out.01234567.{ended.pid}.0123abcd.part", ".x.part", ".a.1.b.tmp"]
    for name in (*gone, *old, *stay):
        (tmp_path / name).mkdir()
    for name in (*old, ".x.part", ".a.1.b.tmp"):
        os.utime(tmp_path / name, (0, 0))
    remove_abandoned(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(stay)


def test_a_run_does_not_touch_what_another_writes_under_a_similar_name(
    tmp_path: Path, vectors: stillvec.WordVectors
) -> None:
    with atomic_folder(tmp_path / "vec.v2", LAYOUT) as part:
        (part / "manifest.json").write_text("{}")
        stillvec.save(vectors, tmp_path / "vec")
    assert (tmp_path / "vec.v2" / "manifest.json").exists()


def test_a_scratch_folder_is_private_and_goes(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
    assert [*tmp_path.iterdir()] == []


def test_a_second_run_into_the_same_output_is_refused(
    tmp_path: Path, text: Path, model: str, vectors: stillvec.WordVectors, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("fcntl")
    out = tmp_path / "new" / "out"
    stillvec.save(vectors, tmp_path / "v")
    call = ["--teacher", model, "--min-count", "1", "--quiet", "--out", str(out)]
    with lock_outputs([out], LAYOUT):
        assert main(["distill", str(text), *call]) == 2
        assert str(os.getpid()) in capsys.readouterr().err
        assert main(["convert", str(tmp_path / "v"), str(out), "--format", "stillvec"]) == 2
    assert not out.parent.exists(), "nothing was written"
    assert main(["distill", str(text), *call]) == 0
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_a_long_name_has_a_temporary_name(tmp_path: Path) -> None:
    assert len(os.fsencode(temporary_name(tmp_path / ("ä" * 127)).name)) <= 255


def test_a_file_that_a_folder_format_does_not_know_is_listed(tmp_path: Path) -> None:
    layout = FolderLayout(("a.json", "b/c"), lambda folder: True)
    for name in ("a.json", "b/c", "b/d", "e"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps(1))
    assert layout.find_others(tmp_path) == ["b/d", "e"]


# ---- checkpoints and warnings


def test_a_checkpoint_is_written_although_the_parent_did_not_exist(
    tmp_path: Path, text: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stillvec.pipeline import pass_checkpoint
    from stillvec.pipeline.pass_checkpoint import PassCheckpoint

    monkeypatch.setattr(pass_checkpoint, "EVERY", 0.0)
    seen: list[bool] = []
    write = PassCheckpoint.write

    def note_write(self: PassCheckpoint, *given: Any) -> None:
        write(self, *given)
        seen.append((tmp_path / "new" / "run1.checkpoint").exists())

    monkeypatch.setattr(PassCheckpoint, "write", note_write)
    stillvec.distill(text, teacher=model, method="aggregate", min_count=1, out=tmp_path / "new" / "run1")
    assert seen
    assert all(seen)
    PassCheckpoint(tmp_path / "newer" / "run1").write({}, dict)
    assert (tmp_path / "newer" / "run1.checkpoint").exists()


def test_a_warning_is_printed_when_it_happens(tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.txt").write_bytes(b"the caf\xe9 by the sea is old\n" * 8)
    call = ["distill", str(tmp_path / "text.txt"), "--teacher", model, "--min-count", "1", "--method", "aggregate"]
    assert main([*call, "--out", str(tmp_path / "out")]) == 0
    lines = capsys.readouterr().err.splitlines()
    note = next(number for number, line in enumerate(lines) if line.startswith("Note: ") and "UTF-8" in line)
    assert any(line.startswith("reading") for line in lines[note:])


def test_a_warning_of_a_run_that_fails_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from stillvec.cli.progress_bar import show_events

    class Accident(Exception):  # noqa: N818
        """Ends the run."""

    def fail() -> None:
        warnings.warn("half of it is broken", StillvecWarning, stacklevel=1)
        raise Accident

    with pytest.raises(Accident), show_events():
        fail()
    assert "half of it is broken" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="no such device")
def test_vectors_are_written_to_standard_output(tmp_path: Path, vectors: stillvec.WordVectors) -> None:
    stillvec.save(vectors, tmp_path / "v")
    call = ["convert", str(tmp_path / "v"), "/dev/stdout", "--format", "glove"]
    code = f"import sys, os; from stillvec.cli import main; sys.exit(main({call!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ice 0 1\n")
