"""A worker of a Ray cluster: it holds a teacher on its device, and reads the jobs it is given."""

import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch

from stillvec.corpus import Corpus
from stillvec.corpus.text_chunk import START
from stillvec.distributed.ray_jobs import SENTENCES, JobStatistics, ReadingJob, block_chunks, block_position
from stillvec.encoding import BatchBudget, BatchLoader, TextSize
from stillvec.encoding.context_store import StoreLocation
from stillvec.learners import EncodingPass, PassPlan
from stillvec.learners.accumulators import TextSource
from stillvec.learners.encoding_pass import make_loader
from stillvec.learners.partition import Partition
from stillvec.learners.stored_contexts import ContextStoreWriter
from stillvec.pipeline.corpus_counts import CorpusCounts, Terms, count_partition
from stillvec.pipeline.readers import Reader
from stillvec.pipeline.result_folders import describe_teacher
from stillvec.pipeline.settings import Distillation
from stillvec.progress import drain
from stillvec.vocabulary import Vocabulary

_COUNT_SECONDS = 1.0  # between reports of a job that is being read


@dataclass(frozen=True)
class WorkerConfig:
    """All that a worker must know, whichever job it gets."""

    settings: Distillation
    vocabulary: Vocabulary
    known: Vocabulary | None
    has_corpus: bool
    store: StoreLocation | None
    folder: str  # where the run was started
    threads: int = 1  # of a CPU
    counter: Any = None  # the actor that is told, from time to time, how much of a job was read


class JobCounter:
    """How much was read of the jobs that are not done yet."""

    def __init__(self) -> None:
        self._sizes: dict[str, TextSize] = {}

    def set(self, job: str, size: TextSize) -> None:
        self._sizes[job] = size

    def read(self, jobs: Sequence[str]) -> TextSize:
        """Of these jobs; others are done, and forgotten."""
        self._sizes = {job: self._sizes[job] for job in jobs if job in self._sizes}
        return TextSize.sum(self._sizes.values())


class Worker:
    """Reads jobs; the result of a job does not depend on earlier ones."""

    def __init__(self, fetch: Callable[[Any], Any]) -> None:
        self.fetch = fetch
        self.config: WorkerConfig | None = None
        self._loader: BatchLoader | None = None  # lives, with its processes and caches, from job to job

    def _start(self, reference: Sequence[Any]) -> WorkerConfig:
        """On the first job: a worker's constructor must not depend on an object that the cluster may lose."""
        if self.config is None:
            config: WorkerConfig = self.fetch(reference[0])
            chdir(config.folder)
            torch.set_num_threads(config.threads)
            self.teacher = Reader().load_teacher(config.settings)
            learners = config.settings.learners(self.teacher.depth, corpus=config.has_corpus)
            self.plan = PassPlan(learners, config.vocabulary, config.known)
            self.budget = BatchBudget.for_teacher(self.teacher, config.threads)
            self.config = config
        return self.config

    def describe(self, reference: Sequence[Any]) -> dict[str, Any]:
        """The teacher on this machine, its budget, and this process; `reference` is one in a list."""
        self._start(reference)
        return {"teacher": describe_teacher(self.teacher), "budget": self.budget, "process": os.getpid()}

    def run(self, reference: Sequence[Any], job: ReadingJob, text: Any = None) -> tuple[dict[str, Any], JobStatistics]:
        """A small report for the run, and statistics, which are large, for merging."""
        config = self._start(reference)
        store = (
            None
            if config.store is None
            else dataclasses.replace(config.store, shard=f"job-{config.store.shard}-{job.name}")
        )
        if self._loader is None:
            self._loader = make_loader(self.teacher, self.plan.matcher, self.budget).__enter__()
        encoding_pass = EncodingPass(self.plan, self.teacher, store=store, partition=job.partition, loader=self._loader)
        if job.counts is not None:
            steps = encoding_pass.read_missing_words(job.counts)
        elif job.unit == SENTENCES:
            steps = encoding_pass.read_corpus(block_chunks(text))
        else:
            steps = encoding_pass.read_corpus((), paragraphs=block_chunks(text))
        try:
            told = time.perf_counter()
            for _ in steps:
                if config.counter is not None and time.perf_counter() - told > _COUNT_SECONDS:
                    config.counter.set.remote(job.name, encoding_pass.size)
                    told = time.perf_counter()
        except BaseException:
            self._loader.__exit__()
            self._loader = None
            raise
        statistics = {
            number: dict(encoding_pass.statistics(spec).arrays)
            for number, (spec, accumulator) in enumerate(encoding_pass.accumulators.items())
            if not isinstance(accumulator, ContextStoreWriter)
            and (job.partition is not None or spec.source is not TextSource.OWN_TEXTS)
        }
        report = {
            "counts": encoding_pass.word_counts() if job.partition is None else {},
            "stages": {key: stage.progress for key, stage in encoding_pass.state.stages.items()},
            "position": block_position(text) if job.partition is None else START,
            "missing": encoding_pass.n_missing_words,
        }
        return report, statistics


def count(corpus: Corpus, settings: Distillation, partition: Partition, terms: Terms, folder: str) -> CorpusCounts:
    """Count one part of the corpus."""
    chdir(folder)
    return drain(count_partition(corpus, settings, partition, terms))


def chdir(folder: str) -> None:
    """Go where the run was started, so that its paths mean the same here, if the machines share that folder."""
    with suppress(OSError):
        os.chdir(folder)
