"""Integer arrays to the teacher's device, without waiting for a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

N_BUFFERS = 8  # batches on their way to a GPU


class DeviceCopier:
    """Copies arrays to one device, to a GPU through pinned memory.

    Pinned buffers are used in rotation: allocating one stops the GPU, and by the time a buffer is used again its copy
    has long ended. One copier belongs to one pass and is used by one thread.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._buffers = [torch.empty(0, dtype=torch.int32)] * N_BUFFERS
        self._copied: list[Any] = []
        self._turn = 0
        if device.type == "cuda":
            self._copied = [torch.cuda.Event() for _ in range(N_BUFFERS)]  # type: ignore[no-untyped-call]

    def copy(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Tensor]:
        """All arrays in one transfer, as int64 tensors of the same names."""
        if not self._copied:
            return {name: torch.from_numpy(array).long().to(self.device) for name, array in arrays.items()}
        sizes = [array.size for array in arrays.values()]
        parts = torch.split(self._stage([*arrays.values()], sum(sizes)).long(), sizes)
        return {name: part.view(array.shape) for part, (name, array) in zip(parts, arrays.items(), strict=True)}

    def _stage(self, arrays: list[NDArray[Any]], size: int) -> Tensor:
        turn = self._turn = (self._turn + 1) % N_BUFFERS
        self._copied[turn].synchronize()
        if self._buffers[turn].numel() < size:
            self._buffers[turn] = torch.empty(2 * size, dtype=torch.int32, pin_memory=True)
        buffer = self._buffers[turn][:size]
        np.concatenate([array.ravel() for array in arrays], out=buffer.numpy(), casting="same_kind")
        copied = buffer.to(self.device, non_blocking=True)
        self._copied[turn].record()
        return copied
