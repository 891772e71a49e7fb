"""The forward pass over the teacher: text in, states of words and sentences out to accumulators."""

from stillvec.corpus.text_chunk import TextChunk, TextUnit
from stillvec.encoding.batch import Batch
from stillvec.encoding.batch_loader import NO_TEXT, BatchBudget, BatchBuilder, BatchLoader, Bookmark, TextSize
from stillvec.encoding.encoded import Encoded
from stillvec.encoding.forward_pass import (
    BatchConsumer,
    PassProgress,
    count_readers,
    encode_batch,
    encode_batches,
    list_layers,
    run_pass,
    synchronize,
)

__all__ = [
    "NO_TEXT",
    "Batch",
    "BatchBudget",
    "BatchBuilder",
    "BatchConsumer",
    "BatchLoader",
    "Bookmark",
    "Encoded",
    "PassProgress",
    "TextChunk",
    "TextSize",
    "TextUnit",
    "count_readers",
    "encode_batch",
    "encode_batches",
    "list_layers",
    "run_pass",
    "synchronize",
]
