"""What the workers of a Ray cluster are given to do: parts of the corpus that depend on the text, never on the workers.

The statistics of a job are a result of their own, and results are merged in the order of the jobs, two neighbours at a
time. So the numbers do not depend, to the last bit, on how many workers there are, or on which of them were lost.

Tasks of a Ray dataset read the text with stillvec's readers, each a slice of the corpus, and the run sees references to
it: a block is one row, the text of a job. Ray gives blocks in the order of the corpus, holds back tasks that are far
ahead of the teachers, and reads again what was lost. Written against Ray 2.50 to 2.63: `iter_internal_ref_bundles` and
`BlockMetadata` are not part of its stable interface.
"""

import logging
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

from stillvec.corpus import Corpus
from stillvec.corpus.text_chunk import StreamPosition
from stillvec.encoding import TextChunk, TextUnit
from stillvec.learners.accumulators import TextSource
from stillvec.learners.encoding_pass import WordCounts
from stillvec.learners.partition import Partition
from stillvec.pipeline.sentence_stream import SentenceStream
from stillvec.registry import require
from stillvec.statistics import Array, Statistics, merge
from stillvec.vocabulary import Vocabulary

JobStatistics = dict[int, dict[str, Array]]  # arrays of accumulators, by their number in the pass
SENTENCES, PARAGRAPHS = TextSource.SENTENCES.value, TextSource.PARAGRAPHS.value
MAX_RETRIES = 8  # of a worker that dies, and of its job
_MIN_JOBS = 64  # if there are as many chunks
_MAX_CHUNKS = 32  # per job, where sentences are selected
_MAX_CHARACTERS = 1 << 28  # per job otherwise: about as much as a slice of compressed files holds
_WORDS_PER_JOB = 8192  # of words that are read alone


@dataclass(frozen=True)
class ReadingJob:
    """Text of the corpus, which is sent along; or a part of what is read beside the corpus."""

    name: str
    unit: str = SENTENCES
    partition: Partition | None = None  # of what is read beside the corpus
    counts: WordCounts | None = None  # of words in the corpus, for such a part


def chunks_per_job(stream: SentenceStream) -> int:
    """At most: jobs also end with the slices of the corpus."""
    size = stream.characters_per_chunk
    limit = _MAX_CHUNKS if stream.contexts is not None else max(1, _MAX_CHARACTERS // size)
    return max(1, min(limit, stream.n_characters // size // _MIN_JOBS))


def leftover_jobs(n_words: int, counts: WordCounts, *, in_order: bool) -> list[ReadingJob]:
    """What is read beside the corpus; where contexts are stored, one job, so that they stay in order."""
    number = 1 if in_order else max(1, -(-n_words // _WORDS_PER_JOB))
    return [
        ReadingJob(f"rest-{index}-of-{number}", partition=Partition(index, number), counts=counts)
        for index in range(number)
    ]


def merge_jobs(one: JobStatistics, other: JobStatistics) -> JobStatistics:
    """Two neighbouring results as one, as results are merged; both have the words of one vocabulary."""
    same = Vocabulary(())  # whose rows need not be looked up
    both = {
        number: dict(merge(Statistics(same, one[number]), Statistics(same, other[number]), same).arrays)
        for number in one.keys() & other.keys()
    }
    return {**one, **other, **both}


class MergeTree:
    """Results merged as they arrive: neighbours first, in a shape that depends only on their number."""

    def __init__(self, merge: Callable[[Any, Any], Any]) -> None:
        self._merge = merge
        self._open: list[tuple[int, Any]] = []  # (number of results, merged result), fewer and fewer

    def add(self, result: Any) -> None:
        self._open.append((1, result))
        while len(self._open) > 1 and self._open[-1][0] == self._open[-2][0]:
            self._merge_last()

    def root(self) -> Any:
        """All results as one; None where nothing was added."""
        while len(self._open) > 1:
            self._merge_last()
        return self._open[0][1] if self._open else None

    def _merge_last(self) -> None:
        (count, one), (more, other) = self._open[-2:]
        self._open[-2:] = [(count + more, self._merge(one, other))]


def read_texts(ray: Any, stream: SentenceStream, unit: str, n_chunks: int, concurrency: int) -> Iterator[Any]:
    """References to the text of each job, of at most `n_chunks` chunks, in order; `concurrency` tasks read at once."""
    data = require("ray.data", "ray", "--engine ray")
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    slices = [part.corpus for part in stream.slices()]
    size = data.block.BlockMetadata(num_rows=None, size_bytes=None, exec_stats=None, input_files=None)  # not known
    shared = [ray.put(replace(stream, corpus=Corpus.from_texts(())))]  # its vocabulary is sent once
    tasks = [data.ReadTask(partial(read_blocks, ray.get, shared, part, unit, n_chunks), size) for part in slices]
    members = {"get_read_tasks": lambda *_, **__: tasks, "estimate_inmemory_data_size": lambda _: None}
    with warnings.catch_warnings(action="ignore"), data.DataContext.current(_in_order(data)):
        dataset = data.read_datasource(
            type("CorpusDatasource", (data.Datasource,), members)(),
            num_cpus=0,  # the workers hold the processors
            concurrency=concurrency,
            override_num_blocks=len(tasks),
            ray_remote_args={"max_retries": MAX_RETRIES},  # otherwise a task that always dies is restarted for ever
        )
        bundles = dataset.iter_internal_ref_bundles()
    for bundle in bundles:
        if bundle.num_rows():
            yield from bundle.block_refs


def read_blocks(
    fetch: Callable[[Any], Any], shared: list[Any], part: Corpus, unit: str, n_chunks: int
) -> Iterator[Any]:
    """The blocks of a slice of the corpus, one per job."""
    arrow = require("pyarrow", "ray", "--engine ray")
    stream = replace(fetch(shared[0]), corpus=part)
    chunks = iter(stream.chunks() if unit == SENTENCES else stream.paragraphs())
    while job := [*islice(chunks, n_chunks)]:
        texts = arrow.array([[chunk.texts for chunk in job]], arrow.list_(arrow.list_(arrow.string())))
        n_characters = sum(len(text) for chunk in job for text in chunk.texts)
        position = {"done": [n_characters], "total": [job[-1].position.total]}
        yield arrow.table({"texts": texts, "unit": [job[0].unit.value], **position})


def block_chunks(block: Any) -> Iterator[TextChunk]:
    """The chunks of a block, as they were read."""
    for texts, unit in zip(block["texts"], block["unit"], strict=True):
        for chunk in texts.values:
            yield TextChunk(chunk.as_py(), unit=TextUnit(unit.as_py()))


def block_position(block: Any) -> StreamPosition:
    """The characters of a block, and those of the whole corpus as they were estimated at its end."""
    return StreamPosition(sum(block["done"].to_pylist()), max(block["total"].to_pylist(), default=0))


def _in_order(data: Any) -> Any:
    """Read in order, without progress bars, and however long the teachers take."""
    context = data.DataContext.get_current().copy()
    context.execution_options.preserve_order = True
    context.target_max_block_size = 1  # byte: a block is then one row
    context.execution_no_progress_timeout_s = -1
    context.enable_progress_bars = context.print_on_execution_start = False
    return context
