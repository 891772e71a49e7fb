"""`stillvec distill --engine ray`: a Ray cluster reads, this process hands out the jobs, finishes and writes.

Text is read by tasks of Ray Data (`ray_jobs`), and goes from there to the workers that hold a teacher; only
references pass through this process. Ray restarts a worker that dies, and its job is done again.
"""

import dataclasses
import os
import secrets
import shutil
import socket
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any

import numpy as np

from stillvec.corpus import Corpus
from stillvec.corpus.text_chunk import START, StreamPosition
from stillvec.distributed.ray_jobs import (
    MAX_RETRIES,
    PARAGRAPHS,
    SENTENCES,
    MergeTree,
    ReadingJob,
    chunks_per_job,
    leftover_jobs,
    merge_jobs,
    read_texts,
)
from stillvec.distributed.ray_worker import JobCounter, Worker, WorkerConfig, count
from stillvec.distributed.torchrun_reader import check_distributable
from stillvec.encoding import NO_TEXT, BatchBudget, TextSize
from stillvec.encoding.context_store import StoreLocation, join_stores, shard_path
from stillvec.errors import StillvecError, UsageError
from stillvec.learners import EncodingPass, PassPlan
from stillvec.learners.accumulators import AccumulatorSpec, TextSource
from stillvec.learners.encoding_pass import StageState, WordCounts
from stillvec.learners.partition import Partition
from stillvec.learners.stored_contexts import ContextStoreWriter
from stillvec.pipeline.corpus_counts import CorpusCounts, Terms
from stillvec.pipeline.readers import (
    Counting,
    MergedStatistics,
    Reader,
    ReadFacts,
    ReadTask,
    expect_paragraphs,
    report_reading,
)
from stillvec.pipeline.settings import Distillation
from stillvec.progress import Phase, Progress
from stillvec.registry import require
from stillvec.statistics import Statistics
from stillvec.teachers import Teacher

_JOBS_PER_WORKER = 2  # one waits while the other is done, so that a worker is never idle
_CPU_SHARE = 0.5  # that a worker asks for: those of a machine that is lost then fit on the others
_CONNECT_SECONDS = 10.0  # that a cluster may take to answer
_ABANDONED_SECONDS = 7 * 86400.0  # after which contexts that a lost run stored are removed
_POLL_SECONDS = 2.0  # between looks at jobs that are not done
_MAX_FULL_READS = 8  # parts of the count, where each reads through all of the text


