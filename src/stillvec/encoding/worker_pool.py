"""Batches made by processes: one reads the text, many prepare batches, and the process that drives the GPU takes them.

The driving process has no second thread: every torch call releases the interpreter's lock, and a thread that reads text
would take it hundreds of times per batch. Chunks go to the workers in turn, so that batches taken in turn are in order.
Texts and batches are passed in anonymous shared memory, since large messages are slow through pipes; nothing of it is
left behind. Processes are forked, as those of torch's DataLoader are, and never touch the GPU. POSIX only: elsewhere
`BatchBudget.for_teacher` asks for no workers.
"""

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

from stillvec.corpus.text_chunk import START, StreamPosition, TextChunk, TextUnit
from stillvec.encoding.batch import Batch
from stillvec.errors import StillvecError

BUFFER_BYTES = 64 << 20  # shared memory for the texts of a chunk, then for its batches
BUFFERS_PER_WORKER = 2  # it works on one while the other waits to be taken
_POLL_SECONDS = 0.5  # between checks that the other processes are alive
_Shapes = list[list[tuple[int, ...]]]
_END: Any = None  # sent in place of texts when there are no more
_StoredTexts = tuple[int, TextUnit]  # bytes in the buffer, and what the texts are
_Answer = Any  # shapes of batches in the buffer, or the batches themselves where they do not fit


