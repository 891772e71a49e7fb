"""`--engine ray`: what the workers of a real cluster on this machine give is what one process gives, whoever dies."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_launch_ranks import alike, check_statistics
from tiny_corpus import refused, sentences

from stillvec.cli import main
from stillvec.corpus import Corpus
from stillvec.distributed.ray_jobs import MergeTree, chunks_per_job
from stillvec.encoding import TextChunk
from stillvec.errors import CorpusError, UsageError
from stillvec.formats import load, read_manifest
from stillvec.pipeline.distillation_run import Run
from stillvec.pipeline.readers import ReadTask
from stillvec.pipeline.result_folders import save_steps
from stillvec.pipeline.sentence_stream import SentenceStream
from stillvec.pipeline.settings import Distillation
from stillvec.progress import Progress
from stillvec.vocabulary import Vocabulary

TEXTS = [*sentences(9000), "A lonely lighthouse keeper whistles."]
METHODS = "aggregate,additive,decontextualized,x2static"


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    """With three workers for the slow tests, else with two: Ray starts them all, and each imports torch."""
    ray = pytest.importorskip("ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    n_workers = 3 if any(item.get_closest_marker("slow") for item in request.session.items) else 2
    ray.init(num_cpus=n_workers, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield ray
    ray.shutdown()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "one.txt").write_text("\n".join(TEXTS[:3000]), "utf-8")
    (folder / "two.txt").write_text("\n".join(TEXTS[3000:]), "utf-8")
    return Corpus(folder)


def settings(model: str, **given: Any) -> Distillation:
    fixed = {"teacher": model, "min_count": 1, "contexts": None, "include_words": ("walrus",), "device": "cpu"}
    return Distillation(**{**fixed, "method": METHODS, **given})


def written(run: Run, out: Path) -> Path:
    for _ in save_steps(run, out):
        pass
    return out


def overwritten(run: Run, text: Path) -> None:
    """Between counting and reading."""
    for step in run.steps():
        if isinstance(step, Progress) and step.stage == "starting the workers":
            text.write_bytes(b"\x7fELF" + bytes(1000))


def check_same(one: Path, other: Path, *, trained: str = "x2static") -> None:
    """Sums to fp32 rounding, what trains to the byte, and the same told of what was read."""
    for folder in sorted(one.iterdir()):
        mine, theirs = load(folder), load(other / folder.name)
        assert mine.vocabulary == theirs.vocabulary
        if folder.name.startswith(trained):
            assert np.array_equal(mine.matrix, theirs.matrix)
        else:
            check_statistics(folder, other / folder.name)
        assert alike(mine, theirs), folder.name
        said, manifest = read_manifest(folder), read_manifest(other / folder.name)
        assert said["corpus"] == manifest["corpus"]
        assert said["teacher"] == manifest["teacher"]
        for key in ("sentences", "words", "pieces", "words_without_context", "contexts"):
            assert said["read"][key] == manifest["read"][key], key


def check_progress(events: list[Progress], n_tokens: int) -> None:
    """The bar counts what all workers read, of a total that is right from the first job on."""
    read = [event for event in events if event.unit == "tokens"]
    done, totals = [event.done for event in read], [event.total for event in read if event.total is not None]
    assert done == sorted(done)
    assert done[-1] == totals[-1] == n_tokens
    assert totals[0] == pytest.approx(n_tokens, rel=0.05)


def dying(reading: SentenceStream | None, killed: Path) -> SentenceStream:
    """The reader's process is killed, once, when it has given a chunk."""

    class Dying(SentenceStream):  # here, so that Ray sends the class too
        def chunks(self) -> Iterator[TextChunk]:
            for chunk in super().chunks():
                yield chunk
                if not killed.exists():
                    killed.touch()
                    os.kill(os.getpid(), signal.SIGKILL)

    return Dying(**{each.name: getattr(reading, each.name) for each in fields(SentenceStream) if each.init})


