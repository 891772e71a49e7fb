"""A worker of a Ray cluster: it holds a teacher on its device, and reads what it is given."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch

from stillvec.corpus import Corpus
from stillvec.distributed.ray_dataset import chunks_in
from stillvec.distributed.ray_jobs import SENTENCES, Heard, ReadingJob
from stillvec.encoding import BatchBudget, BatchLoader, PassProgress, StoreLocation
from stillvec.learners import EncodingPass
from stillvec.learners.accumulators import OwnTextsSpec
from stillvec.learners.encoding_pass import CORPUS, batch_loader
from stillvec.learners.encoding_pass import PARAGRAPHS as BY_PARAGRAPH
from stillvec.learners.partition import Partition
from stillvec.pipeline import Distillation
from stillvec.pipeline.corpus_counts import CorpusCounts, count_partition
from stillvec.pipeline.manifest import describe_teacher
from stillvec.teachers import load_teacher
from stillvec.vocabulary import Vocabulary


@dataclass(frozen=True)
class WorkerConfig:
    """All that a worker must know, whichever job it gets."""

    settings: Distillation
    vocabulary: Vocabulary
    known: Vocabulary | None
    corpus: bool  # whether there is one
    desk: StoreLocation | None
    folder: str  # where the run was started
    threads: int = 1  # of a CPU


class Worker:
    """Reads jobs; what a job gives depends on nothing that an earlier one left."""

    def __init__(self, fetch: Callable[[Any], Any]) -> None:
        self.fetch = fetch
        self._begun = False
        self._preparer: BatchLoader | None = None  # who prepares text stays, and remembers it, from job to job

    def _begin(self, orders: WorkerConfig) -> None:
        """At the first job: what a worker is made with must not hang on an object that the cluster may lose."""
        chdir(orders.folder)
        torch.set_num_threads(orders.threads)
        chosen = orders.settings
        self.orders = orders
        self.teacher = load_teacher(
            chosen.teacher,
            device=chosen.device,
            precision=chosen.precision,
            unsafe_weights=chosen.unsafe_weights,
            remote_code=chosen.remote_code,
        )
        self.learners = chosen.learners(self.teacher.depth, corpus=orders.corpus)
        self.load = BatchBudget.for_teacher(self.teacher, orders.threads)
        self._begun = True

    def described(self, given: Sequence[Any]) -> dict[str, Any]:
        """The teacher as it stands here, how much it gets at once, our process; `given` is a reference in a list."""
        if not self._begun:
            self._begin(self.fetch(given[0]))
        return {"teacher": describe_teacher(self.teacher), "load": self.load, "process": os.getpid()}

    def do(self, given: Sequence[Any], job: ReadingJob, text: Any = None) -> tuple[dict[str, Any], Heard]:
        """What is small, for the run to look at, and what is large, for whoever merges it."""
        if not self._begun:
            self._begin(self.fetch(given[0]))
        orders = self.orders
        desk = None if orders.desk is None else dataclasses.replace(orders.desk, shard=f"job-{job.name}")
        lesson = EncodingPass(self.learners, self.teacher, orders.vocabulary, orders.known, desk)
        lesson.preparer = self._preparer = (
            self._preparer or batch_loader(self.teacher, orders.vocabulary, self.load).__enter__()
        )
        if job.share is not None and job.met is not None:
            lesson.share = job.share
            steps = lesson.complete(job.met)
        else:
            chunks = chunks_in(text)
            steps = lesson.hear(chunks) if job.unit == SENTENCES else lesson.hear((), paragraphs=chunks)
        try:
            read: dict[str, PassProgress] = dict(steps)
        except BaseException:
            self._preparer.__exit__()
            self._preparer = None
            raise
        own = {part for part in lesson.heard_by if isinstance(part, OwnTextsSpec)}
        heard = {
            number: dict(lesson.statistics(part).arrays)
            for number, (part, listener) in enumerate(lesson.heard_by.items())
            if not hasattr(listener, "kept") and (job.share is not None or part not in own)
        }
        first = read.get(CORPUS if job.unit == SENTENCES else BY_PARAGRAPH, PassProgress())
        told = {
            "met": lesson.words_met,
            "sentences": first.n_sentences if job.share is None else 0,
            "words": first.n_words if job.share is None else 0,
            "pieces": sum(progress.n_tokens for progress in read.values()),
            "lacking": lesson.lacking,
        }
        return told, heard


def count(corpus: Corpus, settings: Distillation, share: Partition, folder: str) -> CorpusCounts:
    """A share of the first reading."""
    chdir(folder)
    steps = count_partition(corpus, settings, share)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: CorpusCounts = end.value
            return found


def chdir(folder: str) -> None:
    """Where the run was started, so that its paths mean the same here, if the machines share that folder."""
    with suppress(OSError):
        os.chdir(folder)
