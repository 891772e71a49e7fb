"""Which of torch's attention kernels a GPU uses for a batch.

The fastest, cuDNN's, compiles a plan for every new shape, which takes longer than the forward pass itself. That pays
off for round shapes, which recur; other shapes use the second fastest kernel.
"""

from contextlib import AbstractContextManager, nullcontext

from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

_ROWS, _WIDTH = 32, 128  # a round shape is a multiple of these
_WITHOUT_PLANS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


def select_backend(ids: Tensor) -> AbstractContextManager[None]:
    """The context to run a forward pass over ids (B, T) in."""
    if not ids.is_cuda or (ids.shape[0] % _ROWS == 0 and ids.shape[1] % _WIDTH == 0):
        return nullcontext()
    return sdpa_kernel(_WITHOUT_PLANS)