class WorkerPool:
    """Worker processes, which live until `close`, and one reader process per stream of chunks."""

    def __init__(self, build: Callable[[TextChunk], list[Batch]], workers: int) -> None:
        self._fork: Any = get_context("fork")
        self._build = build
        self._buffers = [[mmap.mmap(-1, BUFFER_BYTES) for _ in range(BUFFERS_PER_WORKER)] for _ in range(workers)]
        self._tasks = [self._fork.Pipe(duplex=False) for _ in range(workers)]  # reader → worker
        self._answers = [self._fork.Pipe(duplex=False) for _ in range(workers)]  # worker → this process
        self._free_buffers = self._fork.Semaphore(BUFFERS_PER_WORKER * workers)
        self._processes = [self._start(self._run_worker, number) for number in range(workers)]

    def batches(self, chunks: Iterable[TextChunk]) -> Iterator[tuple[StreamPosition, list[Batch]]]:
        """The position and the batches of each chunk, in order. A stream not read to its end is the last one."""
        reader = self._start(self._run_reader, chunks)
        self._processes.append(reader)
        for number, ((answers, _), buffers) in enumerate(cycle(zip(self._answers, self._buffers, strict=True))):
            while not answers.poll(_POLL_SECONDS):
                self._check_alive()
            position, answer = answers.recv()
            if answer is _END:
                break
            if isinstance(answer, Exception):
                raise answer
            buffer = buffers[number // len(self._buffers) % BUFFERS_PER_WORKER]
            batches = answer if answer and isinstance(answer[0], Batch) else _get_batches(buffer, answer)
            self._free_buffers.release()
            yield position, batches
        self._processes.remove(reader)
        self._free_buffers.release()
        reader.join()

    def close(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join()
        for connection in (end for pipe in (*self._tasks, *self._answers) for end in pipe):
            connection.close()

    def _start(self, target: Callable[..., None], *arguments: Any) -> Any:
        process = self._fork.Process(target=self._child_main, args=(target, os.getpid(), *arguments), daemon=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # about forking beside threads, which are torch's
            process.start()
        return process

    def _check_alive(self) -> None:
        """Raise an error if a process failed; a reader that has read everything may have exited."""
        for process in self._processes:
            if process.exitcode:
                raise StillvecError(
                    f"A process that prepares text ended with exit code {process.exitcode} (-9: killed, as a system "
                    "out of memory does). Nothing was written; run again, with --resume if there is a checkpoint.",
                    code="worker-died",
                )

    # in the child processes

    def _child_main(self, work: Callable[..., None], parent: int, *arguments: Any) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its children
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        gc.disable()  # reference counting frees everything made here, and a collection takes time
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        torch.set_num_threads(1)
        for pipe in self._answers:  # held here too, it would keep a send to a dead parent waiting
            pipe[0].close()
        work(lambda: os.getppid() == parent, *arguments)

    def _run_reader(self, parent_alive: Callable[[], bool], stream: Iterable[TextChunk]) -> None:
        """Write texts to buffers as these become free, then the end or an error."""
        chunks = iter(stream)
        for pipe in self._tasks:  # as with the answers
            pipe[0].close()
        for number in count():
            while not self._free_buffers.acquire(timeout=_POLL_SECONDS):
                if not parent_alive():
                    return
            turn, worker = divmod(number, len(self._tasks))
            turn %= BUFFERS_PER_WORKER
            position, task = START, _END
            try:
                if (chunk := next(chunks, None)) is not None:
                    position, task = chunk.position, _put_texts(self._buffers[worker][turn], chunk)
            except Exception as error:  # raised where batches are taken
                task = _make_picklable(error)
            try:
                self._tasks[worker][1].send((turn, position, task))
            except BrokenPipeError:  # the worker has ended
                return
            if task is _END or isinstance(task, Exception):
                return

    def _run_worker(self, parent_alive: Callable[[], bool], number: int) -> None:
        """Read texts from buffers and write batches to them."""
        os.nice(5)  # the GPU's driver and the reader come first
        tasks, answers = self._tasks[number][0], self._answers[number][1]
        while True:
            while not tasks.poll(_POLL_SECONDS):
                if not parent_alive():
                    return
            turn, position, task = tasks.recv()
            buffer, answer = self._buffers[number][turn], task
            if not (task is _END or isinstance(task, Exception)):
                try:
                    if not isinstance(task, TextChunk):
                        length, unit = task
                        task = TextChunk(buffer[:length].decode("utf-8", "surrogatepass").split("\0"), unit=unit)
                    answer = _put_batches(buffer, self._build(task))
                except Exception as error:  # raised where batches are taken
                    answer = _make_picklable(error)
            try:
                answers.send((position, answer))
            except BrokenPipeError:  # the parent was killed
                return


def _make_picklable(error: Exception) -> Exception:
    """The error, or its text where it cannot be pickled."""
    try:
        type(error)(*error.args)  # how pickle restores it
        ForkingPickler.dumps(error)
    except Exception:  # whatever it holds
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _put_texts(buffer: mmap.mmap, chunk: TextChunk) -> TextChunk | _StoredTexts:
    """Write texts to the buffer; a chunk with spans, or one that does not fit, is sent itself."""
    data = "\0".join(chunk.texts).encode("utf-8", "surrogatepass") if chunk.spans is None else b""
    if not data or len(data) > BUFFER_BYTES or data.count(b"\0") != len(chunk.texts) - 1:
        return chunk
    buffer[: len(data)] = data
    return len(data), chunk.unit


def _put_batches(buffer: mmap.mmap, batches: list[Batch]) -> _Answer:
    arrays = [[getattr(batch, field.name) for field in fields(Batch)] for batch in batches]
    if 4 * sum(array.size for batch in arrays for array in batch) > BUFFER_BYTES:
        return batches
    start = 0
    numbers = np.frombuffer(buffer, np.int32)
    for array in (array for batch in arrays for array in batch):
        numbers[start : start + array.size] = array.ravel()
        start += array.size
    return [[array.shape for array in batch] for batch in arrays]


def _get_batches(buffer: mmap.mmap, shapes: _Shapes) -> list[Batch]:
    start = 0
    numbers = np.frombuffer(buffer, np.int32)
    batches = []
    for batch in shapes:
        arrays = []
        for shape in batch:
            size = math.prod(shape)
            arrays.append(numbers[start : start + size].reshape(shape).copy())
            start += size
        batches.append(Batch(*arrays))
    return batches
