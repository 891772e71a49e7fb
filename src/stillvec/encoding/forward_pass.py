"""The one pass: the teacher reads each batch once, and everyone who wants something of it listens."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stillvec.encoding.batch import Batch
from stillvec.encoding.encoded import Encoded
from stillvec.teachers import Teacher

N_BUFFERS = 8  # batches that are on their way to a GPU


class BatchConsumer(Protocol):
    """Keeps what it needs of each batch."""

    @property
    def layers(self) -> Sequence[int]:
        """The layers it wants to hear."""

    def update(self, encoded: Encoded) -> None:
        """Hear one batch."""


@dataclass(frozen=True)
class PassProgress:
    """How far the pass is, after a batch."""

    sentences: int = 0
    words: int = 0
    pieces: int = 0
    seconds: float = 0.0
    passed: int = 0  # words gone by, read or not


def encode(
    teacher: Teacher, batches: Iterable[Batch], listeners: Sequence[BatchConsumer], before: PassProgress | None = None
) -> Iterator[PassProgress]:
    """Drive batches through the teacher; yields after each, when all listeners have heard it.

    `before` is how far an earlier run was, which is gone on with.
    """
    layers = sorted({layer for listener in listeners for layer in listener.layers})
    before = before or PassProgress()
    begun = time.perf_counter() - before.seconds
    sentences, words, pieces = before.sentences, before.words, before.pieces
    for batch in batches:
        encoded = read_batch(teacher, batch, layers)
        for listener in listeners:
            listener.update(encoded)
        sentences += len(batch.sentence_pieces)
        words += len(batch.word_id)
        pieces += len(batch.piece_place)
        yield PassProgress(sentences, words, pieces, time.perf_counter() - begun)


@torch.inference_mode()
def read_batch(teacher: Teacher, batch: Batch, layers: Sequence[int]) -> Encoded:
    """One forward pass."""
    known = np.flatnonzero(batch.word_id >= 0)
    ids, lengths, places, *rest = arrays_to_device(
        (
            batch.ids,
            batch.lengths,
            batch.places,
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
        ),
        teacher.device,
    )
    padded = (batch.lengths != batch.ids.shape[1]).any()  # without padding, attention needs no mask
    states = states_of(teacher, ids, lengths if padded else None, places if batch.places.size else None, layers)
    return Encoded(batch, {layer: state.flatten(0, 1) for layer, state in states.items()}, *rest)


def states_of(
    teacher: Teacher, ids: Tensor, lengths: Tensor | None, places: Tensor | None, layers: Sequence[int]
) -> dict[int, Tensor]:
    """The states (B, T, D) of rows that are packed, or padded to a width, or full."""
    if places is not None or lengths is None:
        return teacher.states(ids, None, layers, places)
    columns = torch.arange(ids.shape[1], device=teacher.device)
    return teacher.states(ids, (columns < lengths[:, None]).long(), layers)


def synchronize(device: torch.device) -> int:
    """Wait until a GPU has done what it was given; the bytes it held at most so far, 0 for a CPU."""
    if device.type != "cuda":
        return 0
    torch.cuda.synchronize(device)
    return int(torch.cuda.max_memory_allocated(device))


def arrays_to_device(arrays: Sequence[NDArray[Any]], device: torch.device) -> list[Tensor]:
    """Integers where the teacher is, as int64; all at once, and to a GPU without waiting for it."""
    if device.type != "cuda":
        return [torch.from_numpy(array).long() for array in arrays]
    sizes = [array.size for array in arrays]
    parts = torch.split(_pinned_staging(device).cross(arrays, sum(sizes)).long(), sizes)
    return [part.view(array.shape) for part, array in zip(parts, arrays, strict=True)]


def to_device(array: NDArray[Any], device: torch.device) -> Tensor:
    """One of them."""
    return arrays_to_device([array], device)[0]


@cache
def _pinned_staging(device: torch.device) -> PinnedStaging:
    return PinnedStaging(device)


class PinnedStaging:
    """Memory that a GPU reads by itself, used in turn: asking for it anew stops the GPU, and each use ends in time."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._rooms = [torch.empty(0, dtype=torch.int32) for _ in range(N_BUFFERS)]
        self._left: list[Any] = [torch.cuda.Event() for _ in range(N_BUFFERS)]  # type: ignore[no-untyped-call]
        self._turn = 0

    def cross(self, arrays: Sequence[NDArray[Any]], size: int) -> Tensor:
        turn = self._turn = (self._turn + 1) % N_BUFFERS
        self._left[turn].synchronize()
        if self._rooms[turn].numel() < size:
            self._rooms[turn] = torch.empty(2 * size, dtype=torch.int32, pin_memory=True)
        room = self._rooms[turn][:size]
        np.concatenate([array.ravel() for array in arrays], out=room.numpy(), casting="same_kind")
        there = room.to(self._device, non_blocking=True)
        self._left[turn].record()
        return there
