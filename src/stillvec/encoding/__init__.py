"""The forward pass over the teacher: text in, states of words and sentences out to accumulators."""

from stillvec.encoding.batch import Batch, TextChunk, TextUnit
from stillvec.encoding.batch_loader import BatchBudget, BatchBuilder, BatchLoader, Bookmark
from stillvec.encoding.context_store import (
    Contexts,
    ContextWriter,
    StoreLocation,
    bytes_needed,
    check_room,
    format_bytes,
    join_stores,
    shard_path,
)
from stillvec.encoding.encoded import DeviceCopier, Encoded
from stillvec.encoding.forward_pass import (
    BatchConsumer,
    PassProgress,
    compute_states,
    encode_batch,
    run_pass,
    synchronize,
)

__all__ = [
    "Batch",
    "BatchBudget",
    "BatchBuilder",
    "BatchConsumer",
    "BatchLoader",
    "Bookmark",
    "ContextWriter",
    "Contexts",
    "DeviceCopier",
    "Encoded",
    "PassProgress",
    "StoreLocation",
    "TextChunk",
    "TextUnit",
    "bytes_needed",
    "check_room",
    "compute_states",
    "encode_batch",
    "format_bytes",
    "join_stores",
    "run_pass",
    "shard_path",
    "synchronize",
]
