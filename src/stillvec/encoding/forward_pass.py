"""The loop over batches: the teacher reads each batch once, and every accumulator takes what it needs."""

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from stillvec.encoding.batch import Batch
from stillvec.encoding.encoded import DeviceCopier, Encoded
from stillvec.teachers import Teacher
from stillvec.teachers.device import torch_threads

_MAX_READERS = 8  # batches that are read at the same time, which need memory
_ON_CPU = ("word_id", "word_sentence", "sentence_in_paragraph")  # of words, known or not; the others are copied
_COPIED = [field.name for field in fields(Batch) if field.name not in _ON_CPU]


class BatchConsumer(Protocol):
    """Takes what it needs of each batch."""

    @property
    def layers(self) -> Sequence[int]:
        """The layers whose states it reads."""

    def update(self, encoded: Encoded) -> None:
        """Add one batch."""


@dataclass(frozen=True)
class PassProgress:
    """What has been read so far."""

    n_sentences: int = 0
    n_words: int = 0
    n_tokens: int = 0
    seconds: float = 0.0

    def plus(self, other: "PassProgress") -> "PassProgress":
        return PassProgress(*(getattr(self, part.name) + getattr(other, part.name) for part in fields(self)))


def run_pass(
    encoded: Iterable[Encoded], accumulators: Sequence[BatchConsumer], progress: PassProgress | None = None
) -> Iterator[PassProgress]:
    """Update accumulators with each batch, and yield after it; `progress` is that of a run that is continued."""
    progress = progress or PassProgress()
    start = time.perf_counter() - progress.seconds
    for each in encoded:
        for accumulator in accumulators:
            accumulator.update(each)
        batch = each.batch
        progress = PassProgress(
            progress.n_sentences + len(batch.tokens_per_sentence),
            progress.n_words + len(batch.word_id),
            progress.n_tokens + len(batch.token_index),
            time.perf_counter() - start,
        )
        yield progress


def list_layers(accumulators: Iterable[BatchConsumer]) -> list[int]:
    """The layers that some accumulator reads."""
    return sorted({layer for accumulator in accumulators for layer in accumulator.layers})


def count_readers(teacher: Teacher) -> int:
    """Batches that are read at the same time: on a CPU, one per thread of torch."""
    return min(_MAX_READERS, torch.get_num_threads()) if teacher.device.type == "cpu" else 1


def encode_batches(teacher: Teacher, batches: Iterable[Batch], layers: Sequence[int]) -> Iterator[Encoded]:
    """Run the forward pass of each batch, in order.

    The threads of a CPU read a batch each: threads that share a batch wait for each other in every operation, which
    costs most of the time as soon as another program needs a core. So up to 8 threads, their number decides no bit.
    """
    copier, n_readers = DeviceCopier(teacher.device), count_readers(teacher) if layers else 1
    if n_readers == 1:
        for batch in batches:
            yield encode_batch(teacher, batch, layers, copier)
        return
    reading: deque[Future[Encoded]] = deque()
    with torch_threads(torch.get_num_threads() // n_readers), ThreadPoolExecutor(n_readers, "reader") as pool:
        try:
            for batch in batches:
                reading.append(pool.submit(encode_batch, teacher, batch, layers, copier))
                if len(reading) > n_readers:  # one more than are read, so that no thread waits for the accumulators
                    yield reading.popleft().result()
            while reading:
                yield reading.popleft().result()
        finally:
            for future in reading:
                future.cancel()


@torch.inference_mode()
def encode_batch(teacher: Teacher, batch: Batch, layers: Sequence[int], copier: DeviceCopier | None = None) -> Encoded:
    """One forward pass."""
    copier = copier or DeviceCopier(teacher.device)
    known = np.flatnonzero(batch.word_id >= 0)
    arrays = {name: getattr(batch, name) for name in _COPIED}
    arrays |= {"known": known, "known_id": batch.word_id[known], "known_sentence": batch.word_sentence[known]}
    tensors = copier.copy(arrays)
    ids, lengths, position_ids = (tensors.pop(name) for name in ("ids", "lengths", "position_ids"))
    padded = bool((batch.lengths != batch.ids.shape[1]).any())  # without padding, attention needs no mask
    states = compute_states(
        teacher, ids, lengths if padded else None, position_ids if batch.position_ids.size else None, layers
    )
    flat = {layer: state.flatten(0, 1) for layer, state in states.items()}
    return Encoded(batch=batch, states=flat, copier=copier, teacher=teacher, **tensors)


def compute_states(
    teacher: Teacher, ids: Tensor, lengths: Tensor | None, position_ids: Tensor | None, layers: Sequence[int]
) -> dict[int, Tensor]:
    """The states (B, T, D) of rows that are packed (`position_ids`), padded (`lengths`), or full."""
    if position_ids is not None or lengths is None:
        return teacher.states(ids, None, layers, position_ids)
    columns = torch.arange(ids.shape[1], device=teacher.device)
    return teacher.states(ids, (columns < lengths[:, None]).long(), layers)


def synchronize(device: torch.device) -> int:
    """Wait until a GPU has finished; the bytes it used at its peak, 0 for a CPU."""
    if device.type != "cuda":
        return 0
    torch.cuda.synchronize(device)
    return int(torch.cuda.max_memory_allocated(device))
