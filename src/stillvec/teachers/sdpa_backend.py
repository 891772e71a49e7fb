"""Which of torch's ways to attend a GPU takes for a batch.

The fastest, cuDNN's, makes a plan for every shape it meets, which takes longer than reading the batch. It is worth it
for round shapes, which come again and again; others are read the second fastest way.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

_ROWS, _WIDTH = 32, 128  # what a round shape is a multiple of
_WITHOUT_PLANS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


def attending(ids: Tensor) -> AbstractContextManager[None]:
    """For ids (B, T)."""
    if not ids.is_cuda or (ids.shape[0] % _ROWS == 0 and ids.shape[1] % _WIDTH == 0):
        return nullcontext()
    return sdpa_kernel(_WITHOUT_PLANS)
