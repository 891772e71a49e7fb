"""The corpus as a dataset of Ray's: its tasks read with our readers, and the run sees references to what they read.

A task reads a share of the corpus; a row is the text of a job, and a block is one row. Ray gives blocks in the order of
the corpus, holds back readers that are far ahead of the teachers, and reads again what was lost.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from stillvec.corpus import Corpus
from stillvec.distributed.ray_jobs import AGAIN, SENTENCES
from stillvec.encoding import TextChunk, TextUnit
from stillvec.pipeline.sentence_stream import SentenceStream
from stillvec.registry import require


def texts_of(ray: Any, reading: SentenceStream, unit: str, chunks: int, readers: int) -> Iterator[Any]:
    """References to the text of each job, of so many chunks at most, in order; so many tasks read at once."""
    data = require("ray.data", "ray", "--engine ray")
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    shares = [part.corpus for part in reading.parts()]
    alone = [ray.put(replace(reading, corpus=Corpus.from_texts(())))]  # its vocabulary is sent once
    tasks = [data.ReadTask(partial(rows, ray.get, alone, share, unit, chunks), _unknown(data)) for share in shares]
    with warnings.catch_warnings(action="ignore"), data.DataContext.current(_in_order(data)):
        read = data.read_datasource(
            _source(data, tasks),
            num_cpus=0,  # the workers hold the processors
            concurrency=readers,
            override_num_blocks=len(tasks),
            ray_remote_args={"max_retries": AGAIN},  # else a reader that always dies is started again for ever
        )
        bundles = read.iter_internal_ref_bundles()
    for bundle in bundles:
        if bundle.num_rows():
            yield from bundle.block_refs


def rows(fetch: Callable[[Any], Any], given: list[Any], share: Corpus, unit: str, chunks: int) -> Iterator[Any]:
    """The blocks of a share, a job each."""
    arrow = require("pyarrow", "ray", "--engine ray")
    reading = replace(fetch(given[0]), corpus=share)
    stream = iter(reading.chunks() if unit == SENTENCES else reading.paragraphs())
    while held := [*islice(stream, chunks)]:
        texts = arrow.array([[chunk.texts for chunk in held]], arrow.list_(arrow.list_(arrow.string())))
        yield arrow.table({"texts": texts, "unit": [held[0].unit.value]})


def chunks_in(block: Any) -> Iterator[TextChunk]:
    """The chunks of a block, as they were read."""
    for texts, unit in zip(block["texts"], block["unit"], strict=True):
        for chunk in texts.values:
            yield TextChunk(chunk.as_py(), unit=TextUnit(unit.as_py()))


def _source(data: Any, tasks: list[Any]) -> Any:
    found = {"get_read_tasks": lambda *_, **__: tasks, "estimate_inmemory_data_size": lambda _: None}
    return type("CorpusDatasource", (data.Datasource,), found)()


def _unknown(data: Any) -> Any:
    return data.block.BlockMetadata(num_rows=None, size_bytes=None, exec_stats=None, input_files=None)


def _in_order(data: Any) -> Any:
    """How it is read; also: in silence, and however long the teachers take over what was read."""
    context = data.DataContext.get_current().copy()
    context.execution_options.preserve_order = True
    context.target_max_block_size = 1  # byte: a block is then a row
    context.execution_no_progress_timeout_s = -1
    context.enable_progress_bars = context.print_on_execution_start = False
    return context
