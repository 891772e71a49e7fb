"""Text → batches ahead of the teacher: in a thread beside a CPU, in processes before a GPU."""

from __future__ import annotations

import os
import queue
import threading
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_all_start_methods, get_context
from typing import TypeVar

import torch

from stillvec.encoding.prepared import Batch, Marked, batches, prepare
from stillvec.teachers import PieceCutter, Teacher
from stillvec.vocabulary import WordFinder

T = TypeVar("T")


@dataclass(frozen=True)
class Load:
    """How much the teacher gets at once, and who prepares it."""

    pieces: int  # in a batch, padding included
    sentences: int  # sorted by length together
    workers: int = 0  # processes that prepare; 0: one thread

    @classmethod
    def for_device(cls, device: torch.device) -> Load:
        if device.type != "cuda":
            return cls(4_096, 2_048)
        forks = "fork" in get_all_start_methods()
        return cls(65_536, 16_384, max(0, min(16, os.cpu_count() or 1) - 1) if forks else 0)


@dataclass(frozen=True)
class Preparation:
    """All that is needed to make batches of texts."""

    cutter: PieceCutter
    finder: WordFinder
    window: int
    pad: int
    pieces: int

    @classmethod
    def of(cls, teacher: Teacher, finder: WordFinder, load: Load) -> Preparation:
        return cls(teacher.cutter, finder, teacher.window, teacher.pad, load.pieces)

    def __call__(self, marked: Marked) -> list[Batch]:
        found = self.finder.find(marked.texts) if marked.found is None else marked.found
        prepared = prepare(marked.texts, found, self.cutter, self.window)
        return list(batches(prepared, self.cutter, self.pad, self.pieces))


class Preparer:
    """Gives batches in the order of the texts, made ahead of time; use it as a context."""

    def __init__(self, preparation: Preparation, load: Load) -> None:
        self.preparation = preparation
        self.load = load
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Preparer:
        if self.load.workers:
            # fork, as torch's own DataLoader does: the children share the tokenizers and never touch the GPU
            self._pool = ProcessPoolExecutor(
                self.load.workers, get_context("fork"), initializer=_settle, initargs=(self.preparation,)
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                self._pool.submit(os.getpid).result()  # all processes start here, before there are threads
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def batches(self, marked: Iterable[Marked]) -> Iterator[Batch]:
        if self._pool is None:
            return ahead((batch for chunk in marked for batch in self.preparation(chunk)), depth=16)
        return ahead(self._from_processes(self._pool, marked), depth=32)

    def _from_processes(self, pool: ProcessPoolExecutor, marked: Iterable[Marked]) -> Iterator[Batch]:
        waiting: deque[Future[list[Batch]]] = deque()
        for chunk in marked:
            waiting.append(pool.submit(_prepare, chunk))
            while len(waiting) > 2 * self.load.workers:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()


_settled: Preparation | None = None  # a worker process's own


def _settle(preparation: Preparation) -> None:
    global _settled
    _settled = preparation
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(1)


def _prepare(marked: Marked) -> list[Batch]:
    assert _settled is not None
    return _settled(marked)


def ahead(items: Iterable[T], depth: int) -> Iterator[T]:
    """Make up to `depth` items ahead in a thread; its errors appear here, and it ends when we do."""
    ready: queue.Queue[tuple[T | None, BaseException | None]] = queue.Queue(maxsize=depth)
    stop = threading.Event()

    def put(item: T | None, error: BaseException | None) -> None:
        while not stop.is_set():
            try:
                return ready.put((item, error), timeout=0.2)
            except queue.Full:
                continue

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
