"""The one pass over the teacher: marked text in, states of words and sentences out to whoever listens."""

from stillvec.encoding.encoded import Encoded
from stillvec.encoding.passing import Listener, Progress, encode, moved, read_batch, states_of, to_device, waited_for
from stillvec.encoding.prepared import Batch, Marked
from stillvec.encoding.preparing import Bookmark, Load, Preparation, Preparer
from stillvec.encoding.store import (
    Contexts,
    ContextWriter,
    Desk,
    bytes_needed,
    check_room,
    join_stores,
    shard_of,
    spelt_size,
)

__all__ = [
    "Batch",
    "Bookmark",
    "ContextWriter",
    "Contexts",
    "Desk",
    "Encoded",
    "Listener",
    "Load",
    "Marked",
    "Preparation",
    "Preparer",
    "Progress",
    "bytes_needed",
    "check_room",
    "encode",
    "join_stores",
    "moved",
    "read_batch",
    "shard_of",
    "spelt_size",
    "states_of",
    "to_device",
    "waited_for",
]
