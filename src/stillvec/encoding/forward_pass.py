"""The loop over batches: the teacher reads each batch once, and every accumulator takes what it needs."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from stillvec.encoding.batch import Batch
from stillvec.encoding.encoded import DeviceCopier, Encoded
from stillvec.teachers import Teacher

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
    teacher: Teacher,
    batches: Iterable[Batch],
    accumulators: Sequence[BatchConsumer],
    progress: PassProgress | None = None,
) -> Iterator[PassProgress]:
    """Read batches with the teacher; yields after each one. `progress` is that of an earlier run that is continued."""
    layers = sorted({layer for accumulator in accumulators for layer in accumulator.layers})
    copier = DeviceCopier(teacher.device)
    progress = progress or PassProgress()
    start = time.perf_counter() - progress.seconds
    for batch in batches:
        encoded = encode_batch(teacher, batch, layers, copier)
        for accumulator in accumulators:
            accumulator.update(encoded)
        progress = PassProgress(
            progress.n_sentences + len(batch.tokens_per_sentence),
            progress.n_words + len(batch.word_id),
            progress.n_tokens + len(batch.token_index),
            time.perf_counter() - start,
        )
        yield progress


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
