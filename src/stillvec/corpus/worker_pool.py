"""Processes that work on chunks of text: one reads the text, many work on it, and this process takes their results.

This process has no second thread for it: every torch call releases the interpreter's lock, and a thread that reads text
would take it hundreds of times per batch. Chunks go to the workers in turn, so that results taken in turn are in order.
Texts and results are passed in anonymous shared memory, since large messages are slow through pipes; nothing of it is
left behind. Processes are forked, as those of torch's DataLoader are, and never touch the GPU. POSIX only
(`can_fork`).
"""

import gc
import math
import mmap
import os
import signal
import sys
import warnings
from collections.abc import Callable, Generator, Iterable
from dataclasses import fields, is_dataclass
from itertools import count, cycle
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.reduction import ForkingPickler
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np

from stillvec.corpus.text_chunk import START, StreamPosition, TextChunk, TextUnit
from stillvec.errors import StillvecError

BUFFER_BYTES = 64 << 20  # shared memory for the texts of a chunk, then for its results
BUFFERS_PER_WORKER = 2  # it works on one while the other waits to be taken
MAX_WORKERS = 14
_POLL_SECONDS = 0.5  # between checks that the other processes are alive
_ALIGNMENT = 8  # bytes
_StoredTexts = tuple[int, TextUnit]  # bytes in the buffer, and what the texts are
T = TypeVar("T")  # of results: a dataclass of arrays


class _End(NamedTuple):
    """Sent in place of texts when there are no more."""

    value: Any  # what the stream returned


class _StoredResults(NamedTuple):
    """Results whose arrays are in the buffer."""

    kind: type
    arrays: list[list[tuple[str, tuple[int, ...]]]]  # type and shape, by result


def can_fork() -> bool:
    return "fork" in get_all_start_methods()


def available_cores() -> int:
    """Cores this process may use; torchrun's processes on one machine share them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // int(os.environ.get("LOCAL_WORLD_SIZE", 1)))


class WorkerPool(Generic[T]):
    """Worker processes, which live until `close`, and one reader process per stream of chunks."""

    def __init__(self, work: Callable[[TextChunk], list[T]], workers: int) -> None:
        self._fork: Any = get_context("fork")
        self._work = work
        self._buffers = [[mmap.mmap(-1, BUFFER_BYTES) for _ in range(BUFFERS_PER_WORKER)] for _ in range(workers)]
        self._tasks = [self._fork.Pipe(duplex=False) for _ in range(workers)]  # reader → worker
        self._answers = [self._fork.Pipe(duplex=False) for _ in range(workers)]  # worker → this process
        self._free_buffers = self._fork.Semaphore(BUFFERS_PER_WORKER * workers)
        self._processes = [self._start(self._run_worker, number) for number in range(workers)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def results(self, chunks: Iterable[TextChunk]) -> Generator[tuple[StreamPosition, list[T]], None, Any]:
        """The position and the results of each chunk, in order, and at last what the generator of chunks returned.

        Reading begins at once, in a process of its own. A stream not read to its end is the last one.
        """
        reader = self._start(self._run_reader, chunks, may_fork=True)
        self._processes.append(reader)
        return self._take(reader)

    def _take(self, reader: Any) -> Generator[tuple[StreamPosition, list[T]], None, Any]:
        value = None
        for number, ((answers, _), buffers) in enumerate(cycle(zip(self._answers, self._buffers, strict=True))):
            while not answers.poll(_POLL_SECONDS):
                self._check_alive()
            position, answer = answers.recv()
            if isinstance(answer, _End):
                value = answer.value
                break
            if isinstance(answer, Exception):
                raise answer
            buffer = buffers[number // len(self._buffers) % BUFFERS_PER_WORKER]
            results = _get_results(buffer, answer) if isinstance(answer, _StoredResults) else answer
            self._free_buffers.release()
            yield position, results
        self._processes.remove(reader)
        self._free_buffers.release()
        reader.join()
        return value

    def close(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join()
        for connection in (end for pipe in (*self._tasks, *self._answers) for end in pipe):
            connection.close()

    def _start(self, target: Callable[..., None], *arguments: Any, may_fork: bool = False) -> Any:
        """Start a process; one that may have a pool of its own is no daemon."""
        arguments = (target, os.getpid(), *arguments)
        process = self._fork.Process(target=self._child_main, args=arguments, daemon=not may_fork)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # about forking beside threads, which are torch's
            process.start()
        return process

    def _check_alive(self) -> None:
        """Raise an error if a process failed; a reader that has read everything may have exited."""
        for process in self._processes:
            if process.exitcode:
                raise StillvecError(
                    f"A process that prepares text ended with exit code {process.exitcode} (-9: killed, often "
                    "because memory ran out). Nothing was written; run again, with --resume if there is a checkpoint.",
                    code="worker-died",
                )

    # in the child processes

    def _child_main(self, work: Callable[..., None], parent: int, *arguments: Any) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its children
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        gc.disable()  # reference counting frees everything made here, and a collection takes time
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        if (torch := sys.modules.get("torch")) is not None:
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
            position: StreamPosition = START
            task: Any
            try:
                chunk = next(chunks)
                position, task = chunk.position, _put_texts(self._buffers[worker][turn], chunk)
            except StopIteration as end:
                task = _End(end.value)
            except Exception as error:  # raised where results are taken
                task = _make_picklable(error)
            try:
                self._tasks[worker][1].send((turn, position, task))
            except BrokenPipeError:  # the worker has ended
                return
            if isinstance(task, _End | Exception):
                return

    def _run_worker(self, parent_alive: Callable[[], bool], number: int) -> None:
        """Read texts from buffers and write results to them."""
        os.nice(5)  # the GPU's driver and the reader come first
        tasks, answers = self._tasks[number][0], self._answers[number][1]
        while True:
            while not tasks.poll(_POLL_SECONDS):
                if not parent_alive():
                    return
            turn, position, task = tasks.recv()
            buffer, answer = self._buffers[number][turn], task
            if not isinstance(task, _End | Exception):
                try:
                    if not isinstance(task, TextChunk):
                        length, unit = task
                        task = TextChunk(buffer[:length].decode("utf-8", "surrogatepass").split("\0"), unit=unit)
                    answer = _put_results(buffer, self._work(task))
                except Exception as error:  # raised where results are taken
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


def _put_results(buffer: mmap.mmap, results: list[Any]) -> Any:
    """Write the arrays of results to the buffer; those that do not fit, or are no dataclasses, are sent themselves."""
    if not results or not is_dataclass(results[0]):
        return results
    arrays = [[getattr(result, field.name) for field in fields(result)] for result in results]
    if sum(_room(array.nbytes) for part in arrays for array in part) > BUFFER_BYTES:
        return results
    data, start = np.frombuffer(buffer, np.uint8), 0
    for array in (array for part in arrays for array in part):
        data[start : start + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        start += _room(array.nbytes)
    return _StoredResults(type(results[0]), [[(array.dtype.str, array.shape) for array in part] for part in arrays])


def _get_results(buffer: mmap.mmap, stored: _StoredResults) -> list[Any]:
    data, start = np.frombuffer(buffer, np.uint8), 0
    results = []
    for part in stored.arrays:
        arrays = []
        for name, shape in part:
            size = np.dtype(name).itemsize * math.prod(shape)
            arrays.append(data[start : start + size].copy().view(name).reshape(shape))
            start += _room(size)
        results.append(stored.kind(*arrays))
    return results


def _room(n_bytes: int) -> int:
    return -(-n_bytes // _ALIGNMENT) * _ALIGNMENT