class RayReader(Reader):
    """Reads with the workers of a Ray cluster."""

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise UsageError.expected("at least 1 worker", workers, where="--workers")
        super().__init__()
        self.ray: Any = None
        self.address, self.n_workers = address, workers
        self.workers: list[Any] = []
        self.processes: list[int] = []  # of the workers, when they started
        self._teacher_facts: dict[str, Any] = {}
        self._budget: BatchBudget | None = None
        self._config: list[Any] = []  # a reference to it
        self._tree: MergeTree | None = None
        self._counter: Any = None
        self._name = secrets.token_hex(4)  # of the run, in names of stored contexts: another run's are never used
        self._jobs: dict[str, list[str]] = {SENTENCES: [], PARAGRAPHS: []}  # names, by unit

    def check(self, settings: Distillation, corpus: Corpus | None) -> None:
        check_distributable(settings, corpus)
        self.ray = connect(self.address)

    def load_teacher(self, settings: Distillation) -> Teacher:
        """Only its size and its tokenizer are used here; the workers report what it is there."""
        device = "cpu" if settings.device == "cpu" else "auto"
        return super().load_teacher(dataclasses.replace(settings, device=device, precision="auto"))

    def describe_teacher(self, teacher: Teacher) -> dict[str, Any]:
        return dict(self._teacher_facts)

    def budget(self, teacher: Teacher) -> BatchBudget:
        return self._budget or super().budget(teacher)

    def make_pass(self, plan: PassPlan, teacher: Teacher, store: StoreLocation | None) -> EncodingPass:
        return EncodingPass(plan, teacher, store=_absolute(store))

    def count(self, corpus: Corpus, settings: Distillation, terms: Terms) -> Counting:
        start, n_files = time.perf_counter(), len(corpus.sources)
        corpus.watch()
        n_cpus = max(1, int(self.ray.cluster_resources().get("CPU", 1)))
        by_file = n_files >= 4 * _MAX_FULL_READS
        n_parts = min(n_cpus, n_files // 4) if by_file else min(n_cpus, _MAX_FULL_READS)
        task = self.ray.remote(max_retries=MAX_RETRIES)(count)
        sent = self.ray.put(corpus.absolute())
        parts = [Partition(index, n_parts) for index in range(n_parts)]
        whole: CorpusCounts | None = None
        for answer in [task.remote(sent, settings, part, terms, os.getcwd()) for part in parts]:
            counts = self._get(answer)
            whole = counts if whole is None else whole + counts
            yield Progress(Phase.COUNTING, whole.n_words, None, "words", time.perf_counter() - start)
        assert whole is not None
        return whole.choose_words(corpus, settings, terms)

    def read(self, task: ReadTask) -> Generator[Progress, None, ReadFacts]:
        """The count of tokens never decreases, though what unfinished jobs read is known only between their ends."""
        highest, events = 0, self._read(task)
        while True:
            try:
                event = next(events)
            except StopIteration as end:
                facts: ReadFacts = end.value
                return facts
            if event.unit == "tokens":
                highest = max(highest, event.done)
                event = dataclasses.replace(event, done=highest)
            yield event

    def _read(self, task: ReadTask) -> Generator[Progress, None, ReadFacts]:
        yield Progress(Phase.WORKERS, 0, None, "", 0.0)
        self._start_workers(task)
        start = time.perf_counter()
        merging = self.ray.remote(num_cpus=0, max_retries=MAX_RETRIES)(merge_jobs)  # the workers hold the processors
        self._tree = MergeTree(merging.remote)
        counts, encoding_pass = WordCounts(), task.encoding_pass
        yield report_reading(encoding_pass, start)
        self._expect_texts(task)
        positions: dict[str, StreamPosition] = {}  # in the texts, by unit
        for report in self._run_jobs(self._corpus_jobs(task), self._tree):
            if isinstance(report, TextSize):
                yield report_reading(encoding_pass, start, report)
                continue
            counts = {name: counts.get(name, 0) + array for name, array in report["counts"].items()}
            unit, position = report["unit"], report["position"]
            before = positions.get(unit, START)
            positions[unit] = StreamPosition(before.done + position.done, max(before.total, position.total))
            encoding_pass.phase = Phase.CORPUS if unit == SENTENCES else Phase.PARAGRAPHS
            encoding_pass.state.add(report["stages"], positions[unit])
            yield report_reading(encoding_pass, start)
        if task.corpus is not None:
            task.corpus.check_unchanged()
        counts = counts or encoding_pass.word_counts()
        encoding_pass.state.finish()
        encoding_pass.phase = Phase.TEMPLATES if encoding_pass.reads(TextSource.OWN_TEXTS) else Phase.ISOLATED
        n_missing, in_order = 0, bool(encoding_pass.context_writers)
        jobs = leftover_jobs(len(task.plan.vocabulary), counts, in_order=in_order)
        for report in self._run_jobs(((job, None) for job in jobs), self._tree):
            if isinstance(report, TextSize):
                yield report_reading(encoding_pass, start, report)
                continue
            n_missing = report["missing"]
            encoding_pass.state.add(report["stages"])
            yield report_reading(encoding_pass, start)
        encoding_pass.state.finish()
        encoding_pass.finished = True
        yield report_reading(encoding_pass, start)
        counted = "corpus" if encoding_pass.reads(TextSource.SENTENCES) else "paragraphs"
        of_corpus = encoding_pass.state.stages.get(counted, StageState()).progress
        return ReadFacts(
            task.settings.contexts,
            of_corpus.n_sentences,
            of_corpus.n_words,
            encoding_pass.size.n_tokens,
            time.perf_counter() - start,
            n_missing if task.corpus is not None else 0,
            {"workers": len(self.workers)},
        )

    def _expect_texts(self, task: ReadTask) -> None:
        """Estimate, where texts of several kinds are read, those after the first."""
        encoding_pass = task.encoding_pass
        both = all(map(encoding_pass.reads, (TextSource.SENTENCES, TextSource.PARAGRAPHS)))
        stream = task.stream(self.budget(encoding_pass.teacher)) if both else None
        encoding_pass.expect_texts(expect_paragraphs(stream, encoding_pass))

    def _start_workers(self, task: ReadTask) -> None:
        """One worker per GPU, or per processor where there are none."""
        settings, resources = task.settings, self.ray.cluster_resources()
        gpus = int(resources.get("GPU", 0)) if settings.device != "cpu" else 0
        if settings.device == "cuda" and not gpus:
            raise UsageError("The cluster has no GPU, as --device cuda requires; use --device cpu or auto.")
        n_cpus = max(1, int(resources.get("CPU", 1)))
        number = min(self.n_workers or gpus or n_cpus, gpus or n_cpus)
        threads = max(1, n_cpus // number) if gpus else 1
        plan, store = task.plan, _absolute(task.store, self._name)
        has_corpus, folder = task.corpus is not None, os.getcwd()
        self._counter = self.ray.remote(num_cpus=0, max_restarts=MAX_RETRIES)(JobCounter).remote()
        facts = (plan.vocabulary, plan.known, has_corpus, store, folder, threads, self._counter)
        config = WorkerConfig(settings, *facts)
        resources = {"num_cpus": threads, "num_gpus": 1} if gpus else {"num_cpus": _CPU_SHARE}
        actor = self.ray.remote(**resources, max_restarts=MAX_RETRIES, max_task_retries=MAX_RETRIES)(Worker)
        self._config = [self.ray.put(config)]
        self.workers = [actor.remote(self.ray.get) for _ in range(number)]
        answers = [worker.describe.remote(self._config) for worker in self.workers]
        described = [self._get(answer) for answer in answers]
        self.processes = [facts["process"] for facts in described]
        self._teacher_facts, self._budget = described[0]["teacher"], described[0]["budget"]
        if any(facts["teacher"] != self._teacher_facts for facts in described):
            raise StillvecError("The workers' teachers differ in device or precision; give --device and --precision.")

    def _corpus_jobs(self, task: ReadTask) -> Iterator[tuple[ReadingJob, Any]]:
        """Jobs, each with a reference to its text."""
        encoding_pass = task.encoding_pass
        budget = self.budget(encoding_pass.teacher)
        for unit in self._jobs:
            stream = task.stream(budget) if encoding_pass.reads(TextSource(unit)) else None
            if stream is None:
                continue
            n_chunks, names = chunks_per_job(stream), self._jobs[unit]
            stream = dataclasses.replace(stream, corpus=stream.corpus.absolute())
            texts = read_texts(self.ray, stream, unit, n_chunks, len(self.workers))
            while (text := self._translate_errors(next, texts, None)) is not None:
                names.append(f"{unit}-{len(names)}-by-{n_chunks}")
                yield ReadingJob(names[-1], unit), text

    def _run_jobs(self, jobs: Iterator[tuple[ReadingJob, Any]], tree: MergeTree) -> Iterator[dict[str, Any] | TextSize]:
        """The workers' report of each job as it is done, and between them how much was read of the others.

        Statistics go to the tree, in the order of the jobs.
        """
        busy: dict[Any, tuple[Any, ReadingJob]] = {}
        free = [worker for _ in range(_JOBS_PER_WORKER) for worker in self.workers]
        while True:
            while free and (next_job := next(jobs, None)) is not None:
                worker, job = free.pop(0), next_job[0]
                report, statistics = worker.run.options(num_returns=2).remote(self._config, *next_job)
                busy[report] = worker, job
                tree.add(statistics)
            if not busy:
                return
            done = self.ray.wait([*busy], num_returns=1, timeout=_POLL_SECONDS)[0]
            if not done:
                yield self._count_unfinished([job.name for _, job in busy.values()])
            for ready in done:
                worker, job = busy.pop(ready)
                free.append(worker)
                yield self._get(ready) | {"unit": job.unit}

    def _count_unfinished(self, jobs: list[str]) -> TextSize:
        """How much was read of jobs; nothing where the counter was lost with its machine."""
        try:
            size: TextSize = self.ray.get(self._counter.read.remote(jobs), timeout=_POLL_SECONDS)
        except self.ray.exceptions.RayError:
            return NO_TEXT
        return size

    def gather(self, task: ReadTask) -> Generator[Progress, None, MergedStatistics]:
        yield Progress(Phase.MERGING, 0, None, "", 0.0)
        assert self._tree is not None
        root = self._tree.root()
        statistics = {} if root is None else self._get(root)
        merged: dict[AccumulatorSpec, Statistics] = {}
        for number, (spec, accumulator) in enumerate(task.encoding_pass.accumulators.items()):
            if isinstance(accumulator, ContextStoreWriter):
                self._join(accumulator)
            else:
                arrays = {name: np.array(array) for name, array in statistics[number].items()}
                merged[spec] = Statistics(task.plan.vocabulary, arrays)
        return merged

    def _join(self, writer: ContextStoreWriter) -> None:
        """The contexts that workers stored, in the order of the corpus."""
        path = writer.path()
        if not path.exists():
            unit = PARAGRAPHS if writer.spec.unit == "paragraph" else SENTENCES
            names = (*self._jobs[unit], "rest-0-of-1")
            shards = [shard_path(path, f"job-{self._name}-{name}") for name in names]
            writer.contexts = join_stores(path, shards)
        for leftover in path.parent.glob(f"{path.name}-job-*"):
            old = time.time() - leftover.stat().st_mtime > _ABANDONED_SECONDS
            if old or leftover.name.startswith(f"{path.name}-job-{self._name}-"):
                shutil.rmtree(leftover, ignore_errors=True)

    def _get(self, reference: Any) -> Any:
        return self._translate_errors(self.ray.get, reference)

    def _translate_errors(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """The call's result; an error of a worker is raised as one of stillvec's."""
        errors = self.ray.exceptions
        try:
            return call(*arguments)
        except errors.RayTaskError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, StillvecError):
                raise type(cause)(*cause.args) from None
            raise StillvecError(f"A worker failed: {str(error).strip().splitlines()[-1]}") from None
        except errors.RayError as error:
            reason = str(error).strip().splitlines()[0]
            raise StillvecError(f"The cluster lost a worker and could not replace it: {reason}") from None

    def close(self) -> None:
        """End the workers."""
        for worker in self.workers:
            self.ray.kill(worker)
        self.workers, self._counter = [], None  # an actor without a handle ends


def _absolute(store: StoreLocation | None, shard: str | None = None) -> StoreLocation | None:
    return None if store is None else dataclasses.replace(store, folder=store.folder.absolute(), shard=shard)


def connect(address: str | None) -> Any:
    """Ray, connected to the cluster at `address` (or $RAY_ADDRESS), else to a new one on this machine."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    ray, *_ = (require(package, "ray", "--engine ray") for package in ("ray", "pandas", "pyarrow"))
    if ray.is_initialized():
        return ray
    arguments: dict[str, Any] = {"address": address or os.environ.get("RAY_ADDRESS")}
    if arguments["address"] is None:
        arguments |= {"include_dashboard": False}
    else:
        _check_reachable(arguments["address"])
    try:
        ray.init(**arguments, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UsageError(f"No Ray cluster at {arguments['address'] or 'this machine'}: {reason}") from None
    return ray


def _check_reachable(address: str) -> None:
    """Fail fast where nothing answers: Ray itself waits for minutes. Other forms (auto, ray://...) are left to Ray."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, OverflowError):
        raise UsageError(f"No Ray cluster at {address}; start one (ray start --head), or check the address.") from None
