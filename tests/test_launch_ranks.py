"""What torchrun starts: several processes over one corpus give what one gives, and fail as one."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tiny_corpus import likeness, refused, sentences
from tiny_text import drained

from stillvec.cli import main
from stillvec.corpus import Corpus
from stillvec.distributed import process_group
from stillvec.encoding import TextChunk
from stillvec.encoding.context_store import Contexts, ContextWriter, join_stores
from stillvec.formats import load, read_manifest, read_statistics
from stillvec.learners.partition import Partition
from stillvec.pipeline.corpus_counts import CorpusCounts, count_partition
from stillvec.pipeline.sentence_stream import SentenceStream
from stillvec.pipeline.settings import Distillation
from stillvec.vectors import WordVectors

TEXTS = [*sentences(4500), "A lonely lighthouse keeper whistles."]  # three chunks for the teacher
Start = Callable[[list[str]], subprocess.CompletedProcess[str]]
ORDERLESS = ("max:", "sample:", "sum:contexts", "sum:read", "sum:alone")  # whatever the order, the same bytes


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory, model: str) -> Path:
    folder = tmp_path_factory.mktemp("ranks")
    (folder / "teacher").symlink_to(model)
    (folder / "one.txt").write_text("\n".join(TEXTS[:1700]), "utf-8")
    (folder / "two.txt").write_text("\n".join(TEXTS[1700:]), "utf-8")
    (folder / "keep.txt").write_text("walrus\nnarwhal\n", "utf-8")
    return folder


def words_of(directory: Path, out: Path, *arguments: str) -> list[str]:
    files = [str(directory / name) for name in ("one.txt", "two.txt")]
    words = [
        "distill",
        *files,
        "--teacher",
        str(directory / "teacher"),
        "--out",
        str(out),
        "--min-count",
        "1",
        "--quiet",
    ]
    words += ["--include-words", str(directory / "keep.txt"), "--contexts", "all", "--device", "cpu"]
    return [*words, "--threads", "1", *arguments]  # with more, a product is rounded in other ways


def torchrun(processes: int, words: list[str]) -> subprocess.CompletedProcess[str]:
    start = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes), "--master-port", "0"]
    start += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "-m", "stillvec"]
    settings = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run([*start, *words], capture_output=True, text=True, env=settings, timeout=300)


def start_ranks(words: list[str]) -> subprocess.CompletedProcess[str]:
    """As torchrun does; the first of the two processes is this one, which has imported all, and the other is new."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    other = {**os.environ, **settings, "RANK": "1", "LOCAL_RANK": "1", "OMP_NUM_THREADS": "1"}
    call = [sys.executable, "-m", "stillvec", *words]
    with subprocess.Popen(call, env=other, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as second:
        stdout, stderr = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(stdout), redirect_stderr(stderr):
            for name, value in {**settings, "RANK": "0", "LOCAL_RANK": "0"}.items():
                patch.setenv(name, value)
            code = main(words)
        printed = second.communicate(timeout=300)
    printed = (stdout.getvalue() + printed[0], stderr.getvalue() + printed[1])
    return subprocess.CompletedProcess(call, code or second.returncode, *printed)


@pytest.mark.parametrize(
    ("methods", "start"),
    [
        ("aggregate,aggregate:contexts=max,additive,decontextualized", start_ranks),
        pytest.param("auto,x2static", partial(torchrun, 2), marks=pytest.mark.slow),
    ],
    ids=["quick", "torchrun"],
)
def test_two_processes_give_what_one_gives(methods: str, start: Start, directory: Path, tmp_path: Path) -> None:
    """Sums to fp32 rounding; to the byte what knows no order, and what trains: its contexts lie as those of one do."""
    call = words_of(directory, tmp_path / "one", "--method", methods, "--context-cache", str(tmp_path / "stores"))
    assert main(call) == 0
    call = words_of(directory, tmp_path / "two", "--method", methods, "--context-cache", str(tmp_path / "other-stores"))
    done = start([word for word in call if word != "--quiet"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" by ") == len(methods.split(",")), "one process speaks"
    assert done.stdout.count("Took ") == done.stderr.count("loading the teacher") == 1
    assert "merging statistics" in done.stderr
    for folder in sorted((tmp_path / "one").iterdir()):
        check_folders(folder, tmp_path / "two" / folder.name)
    for store in (tmp_path / "stores").glob("*"):
        joined = tmp_path / "other-stores" / store.name
        assert [*joined.parent.iterdir()] == [joined]
        assert all((joined / file.name).read_bytes() == file.read_bytes() for file in store.iterdir())


def check_folders(one: Path, two: Path) -> None:
    mine, other = load(one), load(two)
    assert mine.vocabulary == other.vocabulary
    if one.name == "x2static":
        assert np.array_equal(mine.matrix, other.matrix)
    else:
        check_statistics(one, two)
    assert alike(mine, other), one.name
    said, manifest = read_manifest(one), read_manifest(two)
    assert said["corpus"] == manifest["corpus"]
    for key in ("sentences", "words", "pieces", "words_without_context"):
        assert said["read"][key] == manifest["read"][key]
    assert manifest["read"]["processes"] == 2


def alike(one: WordVectors, other: WordVectors) -> bool:
    """All inner products; `auto` whitens the few dimensions of this teacher, which makes rounding larger."""
    a, b = likeness(np.array(one.matrix)), likeness(np.array(other.matrix))
    return bool(np.corrcoef(a.ravel(), b.ravel())[0, 1] > 0.9999)


def check_statistics(one: Path, other: Path) -> None:
    mine, theirs = read_statistics(one), read_statistics(other)
    assert mine.keys() == theirs.keys()
    for name, array in mine.items():
        if name.partition("/")[2].startswith(ORDERLESS):
            assert np.array_equal(array, theirs[name]), name
        elif not name.partition("/")[2].startswith("ragged:"):  # sentences, in another order
            assert np.allclose(array, theirs[name], rtol=1e-5, atol=1e-5 * np.abs(array).max()), name


def test_a_failure_in_one_process_is_reported_once_and_ends_all(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("x", "utf-8")  # which the first process alone looks at
    done = torchrun(2, words_of(directory, tmp_path / "out", "--method", "aggregate"))
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if line.startswith("stillvec: ")]
    assert len(lines) == 1
    assert "contains other files" in lines[0]
    assert not done.stdout


REFUSED = {
    "resume": (["--resume"], "resume"),
    "dry run": (["--dry-run"], "--dry-run"),
    "stream": (["--method", "x2static:stream=true"], "stream"),
}


@pytest.mark.parametrize("case", [*REFUSED])
def test_what_several_processes_cannot_do_is_refused(
    case: str, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Two:
        rank, world_size, local_world_size = 0, 2, 2

    arguments, named = REFUSED[case]
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(process_group, "join_group", lambda _: nullcontext(Two()))
    assert named in refused(capsys, main(words_of(directory, tmp_path / "out", *arguments)))
    assert not (tmp_path / "out").exists()


def chunks_of(reading: Callable[[Partition], SentenceStream], share: Partition) -> list[list[str]]:
    return [[*marked.texts] for marked in reading(share).chunks()]


@pytest.mark.parametrize("contexts", [None, 40])
@pytest.mark.parametrize("in_order", [False, True])
def test_every_chunk_is_in_one_share(directory: Path, contexts: int | None, in_order: bool) -> None:
    """The choice of sentences is that of one process, and stretches lie in the order of the corpus."""
    corpus = Corpus(directory / "one.txt", directory / "two.txt")
    count = counted(corpus, Partition())
    vocabulary, facts = count.choose_words(corpus, Distillation(min_count=1))

    def reading(share: Partition) -> SentenceStream:
        return SentenceStream(corpus, vocabulary, contexts, 64, 0, share, facts.n_characters, facts.n_words)

    whole = chunks_of(reading, Partition())
    shares = [chunks_of(reading, Partition(number, 3, in_order)) for number in range(3)]
    assert len(whole) > 3
    if in_order and contexts is None:
        assert all(shares)
    laid = [chunk for share in shares for chunk in share]
    assert sorted(laid) == sorted(whole)
    assert laid == whole if in_order else [*map(len, shares)] == [len(whole[number::3]) for number in range(3)]


@pytest.mark.parametrize("files", [1, 30])
def test_shares_of_the_count_add_up(tmp_path: Path, files: int) -> None:
    """With few files all shares read through them, with many a share is files: the same counts and digest."""
    for number in range(files):
        (tmp_path / f"{number:02}.txt").write_text("\n".join(TEXTS[number::files]), "utf-8")
    (tmp_path / "empty.txt").write_text("", "utf-8")
    corpus = Corpus(tmp_path)
    whole = counted(corpus, Partition())
    one, two, three = (counted(corpus, Partition(number, 3)) for number in range(3))
    assert one + two + three == whole
    assert (three + (one + two)).digest == whole.digest
    assert one.n_words < whole.n_words
    (tmp_path / "00.txt").write_text("Something else.", "utf-8")
    assert counted(Corpus(tmp_path), Partition()).digest != whole.digest


def counted(corpus: Corpus, share: Partition) -> CorpusCounts:
    return drained(count_partition(corpus, Distillation(), share))


def test_isolated_words_and_additional_texts_are_distributed_once() -> None:
    wanted = np.random.default_rng(0).random(20_000) < 0.7
    texts = [TextChunk([str(number)]) for number in range(7)]
    for in_order in (False, True):
        shares = [Partition(number, 3, in_order) for number in range(3)]
        assert (np.sum([share.select_words(wanted) for share in shares], axis=0) == wanted).all()
        dealt = [text.texts[0] for share in shares for text in share.select_chunks(texts)]
        assert sorted(dealt) == [*map(str, range(7))]
    assert not Partition(0, 3, in_order=True).select_words(wanted).any(), "they come after the last stretch"


def test_shards_of_contexts_are_joined_in_the_scale_of_the_first(tmp_path: Path) -> None:
    import torch

    rows = torch.arange(24, dtype=torch.float32).reshape(6, 4) * 1000
    shards = [tmp_path / "shard-0", tmp_path / "shard-1", tmp_path / "shard-2"]
    for shard, some in zip(shards, (rows[:0], rows[:2], rows[2:] * 8), strict=True):
        writer = ContextWriter(shard, 4, states=False)
        writer.add(np.arange(len(some)), np.ones(len(some), int), some)
        writer.close()
    scales = [Contexts.open(shard).scale for shard in shards]
    assert scales[1] != scales[2]
    joined = join_stores(tmp_path / "whole", shards)
    assert joined.scale == scales[1]
    assert joined.words.tolist() == [0, 1, 0, 1, 2, 3]
    wanted = torch.cat([rows[:2], rows[2:] * 8]).numpy()
    assert np.allclose(np.array(joined.contexts, np.float32) * joined.scale, wanted, rtol=1e-3)
    assert [*tmp_path.iterdir()] == [tmp_path / "whole"]
