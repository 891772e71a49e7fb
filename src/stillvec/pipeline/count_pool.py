"""The first reading in several processes: one reads the text and its digest, the others count its words.

Counts are sums, so the number of processes does not change them. They can be made while this process does something
else, such as loading a teacher.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Generator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stillvec.corpus import Corpus
from stillvec.corpus.text_chunk import StreamPosition, TextChunk, TextUnit
from stillvec.corpus.text_corpus import CorpusReport
from stillvec.corpus.worker_pool import MAX_WORKERS, WorkerPool, available_cores, can_fork
from stillvec.errors import StillvecWarning
from stillvec.pipeline.corpus_counts import (
    NO_TERMS,
    CorpusCounts,
    CorpusFacts,
    Terms,
    count_partition,
    group_paragraphs,
    make_counter,
)
from stillvec.pipeline.settings import SharedSettings
from stillvec.progress import Phase, Progress, drain
from stillvec.vocabulary import Vocabulary

_MIN_BYTES = 4 << 20  # of files; less is counted sooner than processes are started
_REPORT_SECONDS = 0.2  # between progress events
_SEPARATOR = "\0"  # in no word


@dataclass(frozen=True)
class _PartCounts:
    """The words of a chunk or, at the end, all that a process counted, as arrays that a pool passes on."""

    n_words: NDArray[np.int64]  # ()
    words: NDArray[np.uint8]  # joined
    counts: NDArray[np.int64]
    joins: NDArray[np.uint8]  # joined
    join_counts: NDArray[np.int64]


class _ChunkCounter:
    """Counts the words of chunks; one without texts asks for the counts."""

    def __init__(self, choice: SharedSettings, terms: Terms) -> None:
        self._counter = make_counter(choice, terms)

    def __call__(self, chunk: TextChunk) -> list[_PartCounts]:
        if chunk.texts:
            return [_PartCounts(np.array(self._counter.add(chunk.texts)), *_pack({}), *_pack({}))]
        return [_PartCounts(np.array(0), *_pack(self._counter.counts()), *_pack(self._counter.joins()))]


def _pack(counts: dict[str, int]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    text = _SEPARATOR.join(counts).encode("utf-8", "surrogatepass")
    return np.frombuffer(text, np.uint8), np.fromiter(counts.values(), np.int64, len(counts))


def _unpack(words: NDArray[np.uint8], counts: NDArray[np.int64]) -> dict[str, int]:
    strings = words.tobytes().decode("utf-8", "surrogatepass").split(_SEPARATOR)
    return dict(zip(strings, counts.tolist(), strict=True)) if len(counts) else {}


@dataclass(frozen=True)
class _Reading:
    """What the process that read the text found."""

    digests: dict[int, str]  # of files, by number
    report: CorpusReport
    warnings: list[str]


class PendingCount:
    """Counts a corpus in other processes from now on; `steps` waits for the result. A context manager."""

    def __init__(self, corpus: Corpus, choice: SharedSettings, processes: int, terms: Terms = NO_TERMS) -> None:
        corpus.watch()
        self._start = time.perf_counter()
        self._n_words, self._position = 0, StreamPosition()
        self._counts: dict[str, int] = {}
        self._joins: dict[str, int] = {}
        self._reading: _Reading | None = None
        self._error: BaseException | None = None
        self._pool = WorkerPool(_ChunkCounter(choice, terms), processes)
        self._results = self._pool.results(_read_chunks(corpus, processes))
        self._thread = threading.Thread(target=self._collect, daemon=True)
        self._thread.start()

    def __enter__(self) -> PendingCount:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def steps(self, corpus: Corpus) -> Generator[Progress, None, CorpusCounts]:
        """The counts, once they are known; the corpus, as it was given or a copy, gets the report of the reading."""
        while self._thread.is_alive():
            self._thread.join(_REPORT_SECONDS)
            seconds, (done, total) = time.perf_counter() - self._start, self._position
            work = (float(min(done, total)), float(total)) if total else None
            yield Progress(Phase.COUNTING, self._n_words, None, "words", seconds, work=work)
        if self._error is not None:
            raise self._error
        assert self._reading is not None
        report = self._reading.report
        corpus.take_report(report, warned=bool(self._reading.warnings))
        for message in self._reading.warnings:
            warnings.warn(message, StillvecWarning, stacklevel=2)
        sizes = self._n_words, report.paragraphs, report.characters
        return CorpusCounts(self._counts, *sizes, self._reading.digests, self._joins)

    def _collect(self) -> None:
        """Take results as they come; in a thread, since nobody else empties the buffers meanwhile."""
        try:
            self._reading = drain(self._results, lambda result: self._add(result[0], *result[1]))
        except BaseException as error:  # raised in `steps`
            self._error = error

    def _add(self, position: StreamPosition, part: _PartCounts) -> None:
        self._n_words += int(part.n_words)
        self._position = position if position.done else self._position
        for total, new in (
            (self._counts, _unpack(part.words, part.counts)),
            (self._joins, _unpack(part.joins, part.join_counts)),
        ):
            for word, number in new.items():
                total[word] = total.get(word, 0) + number


def _read_chunks(corpus: Corpus, n_processes: int) -> Generator[TextChunk, None, _Reading]:
    """Paragraphs to count, then a chunk without texts for each process."""
    digests: dict[int, str] = {}
    total = corpus.n_bytes
    with warnings.catch_warnings(record=True) as caught:  # of a process of its own
        warnings.simplefilter("always", StillvecWarning)
        for paragraphs, n_bytes in group_paragraphs(corpus.paragraphs_by_file(), digests):
            if paragraphs:
                yield TextChunk(paragraphs, unit=TextUnit.PARAGRAPHS, position=StreamPosition(n_bytes, total))
    for _ in range(n_processes):
        yield TextChunk([])
    assert corpus.report is not None
    ours = [str(each.message) for each in caught if issubclass(each.category, StillvecWarning)]
    return _Reading(digests, corpus.report, ours)


def start_count(
    corpus: Corpus, choice: SharedSettings, threads: int | None = None, terms: Terms = NO_TERMS
) -> AbstractContextManager[PendingCount | None]:
    """Begin to count in several processes, one per core or `threads`; None where one process is as good."""
    processes = min(MAX_WORKERS, threads or available_cores())
    if processes < 2 or not can_fork() or corpus.size_of_files < _MIN_BYTES:
        return nullcontext()
    return PendingCount(corpus, choice, processes, terms)


def count_corpus(
    corpus: Corpus, choice: SharedSettings, pending: PendingCount | None = None, terms: Terms = NO_TERMS
) -> Generator[Progress, None, tuple[Vocabulary, CorpusFacts]]:
    """Count the corpus: the words that get a vector, and the facts about the text; `pending` was begun before."""
    steps = count_partition(corpus, choice, terms=terms) if pending is None else pending.steps(corpus)
    counts = yield from steps
    return counts.choose_words(corpus, choice, terms)
