"""Text → batches ahead of the teacher: in a thread beside a CPU, in processes before a GPU."""

from __future__ import annotations

import math
import mmap
import os
import queue
import sys
import threading
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import islice
from multiprocessing import get_all_start_methods, get_context
from typing import Any, TypeVar

import numpy as np
import torch

from stillvec.corpus import sentence_ends, split_sentences
from stillvec.encoding.cutting import RunCutter
from stillvec.encoding.prepared import Batch, Marked, Prepared, batches, lay_out, prepare
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
    def for_teacher(cls, teacher: Teacher) -> Load:
        """On a GPU as much as it reads well, and has room for where every layer is listened to."""
        if teacher.device.type != "cuda":
            return cls(4_096, 2_048)
        forks = "fork" in get_all_start_methods()
        memory = torch.cuda.get_device_properties(teacher.device).total_memory
        states = (2 + 4) * (teacher.depth + 1) * teacher.dim  # bytes a piece: as they come, and in fp32
        pieces = int(min(131_072, max(4_096, _ROOM * memory / states)))
        return cls(pieces, 8_192, max(0, min(16, os.cpu_count() or 1) - 1) if forks else 0)


@dataclass(frozen=True)
class Preparation:
    """All that is needed to make batches of texts."""

    cutter: PieceCutter
    finder: WordFinder
    window: int
    pad: int
    pieces: int
    packed: bool = False

    @classmethod
    def of(cls, teacher: Teacher, finder: WordFinder, load: Load) -> Preparation:
        return cls(teacher.cutter, finder, teacher.window, teacher.pad, load.pieces, teacher.packing is not None)

    def __call__(self, marked: Marked) -> list[Batch]:
        texts = marked.texts
        if marked.paragraphs and not marked.whole:
            texts = [sentence for paragraph in texts for sentence in split_sentences(paragraph)]
        if marked.found is None and not marked.whole:
            return self._batched(lay_out(self._runs.cut(texts), self.cutter, self.window))
        found = self.finder.find(texts) if marked.found is None else marked.found
        ends = [sentence_ends(text) for text in texts] if marked.whole else ()
        return self._batched(prepare(texts, found, self.cutter, self.window, ends))

    @cached_property
    def _runs(self) -> RunCutter:
        return RunCutter(self.cutter, self.finder)

    def _batched(self, prepared: Prepared) -> list[Batch]:
        return list(batches(prepared, self.cutter, self.pad, self.pieces, packed=self.packed))


@dataclass
class Bookmark:
    """How far batches were taken: chunks of texts gone by, and batches of the chunk at hand."""

    chunks: int = 0
    batches: int = 0


