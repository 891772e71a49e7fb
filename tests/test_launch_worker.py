"""A worker of a cluster, called by hand: who prepares its text stays from job to job; a job that fails ends them."""

from __future__ import annotations

import dataclasses
import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tiny_corpus import sentences

from stillvec.corpus import Corpus
from stillvec.distributed.ray_jobs import SENTENCES, ReadingJob, read_blocks
from stillvec.distributed.ray_worker import JobCounter, Worker, WorkerConfig
from stillvec.encoding import NO_TEXT, BatchBudget, TextSize
from stillvec.errors import StillvecError
from stillvec.pipeline.sentence_stream import SentenceStream
from stillvec.pipeline.settings import Distillation
from stillvec.vocabulary import Vocabulary

pytest.importorskip("pyarrow")
TEXTS = sentences(300)
VOCABULARY = Vocabulary([*dict.fromkeys(" ".join(TEXTS).lower().split())])


@pytest.fixture
def orders(model: str, tmp_path: Path) -> WorkerConfig:
    settings = Distillation(teacher=model, method="aggregate", min_count=1, contexts=None, device="cpu")
    return WorkerConfig(settings, VOCABULARY, None, True, None, str(tmp_path))


def blocks() -> Iterator[Any]:
    corpus = Corpus.from_texts(TEXTS)
    reading = SentenceStream(corpus, VOCABULARY, None, 16)
    return read_blocks(lambda given: given, [reading], corpus, SENTENCES, 4)


def done(worker: Worker, orders: WorkerConfig) -> list[dict[int, dict[str, Any]]]:
    jobs = [worker.run([orders], ReadingJob(f"job-{number}"), block) for number, block in enumerate(blocks())]
    assert sum(report["stages"]["corpus"].n_sentences for report, _ in jobs) == len(TEXTS)
    assert sum(report["position"].done for report, _ in jobs) == sum(map(len, TEXTS))
    return [statistics for _, statistics in jobs]


def test_jobs_share_their_preparation_and_give_the_same_as_alone(
    orders: WorkerConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BatchBudget, "for_teacher", lambda *_: BatchBudget(256, 16))
    alone = done(Worker(lambda given: given), orders)
    monkeypatch.setattr(BatchBudget, "for_teacher", lambda *_: BatchBudget(256, 16, 2))
    worker = Worker(lambda given: given)
    several = done(worker, orders)
    assert len(several) == len(alone) > 2
    for one, other in zip(alone, several, strict=True):
        assert one.keys() == other.keys()
        for part in one:
            assert all(np.array_equal(one[part][name], other[part][name]) for name in one[part])
    assert len(multiprocessing.active_children()) == 2, "those of the first job"
    assert worker._loader is not None
    worker._loader.__exit__()
    assert multiprocessing.active_children() == []


def test_after_a_job_that_failed_others_prepare(orders: WorkerConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BatchBudget, "for_teacher", lambda *_: BatchBudget(256, 16, 2))
    worker = Worker(lambda given: given)
    block = next(blocks())
    broken = {"texts": block["texts"], "unit": []}  # shorter than the others
    with pytest.raises((ValueError, StillvecError)):
        worker.run([orders], ReadingJob("bad"), broken)
    assert worker._loader is None
    assert multiprocessing.active_children() == []
    done(worker, orders)
    assert worker._loader is not None
    worker._loader.__exit__()


def test_a_worker_tells_how_much_of_its_job_it_has_read(orders: WorkerConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BatchBudget, "for_teacher", lambda *_: BatchBudget(256, 16))
    monkeypatch.setattr("stillvec.distributed.ray_worker._COUNT_SECONDS", 0.0)
    counter, sizes = JobCounter(), list[int]()

    def set_size(job: str, size: TextSize) -> None:
        counter.set(job, size)
        sizes.append(counter.read(["job-0"]).n_tokens)

    remote = SimpleNamespace(set=SimpleNamespace(remote=set_size))
    worker = Worker(lambda given: given)
    report, _ = worker.run([dataclasses.replace(orders, counter=remote)], ReadingJob("job-0"), next(blocks()))
    assert len(sizes) > 2
    assert sizes == sorted(sizes)
    assert sizes[-1] == report["stages"]["corpus"].n_tokens
    assert counter.read([]) == counter.read(["job-0"]) == NO_TEXT, "a job that is done is forgotten"
