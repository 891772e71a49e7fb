"""The one pass: the teacher reads each batch once, and everyone who wants something of it listens."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stillvec.encoding.encoded import Encoded
from stillvec.encoding.prepared import Batch
from stillvec.teachers import Teacher


class Listener(Protocol):
    """Keeps what it needs of each batch."""

    @property
    def layers(self) -> Sequence[int]:
        """The layers it wants to hear."""

    def update(self, encoded: Encoded) -> None:
        """Hear one batch."""


@dataclass(frozen=True)
class Progress:
    """How far the pass is, after a batch."""

    sentences: int = 0
    words: int = 0
    pieces: int = 0
    seconds: float = 0.0


def encode(
    teacher: Teacher, batches: Iterable[Batch], listeners: Sequence[Listener], before: Progress | None = None
) -> Iterator[Progress]:
    """Drive batches through the teacher; yields after each, when all listeners have heard it.

    `before` is how far an earlier run was, which is gone on with.
    """
    layers = sorted({layer for listener in listeners for layer in listener.layers})
    before = before or Progress()
    begun = time.perf_counter() - before.seconds
    sentences, words, pieces = before.sentences, before.words, before.pieces
    for batch in batches:
        encoded = read_batch(teacher, batch, layers)
        for listener in listeners:
            listener.update(encoded)
        sentences += len(batch.sentence_pieces)
        words += len(batch.word_id)
        pieces += len(batch.piece_place)
        yield Progress(sentences, words, pieces, time.perf_counter() - begun)


@torch.inference_mode()
def read_batch(teacher: Teacher, batch: Batch, layers: Sequence[int]) -> Encoded:
    """One forward pass."""
    known = np.flatnonzero(batch.word_id >= 0)
    arrays = (
        batch.piece_place,
        batch.sentence_pieces,
        batch.link_place,
        batch.word_links,
        known,
        batch.word_id[known],
        batch.word_sentence[known],
        batch.sum_place,
        batch.sum_share,
        batch.sum_start,
        batch.sum_id,
    )
    return Encoded(batch, _states(teacher, batch, layers), *(to_device(array, teacher.device) for array in arrays))


def _states(teacher: Teacher, batch: Batch, layers: Sequence[int]) -> dict[int, Tensor]:
    if not layers:
        return {}
    width = batch.ids.shape[1]
    ids, mask, places = to_device(batch.ids, teacher.device), None, None
    if batch.places.size:
        places = to_device(batch.places, teacher.device)
    elif (batch.lengths != width).any():  # without padding, attention needs no mask
        columns = torch.arange(width, device=teacher.device)
        mask = (columns < to_device(batch.lengths, teacher.device)[:, None]).long()
    states = teacher.states(ids, mask, layers, places)
    return {layer: state.reshape(-1, state.shape[-1]) for layer, state in states.items()}


def waited_for(device: torch.device) -> int:
    """Wait until a GPU has done what it was given; the bytes it held at most so far, 0 for a CPU."""
    if device.type != "cuda":
        return 0
    torch.cuda.synchronize(device)
    return int(torch.cuda.max_memory_allocated(device))


def to_device(array: NDArray[Any], device: torch.device) -> Tensor:
    """Integers where the teacher is, as int64; to a GPU without waiting for it."""
    tensor = torch.from_numpy(array)
    if device.type == "cuda":
        tensor = tensor.pin_memory().to(device, non_blocking=True)
    return tensor.long()