class Preparer:
    """Gives batches in the order of the texts, made ahead of time; use it as a context."""

    def __init__(self, preparation: Preparation, load: Load) -> None:
        self.preparation = preparation
        self.load = load
        self._pool: ProcessPoolExecutor | None = None
        self._shelves: list[mmap.mmap] = []

    def __enter__(self) -> Preparer:
        if self.load.workers:
            # Large messages through pipes starve beside a busy main thread; memory shared by all is anonymous, so
            # nothing is left behind. Fork, as torch's own DataLoader does: the children never touch the GPU.
            self._shelves = [mmap.mmap(-1, _SHELF) for _ in range(2 * self.load.workers + 2)]
            settled = (self.preparation, self._shelves)
            self._pool = ProcessPoolExecutor(
                self.load.workers, get_context("fork"), initializer=_settle, initargs=settled
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                self._pool.submit(os.getpid).result()  # all processes start here, before there are threads
            self._interval = sys.getswitchinterval()
            sys.setswitchinterval(_SWITCH)
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            sys.setswitchinterval(self._interval)
            self._pool.shutdown(wait=False, cancel_futures=True)

    def batches(self, marked: Iterable[Marked], mark: Bookmark | None = None) -> Iterator[Batch]:
        """Batches from the bookmark on, which goes with them: chunks that were read are passed over, not prepared."""
        mark = mark or Bookmark()
        begun, read = mark.chunks, mark.batches
        rest = islice(marked, begun, None)
        made = map(self.preparation, rest) if self._pool is None else self._from_processes(self._pool, rest)
        placed = (
            (chunk, number, batch)
            for chunk, several in enumerate(made, begun)
            for number, batch in enumerate(several)
            if chunk > begun or number >= read
        )
        for mark.chunks, number, batch in ahead(placed, depth=16 if self._pool is None else 32):
            mark.batches = number + 1
            yield batch

    def _from_processes(self, pool: ProcessPoolExecutor, marked: Iterable[Marked]) -> Iterator[list[Batch]]:
        free = deque(range(len(self._shelves)))
        waiting: deque[tuple[int, Future[_Answer]]] = deque()
        for chunk in marked:
            shelf = free.popleft()
            waiting.append((shelf, pool.submit(_prepare, shelf, _put_texts(self._shelves[shelf], chunk))))
            if not free:
                yield self._take(waiting, free)
        while waiting:
            yield self._take(waiting, free)

    def _take(self, waiting: deque[tuple[int, Future[_Answer]]], free: deque[int]) -> list[Batch]:
        shelf, future = waiting.popleft()
        answer = future.result()
        made: list[Batch] = (
            answer if answer and isinstance(answer[0], Batch) else _get_batches(self._shelves[shelf], answer)
        )
        free.append(shelf)
        return made


_ROOM = 0.15  # of a GPU's memory, for the states of a batch
_SWITCH = 5e-5  # seconds: with Python's 5 ms, the thread that feeds a GPU waits that long for the one that reads text
_SHELF = 64 << 20  # bytes of shared memory for the texts of a task, then for its batches
_Shapes = list[list[tuple[int, ...]]]
_Laid = tuple[int, bool, bool]  # bytes on the shelf, and what kind of texts they are
_Answer = Any  # shapes of batches on the shelf, or the batches themselves where they do not fit
_settled: tuple[Preparation, list[mmap.mmap]] | None = None  # a worker process's own


def _settle(preparation: Preparation, shelves: list[mmap.mmap]) -> None:
    global _settled
    _settled = preparation, shelves
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(1)


def _prepare(shelf: int, task: Marked | _Laid) -> _Answer:
    assert _settled is not None
    preparation, shelves = _settled
    made = preparation(task if isinstance(task, Marked) else _get_texts(shelves[shelf], *task))
    return _put_batches(shelves[shelf], made)


def _put_texts(shelf: mmap.mmap, marked: Marked) -> Marked | _Laid:
    """Lay plain texts on the shelf and give their length and kind; what is marked already goes by itself."""
    data = "\0".join(marked.texts).encode("utf-8", "surrogatepass") if marked.found is None else b""
    if not data or len(data) > _SHELF or data.count(b"\0") != len(marked.texts) - 1:
        return marked
    shelf[: len(data)] = data
    return len(data), marked.paragraphs, marked.whole


def _get_texts(shelf: mmap.mmap, length: int, paragraphs: bool, whole: bool) -> Marked:
    return Marked(shelf[:length].decode("utf-8", "surrogatepass").split("\0"), paragraphs=paragraphs, whole=whole)


def _put_batches(shelf: mmap.mmap, made: list[Batch]) -> _Answer:
    arrays = [[getattr(batch, field.name) for field in fields(Batch)] for batch in made]
    if 4 * sum(array.size for batch in arrays for array in batch) > _SHELF:
        return made
    place = 0
    room = np.frombuffer(shelf, np.int32)
    for array in (array for batch in arrays for array in batch):
        room[place : place + array.size] = array.ravel()
        place += array.size
    return [[array.shape for array in batch] for batch in arrays]


def _get_batches(shelf: mmap.mmap, shapes: _Shapes) -> list[Batch]:
    place = 0
    room = np.frombuffer(shelf, np.int32)
    made = []
    for batch in shapes:
        arrays = []
        for shape in batch:
            size = math.prod(shape)
            arrays.append(room[place : place + size].reshape(shape).copy())
            place += size
        made.append(Batch(*arrays))
    return made


def ahead(items: Iterable[T], depth: int) -> Iterator[T]:
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
