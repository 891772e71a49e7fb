"""`stillvec distill --engine ray`: a Ray cluster reads, this process hands out the jobs, finishes and writes.

Text is read by tasks of Ray Data (`dataset`), and goes from there to the workers that hold a teacher; here only
references pass. A worker that dies is started again, by Ray, and does its job once more.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import socket
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any

import numpy as np

from stillvec.corpus import Corpus
from stillvec.distributed.ray_dataset import texts_of
from stillvec.distributed.ray_jobs import (
    AGAIN,
    PARAGRAPHS,
    SENTENCES,
    ReadingJob,
    Tree,
    chunks_a_job,
    leftover_jobs,
    merged,
)
from stillvec.distributed.ray_worker import Worker, WorkerConfig, count
from stillvec.distributed.torchrun_run import check_shareable
from stillvec.encoding import BatchBudget, StoreLocation, join_stores, shard_of
from stillvec.errors import StillvecError, UsageError
from stillvec.learners import EncodingPass
from stillvec.learners.encoding_pass import Met
from stillvec.learners.partition import Partition
from stillvec.learners.stored_contexts import ContextStoreWriter
from stillvec.pipeline import Distillation, Progress, Run
from stillvec.registry import require
from stillvec.statistics import Statistics
from stillvec.teachers import Teacher, load_teacher
from stillvec.vocabulary import Vocabulary

_AHEAD = 2  # jobs that wait at a worker, so that it never waits for us
_HALF = 0.5  # of a processor is what a worker asks for: those of a machine that is lost find room on the others
_KNOCK = 10.0  # seconds that a cluster may take to answer
_READING_THROUGH = 8  # shares of the count at most, where each reads all of the text


class RayRun(Run):
    """A distillation whose reading is done by a cluster."""

    def __init__(
        self,
        settings: Distillation,
        corpus: Corpus | None,
        add_to: str | os.PathLike[str] | None = None,
        *,
        store: str | os.PathLike[str] | None = None,
        address: str | None = None,
        workers: int | None = None,
    ) -> None:
        super().__init__(settings, corpus, add_to, store=store)
        if workers is not None and workers < 1:
            raise UsageError(f"The number of workers is at least 1, and {workers} came.")
        check_shareable(settings, corpus)
        self.ray = begun(address)
        self.wanted = workers
        self.workers: list[Any] = []
        self.processes: list[int] = []  # theirs, when they began
        self._told: dict[str, Any] = {}
        self._load: BatchBudget | None = None
        self._orders: list[Any] = []

    def _teacher(self) -> Teacher:
        """Here it only tells its size and cuts words; what it is in the workers, they say."""
        chosen = self.settings
        device = "cpu" if chosen.device == "cpu" else "auto"
        return load_teacher(
            chosen.teacher, device=device, unsafe_weights=chosen.unsafe_weights, remote_code=chosen.remote_code
        )

    def describe_teacher(self, teacher: Teacher) -> dict[str, Any]:
        return dict(self._told)

    def load(self, teacher: Teacher) -> BatchBudget:
        return super().load(teacher) if self._load is None else self._load

    def _count(self, corpus: Corpus) -> Generator[Progress, None, Vocabulary]:
        begun, files = time.perf_counter(), len(corpus.sources)
        processors = max(1, int(self.ray.cluster_resources().get("CPU", 1)))
        of = min(processors, files // 4) if files >= 4 * _READING_THROUGH else min(processors, _READING_THROUGH)
        task = self.ray.remote(max_retries=AGAIN)(count)
        sent, settings = self.ray.put(corpus.absolute()), dataclasses.replace(self.settings)
        waiting = [task.remote(sent, settings, Partition(number, of), os.getcwd()) for number in range(of)]
        whole = None
        for share in waiting:
            counted = self._get(share)
            whole = counted if whole is None else whole + counted
            yield Progress("counting words", whole.words, None, "words", time.perf_counter() - begun)
        assert whole is not None
        found: tuple[Vocabulary, dict[str, Any]] = whole.chosen(corpus, self.settings)
        self.facts["corpus"] = found[1]
        return found[0]

    def _read(self, lesson: EncodingPass, teacher: Teacher, vocabulary: Vocabulary) -> Iterator[Progress]:
        yield Progress("starting the workers", 0, None, "", 0.0)
        self._begin(vocabulary)
        begun = time.perf_counter()
        merging = self.ray.remote(num_cpus=0, max_retries=AGAIN)(merged)  # the workers hold the processors
        tree, met, read = Tree(merging.remote), Met(), dict.fromkeys(("sentences", "words", "pieces"), 0)
        total = self.facts["corpus"]["words"] or None
        names: dict[str, list[str]] = {SENTENCES: [], PARAGRAPHS: []}
        for told in self._done(self._corpus_jobs(lesson, teacher, vocabulary, names), tree):
            met = {name: met.get(name, 0) + array for name, array in told["met"].items()}
            for name in ("sentences", "words") if told["unit"] == self._first(lesson) else ():
                read[name] += told[name]
            read["pieces"] += told["pieces"]
            yield Progress("reading the corpus", read["words"], total, "words", time.perf_counter() - begun)
        met = met or lesson.met()
        lacking, keeping = 0, any(isinstance(each, ContextStoreWriter) for each in lesson.listeners)
        for told in self._done(((job, None) for job in leftover_jobs(len(vocabulary), met, in_order=keeping)), tree):
            read["pieces"] += told["pieces"]
            lacking = told["lacking"]
            yield Progress("reading what the corpus lacks", read["pieces"], None, "pieces", time.perf_counter() - begun)
        yield Progress("bringing together what was heard", 0, None, "", 0.0)
        self._gather(lesson, tree, names)
        seconds = time.perf_counter() - begun
        self.facts["read"] = {
            "contexts": self.settings.contexts if self.settings.contexts is not None else "all",
            **read,
            "seconds": round(seconds, 3),
            "pieces_a_second": round(read["pieces"] / max(seconds, 1e-9)),
            "words_without_context": lacking if self.corpus is not None else 0,
            "workers": len(self.workers),
        }

    def _first(self, lesson: EncodingPass) -> str:
        return SENTENCES if lesson.needs_corpus else PARAGRAPHS

    def _begin(self, vocabulary: Vocabulary) -> None:
        """One worker a GPU, or a processor where there are none."""
        resources = self.ray.cluster_resources()
        gpus = int(resources.get("GPU", 0)) if self.settings.device != "cpu" else 0
        if self.settings.device == "cuda" and not gpus:
            raise UsageError("The device cuda was asked for, and the cluster has no GPU; use --device cpu or auto.")
        processors = max(1, int(resources.get("CPU", 1)))
        number = min(self.wanted or gpus or processors, gpus or processors)
        each = max(1, processors // number) if gpus else 1
        known = None if self.earlier is None else self.earlier.vocabulary
        store = self.desk(vocabulary)
        orders = WorkerConfig(self.settings, vocabulary, known, self.corpus is not None, store, os.getcwd(), each)
        room = {"num_cpus": each, "num_gpus": 1} if gpus else {"num_cpus": _HALF}
        kind = self.ray.remote(**room, max_restarts=AGAIN, max_task_retries=AGAIN)(Worker)
        self._orders = [self.ray.put(orders)]
        self.workers = [kind.remote(self.ray.get) for _ in range(number)]
        waiting = [worker.described.remote(self._orders) for worker in self.workers]
        described = [self._get(answer) for answer in waiting]
        self.processes = [each["process"] for each in described]
        self._told, self._load = described[0]["teacher"], described[0]["load"]
        if any(each["teacher"] != self._told for each in described):
            raise StillvecError("The workers' teachers differ in device or precision; give --device and --precision.")

    def desk(self, vocabulary: Vocabulary, kept: Any = None) -> StoreLocation | None:
        desk = super().desk(vocabulary, kept)
        return None if desk is None else dataclasses.replace(desk, folder=desk.folder.absolute())

    def _corpus_jobs(
        self, lesson: EncodingPass, teacher: Teacher, vocabulary: Vocabulary, names: dict[str, list[str]]
    ) -> Iterator[tuple[ReadingJob, Any]]:
        """A job and a reference to its text."""
        load = self.load(teacher)
        for unit, wanted in ((SENTENCES, lesson.needs_corpus), (PARAGRAPHS, lesson.needs_paragraphs)):
            reading = self.reading(vocabulary, load) if wanted else None
            if reading is None:
                continue
            chunks = chunks_a_job(reading)
            reading = dataclasses.replace(reading, corpus=reading.corpus.absolute())
            texts = texts_of(self.ray, reading, unit, chunks, len(self.workers))
            while (text := self._ours(next, texts, None)) is not None:
                names[unit].append(f"{unit}-{len(names[unit])}-by-{chunks}")
                yield ReadingJob(names[unit][-1], unit), text

    def _done(self, jobs: Iterator[tuple[ReadingJob, Any]], tree: Tree) -> Iterator[dict[str, Any]]:
        """What the workers tell of each job as it is done; what they heard goes to the tree, in the order of jobs."""
        busy: dict[Any, tuple[Any, ReadingJob]] = {}
        free = [worker for _ in range(_AHEAD) for worker in self.workers]
        while True:
            while free and (given := next(jobs, None)) is not None:
                worker, job = free.pop(0), given[0]
                told, heard = worker.do.options(num_returns=2).remote(self._orders, *given)
                busy[told] = worker, job
                tree.add(heard)
            if not busy:
                return
            for ready in self.ray.wait([*busy], num_returns=1)[0]:
                worker, job = busy.pop(ready)
                free.append(worker)
                yield self._get(ready) | {"unit": job.unit}

    def _gather(self, lesson: EncodingPass, tree: Tree, names: dict[str, list[str]]) -> None:
        whole = tree.whole()
        heard = {} if whole is None else self._get(whole)
        for number, (part, listener) in enumerate(lesson.heard_by.items()):
            if isinstance(listener, ContextStoreWriter):
                self._join(listener, names)
            else:
                arrays = {name: np.array(array) for name, array in heard[number].items()}
                lesson.told[part] = Statistics(lesson.vocabulary, arrays)

    def _join(self, keeper: ContextStoreWriter, names: dict[str, list[str]]) -> None:
        """The contexts that workers kept, in the order of the corpus."""
        place = keeper.place()
        if not place.exists():
            unit = PARAGRAPHS if keeper.part.unit == "paragraph" else SENTENCES
            shards = [shard_of(place, f"job-{name}") for name in (*names[unit], "rest-0-of-1")]
            keeper.kept = join_stores(place, shards)
        for left in place.parent.glob(f"{place.name}-job-*"):
            shutil.rmtree(left, ignore_errors=True)

    def _get(self, reference: Any) -> Any:
        return self._ours(self.ray.get, reference)

    def _ours(self, what: Callable[..., Any], *given: Any) -> Any:
        """What a worker gave, or its error as one of ours."""
        errors = self.ray.exceptions
        try:
            return what(*given)
        except errors.RayTaskError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, StillvecError):
                raise type(cause)(*cause.args) from None
            raise StillvecError(f"A worker failed: {str(error).strip().splitlines()[-1]}") from None
        except errors.RayError as error:
            told = str(error).strip().splitlines()[0]
            raise StillvecError(f"The cluster lost a worker and could not replace it: {told}") from None

    def end(self) -> None:
        """The workers go."""
        for worker in self.workers:
            self.ray.kill(worker)
        self.workers = []


def begun(address: str | None) -> Any:
    """Ray, at the cluster that is named (or $RAY_ADDRESS), else one of this machine, unless it runs already."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    ray, *_ = (require(package, "ray", "--engine ray") for package in ("ray", "pandas", "pyarrow"))
    if ray.is_initialized():
        return ray
    given: dict[str, Any] = {"address": address or os.environ.get("RAY_ADDRESS")}
    if given["address"] is None:
        given |= {"include_dashboard": False}
    else:
        _knock(given["address"])
    try:
        ray.init(**given, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError) as error:
        told = str(error).strip().splitlines()[0]
        raise UsageError(f"There is no Ray cluster at {given['address'] or 'this machine'}: {told}") from None
    return ray


def _knock(address: str) -> None:
    """Whether anyone is there: Ray itself would wait for minutes. Other forms (auto, ray://...) are Ray's to judge."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=_KNOCK).close()
    except (OSError, OverflowError):
        raise UsageError(f"There is no Ray cluster at {address}; start one (ray start --head), or check it.") from None
