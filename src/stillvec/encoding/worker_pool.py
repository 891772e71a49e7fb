"""Batches made by processes: one reads the text, many prepare it, and whoever drives the GPU only takes them.

There is no thread beside the one that drives it: every step of torch lets go of Python's lock, and a thread that reads
text would have it next, hundreds of times a batch. Chunks go round: the one after the last worker's is the first one's
again, so that what is taken in turn is in order. Texts and batches lie in memory that all share, as large messages
through pipes are slow; it has no name, so that nothing is left behind. Processes are forked, as those of torch's own
DataLoader are, and never touch the GPU.
"""

from __future__ import annotations

import gc
import math
import mmap
import os
import signal
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from itertools import count, cycle
from multiprocessing import get_context
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
import torch

from stillvec.encoding.batch import Batch, TextChunk
from stillvec.errors import StillvecError

BUFFER_BYTES = 64 << 20  # bytes of shared memory for the texts of a chunk, then for its batches
BUFFERS_PER_WORKER = 2  # a worker: on one it works while the other waits
_WATCH = 0.5  # seconds between looks at whether the others live
_Shapes = list[list[tuple[int, ...]]]
_END: Any = None  # of a reading, in place of its texts
_Laid = tuple[int, bool, bool]  # bytes on the shelf, and what kind of texts they are
_Answer = Any  # shapes of batches on the shelf, or the batches themselves where they do not fit


class WorkerPool:
    """Worker processes, which live from the first reading to `close`, and a reader for each reading."""

    def __init__(self, prepare: Callable[[TextChunk], list[Batch]], workers: int) -> None:
        self._forking: Any = get_context("fork")
        self._prepare = prepare
        self._shelves = [[mmap.mmap(-1, BUFFER_BYTES) for _ in range(BUFFERS_PER_WORKER)] for _ in range(workers)]
        self._tasks = [self._forking.Pipe(duplex=False) for _ in range(workers)]  # reader → worker
        self._answers = [self._forking.Pipe(duplex=False) for _ in range(workers)]  # worker → here
        self._room = self._forking.Semaphore(BUFFERS_PER_WORKER * workers)  # free shelves
        self._processes = [self._started(self._work, number) for number in range(workers)]

    def batches(self, marked: Iterable[TextChunk]) -> Iterator[tuple[int, list[Batch]]]:
        """Of each chunk, in order, with what it has `passed`. A reading that is not read to its end is the last."""
        reader = self._started(self._read, marked)
        self._processes.append(reader)
        for number, ((answers, _), shelves) in enumerate(cycle(zip(self._answers, self._shelves, strict=True))):
            while not answers.poll(_WATCH):
                self._look()
            passed, answer = answers.recv()
            if answer is _END:
                break
            if isinstance(answer, Exception):
                raise answer
            shelf = shelves[number // len(self._shelves) % BUFFERS_PER_WORKER]
            made = answer if answer and isinstance(answer[0], Batch) else _get_batches(shelf, answer)
            self._room.release()
            yield passed, made
        self._processes.remove(reader)
        self._room.release()
        reader.join()

    def close(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join()
        for connection in (end for pipe in (*self._tasks, *self._answers) for end in pipe):
            connection.close()

    def _started(self, target: Callable[..., None], *given: Any) -> Any:
        process = self._forking.Process(target=self._apart, args=(target, os.getpid(), *given), daemon=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, which are torch's
            process.start()
        return process

    def _look(self) -> None:
        """Whether all live; a reader that has read all may be gone."""
        for process in self._processes:
            if process.exitcode:
                raise StillvecError(
                    f"A process that prepares the text ended with {process.exitcode} (-9: it was killed, as a system "
                    "does that is out of memory); nothing was written, try again, with --resume if it had a checkpoint."
                )

    # in the other processes

    def _apart(self, work: Callable[..., None], parent: int, *given: Any) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us ends us
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        gc.disable()  # what is made here goes by itself, and looking through all of it takes time
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        torch.set_num_threads(1)
        work(lambda: os.getppid() == parent, *given)

    def _read(self, lives: Callable[[], bool], marked: Iterable[TextChunk]) -> None:
        """The reader: texts onto shelves, as these get free, then the end or an error."""
        chunks = iter(marked)
        for number in count():
            while not self._room.acquire(timeout=_WATCH):
                if not lives():
                    return
            place, worker = divmod(number, len(self._tasks))
            place %= BUFFERS_PER_WORKER
            passed, task = 0, _END
            try:
                if (chunk := next(chunks, None)) is not None:
                    passed, task = chunk.passed, _put_texts(self._shelves[worker][place], chunk)
            except Exception as error:  # is raised where batches are taken
                task = _sendable(error)
            self._tasks[worker][1].send((place, passed, task))
            if task is _END or isinstance(task, Exception):
                return

    def _work(self, lives: Callable[[], bool], number: int) -> None:
        """A worker: texts from its shelves, batches onto them."""
        os.nice(5)  # who drives the GPU, and who reads for all, come first
        tasks, answers = self._tasks[number][0], self._answers[number][1]
        while True:
            while not tasks.poll(_WATCH):
                if not lives():
                    return
            place, passed, task = tasks.recv()
            shelf, answer = self._shelves[number][place], task
            if not (task is _END or isinstance(task, Exception)):
                try:
                    texts = task if isinstance(task, TextChunk) else _get_texts(shelf, *task)
                    answer = _put_batches(shelf, self._prepare(texts))
                except Exception as error:  # is raised where batches are taken
                    answer = _sendable(error)
            answers.send((passed, answer))


def _sendable(error: Exception) -> Exception:
    """The error, or what can be said of it."""
    try:
        type(error)(*error.args)  # which is how it is made again
        ForkingPickler.dumps(error)
    except Exception:  # whatever it holds
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _put_texts(shelf: mmap.mmap, marked: TextChunk) -> TextChunk | _Laid:
    """Lay plain texts on the shelf and give their length and kind; what is marked already goes by itself."""
    data = "\0".join(marked.texts).encode("utf-8", "surrogatepass") if marked.found is None else b""
    if not data or len(data) > BUFFER_BYTES or data.count(b"\0") != len(marked.texts) - 1:
        return marked
    shelf[: len(data)] = data
    return len(data), marked.paragraphs, marked.whole


def _get_texts(shelf: mmap.mmap, length: int, paragraphs: bool, whole: bool) -> TextChunk:
    return TextChunk(shelf[:length].decode("utf-8", "surrogatepass").split("\0"), paragraphs=paragraphs, whole=whole)


def _put_batches(shelf: mmap.mmap, made: list[Batch]) -> _Answer:
    arrays = [[getattr(batch, field.name) for field in fields(Batch)] for batch in made]
    if 4 * sum(array.size for batch in arrays for array in batch) > BUFFER_BYTES:
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
