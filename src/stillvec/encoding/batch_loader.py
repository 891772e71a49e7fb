"""Text → batches ahead of the teacher: in a thread beside a CPU, in processes before a GPU."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from multiprocessing import get_all_start_methods
from typing import TypeVar

import torch

from stillvec.corpus import sentence_ends, split_sentences
from stillvec.encoding.batch import Batch, TextChunk, TokenizedChunk, batches, lay_out, tokenize
from stillvec.encoding.caching_tokenizer import CachingTokenizer
from stillvec.encoding.worker_pool import WorkerPool
from stillvec.teachers import SubwordTokenizer, Teacher
from stillvec.vocabulary import WordMatcher

T = TypeVar("T")


@dataclass(frozen=True)
class BatchBudget:
    """How much the teacher gets at once, and who prepares it."""

    pieces: int  # in a batch, padding included
    sentences: int  # sorted by length together
    workers: int = 0  # processes that prepare; 0: one thread

    @classmethod
    def for_teacher(cls, teacher: Teacher, threads: int | None = None) -> BatchBudget:
        """On a GPU as much as it reads well, and has room for where every layer is listened to.

        Of the threads, by default our share of the processor's, one drives the GPU and one reads the text.
        """
        if teacher.device.type != "cuda":
            return cls(4_096, 2_048)
        forks = "fork" in get_all_start_methods()
        memory = torch.cuda.get_device_properties(teacher.device).total_memory
        states = (2 + 4) * (teacher.depth + 1) * teacher.dim  # bytes a piece: as they come, and in fp32
        pieces = int(min(262_144, max(4_096, _ROOM * memory / states)))
        threads = threads or _our_cores()
        return cls(pieces, 16_384, max(1, min(_WORKERS, threads - 2)) if forks and threads > 1 else 0)


@dataclass(frozen=True)
class BatchBuilder:
    """All that is needed to make batches of texts."""

    cutter: SubwordTokenizer
    finder: WordMatcher
    window: int
    pad: int
    pieces: int
    packed: bool = False

    @classmethod
    def of(cls, teacher: Teacher, finder: WordMatcher, load: BatchBudget) -> BatchBuilder:
        return cls(teacher.tokenizer, finder, teacher.window, teacher.pad, load.pieces, teacher.packing is not None)

    def __call__(self, marked: TextChunk) -> list[Batch]:
        texts = marked.texts
        if marked.paragraphs and not marked.whole:
            texts = [sentence for paragraph in texts for sentence in split_sentences(paragraph)]
        if marked.found is None and not marked.whole:
            return self._batched(lay_out(self._runs.cut(texts), self.cutter, self.window))
        found = self.finder.find(texts) if marked.found is None else marked.found
        ends = [sentence_ends(text) for text in texts] if marked.whole else ()
        return self._batched(tokenize(texts, found, self.cutter, self.window, ends))

    @cached_property
    def _runs(self) -> CachingTokenizer:
        return CachingTokenizer(self.cutter, self.finder)

    def _batched(self, prepared: TokenizedChunk) -> list[Batch]:
        return list(batches(prepared, self.cutter, self.pad, self.pieces, packed=self.packed))


@dataclass
class Bookmark:
    """How far batches were taken: chunks of texts gone by, and batches of the chunk at hand."""

    chunks: int = 0
    batches: int = 0
    passed: int = 0  # as that chunk has it


class BatchLoader:
    """Gives batches in the order of the texts, made ahead of time; use it as a context."""

    def __init__(self, preparation: BatchBuilder, load: BatchBudget) -> None:
        self.preparation = preparation
        self.load = load
        self._crew: WorkerPool | None = None

    def __enter__(self) -> BatchLoader:
        if self.load.workers:
            self._crew = WorkerPool(self.preparation, self.load.workers)
        return self

    def __exit__(self, *_: object) -> None:
        if self._crew is not None:
            self._crew.close()

    def batches(self, marked: Iterable[TextChunk], mark: Bookmark | None = None) -> Iterator[Batch]:
        """Batches from the bookmark on, which goes with them: chunks that were read are passed over, not prepared."""
        mark = mark or Bookmark()
        begun, read = mark.chunks, mark.batches
        rest = islice(marked, begun, None)
        made = self._here(rest) if self._crew is None else self._crew.batches(rest)
        placed = (
            (chunk, passed, number, batch)
            for chunk, (passed, several) in enumerate(made, begun)
            for number, batch in enumerate(several)
            if chunk > begun or number >= read
        )
        for mark.chunks, mark.passed, number, batch in prefetch(placed, depth=16) if self._crew is None else placed:
            mark.batches = number + 1
            yield batch

    def _here(self, marked: Iterable[TextChunk]) -> Iterator[tuple[int, list[Batch]]]:
        return ((each.passed, self.preparation(each)) for each in marked)


def _our_cores() -> int:
    """Those we may use; torchrun's processes on one machine share them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // int(os.environ.get("LOCAL_WORLD_SIZE", 1)))


_WORKERS = 14  # processes, at most
_ROOM = 0.15  # of a GPU's memory, for the states of a batch


def prefetch(items: Iterable[T], depth: int) -> Iterator[T]:
    """Make up to `depth` items ahead in a thread; its errors appear here, and it ends when we do."""
    ready: queue.Queue[tuple[T | None, BaseException | None]] = queue.Queue(maxsize=depth)
    stop = threading.Event()

    def put(item: T | None, error: BaseException | None) -> None:
        while not stop.is_set():
            with suppress(queue.Full):
                ready.put((item, error), timeout=0.2)
                return

    def work() -> None:
        try:
            for item in items:
                put(item, None)
                if stop.is_set():
                    return
        except BaseException as error:  # handed over to the reader, who raises it
            put(None, error)
            return
        put(None, None)

    threading.Thread(target=work, daemon=True).start()
    try:
        while True:
            item, error = ready.get()
            if error is not None:
                raise error
            if item is None:
                return
            yield item
    finally:
        stop.set()