@pytest.mark.slow
def test_a_reader_and_a_worker_killed_in_the_middle_change_nothing(
    cluster: Any, corpus: Corpus, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In shares that are stretches of a file, read by several; one process reads the same ones, one after the other."""
    from stillvec.distributed.ray_reader import RayReader

    monkeypatch.setattr(
        "stillvec.corpus.sources.SLICE_BYTES", 100_000
    )  # the first file, and four stretches of the second
    one = written(Run(settings(model), corpus, store=tmp_path / "stores"), tmp_path / "one")
    reader = RayReader(workers=2)
    run = Run(settings(model), corpus, store=tmp_path / "other-stores", reader=reader)
    died, stream = tmp_path / "died", ReadTask.stream
    monkeypatch.setattr(ReadTask, "stream", lambda *given: dying(stream(*given), died))
    killed, events = 0, []
    for step in save_steps(run, tmp_path / "two"):
        events.append(step)
        if step.stage == "reading the corpus" and step.done and not killed:
            killed = reader.processes[0]  # it has jobs: two wait at each, and one of five is done
            os.kill(killed, signal.SIGKILL)
    again = cluster.get(reader.workers[0].describe.remote(reader._config))["process"]
    reader.close()
    assert died.exists()
    assert killed
    assert again != killed
    check_same(one, tmp_path / "two")
    check_progress(events, read_manifest(tmp_path / "two" / "aggregate")["read"]["pieces"])
    (store,), (joined,) = (tmp_path / "stores").iterdir(), (tmp_path / "other-stores").iterdir()
    assert store.name == joined.name
    assert all((joined / file.name).read_bytes() == file.read_bytes() for file in store.iterdir())


@pytest.mark.slow
def test_the_number_of_workers_decides_no_bit(cluster: Any, corpus: Corpus, model: str, tmp_path: Path) -> None:
    """Of chosen sentences too, which are those that one process chooses."""
    from stillvec.distributed.ray_reader import RayReader

    chosen = settings(model, contexts=2000, method="auto,whitened_context,first_component,x2static:context=paragraph")
    one = written(Run(chosen, corpus, store=tmp_path / "a"), tmp_path / "one")
    made = []
    for workers in (1, 3):
        reader = RayReader(workers=workers)
        run = Run(chosen, corpus, store=tmp_path / f"b-{workers}", reader=reader)
        made.append(written(run, tmp_path / f"with-{workers}"))
        reader.close()
        check_same(one, made[-1])
    for folder in made[0].iterdir():
        assert np.array_equal(load(folder).matrix, load(made[1] / folder.name).matrix)


@pytest.mark.slow
def test_many_files_with_a_result_that_is_added_to_and_one_that_is_overwritten(
    cluster: Any, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stillvec.distributed.ray_reader import RayReader

    (tmp_path / "texts").mkdir()
    for number in range(40):
        (tmp_path / "texts" / f"{number:02}.txt").write_text(
            "\n".join(TEXTS[number * 100 : number * 100 + 100]), "utf-8"
        )
    monkeypatch.setattr("stillvec.corpus.sources.SLICE_BYTES", 9000)
    texts = Corpus(tmp_path / "texts")
    plain = settings(model, method="aggregate")
    first = written(Run(plain, Corpus.from_texts(TEXTS[5000:5200])), tmp_path / "first")
    one = written(Run(plain, texts, first), tmp_path / "one" / "it")
    reader = RayReader(workers=2)
    run = Run(plain, texts, first, reader=reader)
    two = written(run, tmp_path / "two" / "it")
    reader.close()
    check_same(one.parent, two.parent)
    reader = RayReader(workers=2)
    run = Run(plain, texts, reader=reader)
    with pytest.raises(CorpusError, match=r"39\.txt"):  # our sentence, from the task that reads it
        overwritten(run, tmp_path / "texts" / "39.txt")
    reader.close()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")
def test_no_process_of_a_killed_driver_stays(corpus: Corpus, model: str, tmp_path: Path) -> None:
    mark = f"STILLVEC_TEST_DRIVER={tmp_path}"
    command = ["distill", *corpus.sources, "--teacher", model, "--engine", "ray", "--workers", "2"]
    command += ["--contexts", "all", "--out", str(tmp_path / "out")]
    environment = {**os.environ, "STILLVEC_TEST_DRIVER": str(tmp_path)}
    driver = subprocess.Popen(
        [sys.executable, "-m", "stillvec", *command],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: len(find_processes(mark)) > 3)  # the driver, and what Ray started
    driver.kill()
    driver.wait()
    wait_for(lambda: not find_processes(mark))
    assert not (tmp_path / "out").exists()


def find_processes(mark: str) -> list[str]:
    """Command lines of the processes whose environment has this entry."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


def wait_for(condition: Callable[[], bool], seconds: float = 180) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition did not become true"
        time.sleep(0.5)


def test_a_failure_in_a_worker_is_one_sentence(
    cluster: Any, corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str], model: str
) -> None:
    """The file is gone when workers come to count it; also what `--engine ray` cannot do, and what is not its own."""
    call = [
        "distill",
        *corpus.sources,
        "--teacher",
        model,
        "--out",
        str(tmp_path / "out"),
        "--quiet",
        "--engine",
        "ray",
    ]
    for more, named in (
        (["--resume"], "resume"),
        (["--dry-run"], "--dry-run"),
        (["--method", "x2static:stream=true"], "stream"),
        (["--workers", "0"], "workers"),
        (["--threads", "2"], "threads"),
        (["--min-count", "1000000"], "1,000,000"),
    ):
        assert named in refused(capsys, main([*call, *more]))
    assert "ray" in refused(capsys, main([*call[:-2], "--workers", "2"]))
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"caf\xe9 au lait\n")
    call[1:-2] = [str(bad), "--strict", *call[-7:-2]]
    assert "UTF-8" in refused(capsys, main(call))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("package", ["ray", "pandas"])  # Ray Data stands on pandas
def test_without_ray_the_extra_is_named(
    package: str, corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    call = ["distill", *corpus.sources, "--out", str(tmp_path / "out"), "--engine", "ray"]
    said = refused(capsys, main(call))
    assert package in said
    assert "stillvec[ray]" in said


def test_an_address_without_a_server_is_refused_at_once() -> None:
    from stillvec.distributed.ray_reader import _check_reachable

    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # taken, and not listening
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(UsageError, match=f"No Ray cluster at {address}"):
            _check_reachable(address)
    _check_reachable("auto")


def test_results_merge_in_a_shape_that_only_their_number_decides() -> None:
    tree = MergeTree(lambda one, other: f"({one}{other})")
    assert tree.root() is None
    for letter in "abcdefg":
        tree.add(letter)
    assert tree.root() == "(((ab)(cd))((ef)g))"


@pytest.mark.parametrize(
    ("characters", "contexts", "chunks"),
    [(1000, None, 1), (16 * 110 * 64 * 3, None, 3), (10**12, None, 2**28 // (16 * 110)), (10**12, 20, 32)],
)
def test_jobs_are_many_and_not_too_large(characters: int, contexts: int | None, chunks: int) -> None:
    reading = SentenceStream(
        Corpus.from_texts(["A text."]), Vocabulary(["text"]), contexts, 16, n_characters=characters
    )
    assert chunks_per_job(reading) == chunks
