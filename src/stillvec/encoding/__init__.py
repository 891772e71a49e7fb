"""The one pass over the teacher: marked text in, states of words and sentences out to whoever listens."""

from stillvec.encoding.batch import Batch, TextChunk
from stillvec.encoding.batch_loader import BatchBudget, BatchBuilder, BatchLoader, Bookmark
from stillvec.encoding.context_store import (
    Contexts,
    ContextWriter,
    StoreLocation,
    bytes_needed,
    check_room,
    format_bytes,
    join_stores,
    shard_of,
)
from stillvec.encoding.encoded import Encoded
from stillvec.encoding.forward_pass import (
    BatchConsumer,
    PassProgress,
    arrays_to_device,
    encode,
    read_batch,
    states_of,
    synchronize,
    to_device,
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
    "Encoded",
    "PassProgress",
    "StoreLocation",
    "TextChunk",
    "arrays_to_device",
    "bytes_needed",
    "check_room",
    "encode",
    "format_bytes",
    "join_stores",
    "read_batch",
    "shard_of",
    "states_of",
    "synchronize",
    "to_device",
]
