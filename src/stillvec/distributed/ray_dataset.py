"""The corpus as a Ray dataset: its tasks read with stillvec's readers, and the run sees references to the text.

A task reads a slice of the corpus; a row is the text of a job, and a block is one row. Ray gives blocks in the order of
the corpus, holds back tasks that are far ahead of the teachers, and reads again what was lost.

Written against Ray 2.50 to 2.63: `iter_internal_ref_bundles` and `BlockMetadata` are not part of its stable interface.
"""

import logging
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from stillvec.corpus import Corpus
from stillvec.distributed.ray_jobs import MAX_RETRIES, SENTENCES
from stillvec.encoding import TextChunk, TextUnit
from stillvec.pipeline.sentence_stream import SentenceStream
from stillvec.registry import require


def read_texts(ray: Any, stream: SentenceStream, unit: str, n_chunks: int, concurrency: int) -> Iterator[Any]:
    """References to the text of each job, of at most `n_chunks` chunks, in order; `concurrency` tasks read at once."""
    data = require("ray.data", "ray", "--engine ray")
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    slices = [part.corpus for part in stream.slices()]
    shared = [ray.put(replace(stream, corpus=Corpus.from_texts(())))]  # its vocabulary is sent once
    tasks = [
        data.ReadTask(partial(read_blocks, ray.get, shared, part, unit, n_chunks), _unknown_size(data))
        for part in slices
    ]
    with warnings.catch_warnings(action="ignore"), data.DataContext.current(_in_order(data)):
        dataset = data.read_datasource(
            _make_source(data, tasks),
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
        yield arrow.table({"texts": texts, "unit": [job[0].unit.value]})


def block_chunks(block: Any) -> Iterator[TextChunk]:
    """The chunks of a block, as they were read."""
    for texts, unit in zip(block["texts"], block["unit"], strict=True):
        for chunk in texts.values:
            yield TextChunk(chunk.as_py(), unit=TextUnit(unit.as_py()))


def _make_source(data: Any, tasks: list[Any]) -> Any:
    members = {"get_read_tasks": lambda *_, **__: tasks, "estimate_inmemory_data_size": lambda _: None}
    return type("CorpusDatasource", (data.Datasource,), members)()


def _unknown_size(data: Any) -> Any:
    return data.block.BlockMetadata(num_rows=None, size_bytes=None, exec_stats=None, input_files=None)


def _in_order(data: Any) -> Any:
    """Read in order, without progress bars, and however long the teachers take."""
    context = data.DataContext.get_current().copy()
    context.execution_options.preserve_order = True
    context.target_max_block_size = 1  # byte: a block is then one row
    context.execution_no_progress_timeout_s = -1
    context.enable_progress_bars = context.print_on_execution_start = False
    return context
