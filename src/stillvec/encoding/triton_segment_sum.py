"""States summed by word in one GPU kernel, in Triton: read in the teacher's precision, summed in fp32.

In torch it takes three kernels (to fp32, a weighted embedding bag, an index add) and five times as long: the states are
written once more, in twice the bytes, and read again.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 256  # columns per program


@triton.jit  # type: ignore[untyped-decorator]
def _add(states, index, n_tokens, start, row, table, links, segments, dim, block: tl.constexpr):  # type: ignore[no-untyped-def]
    segment = tl.program_id(0)
    column = tl.program_id(1) * block + tl.arange(0, block)
    inside = column < dim
    first = tl.load(start + segment)
    end = tl.load(start + segment + 1, mask=segment + 1 < segments, other=links)
    total = tl.zeros([block], tl.float32)
    for link in range(first, end):
        state = tl.load(states + tl.load(index + link) * dim + column, mask=inside, other=0.0)
        total += state.to(tl.float32) / tl.load(n_tokens + link)
    tl.atomic_add(table + tl.load(row + segment) * dim + column, total, mask=inside)


def add_segments(table: Tensor, states: Tensor, index: Tensor, n_tokens: Tensor, start: Tensor, row: Tensor) -> None:
    """table[row[g]] += the sum of states[index[l]] / n_tokens[l] over the links l of each segment g."""
    segments, dim = len(start), states.shape[1]
    if segments:
        programs = segments, triton.cdiv(dim, _BLOCK)
        kernel: Any = _add[programs]
        kernel(states, index, n_tokens, start, row, table, len(index), segments, dim, block=_BLOCK)


def self_test(device: torch.device) -> None:
    """Raise what prevents the kernel from running, or an error if its sums are wrong.

    Two precisions, a dimension below a block and one that is not a multiple of it, and a segment of many tokens.
    """
    for dtype, dim in ((torch.bfloat16, 2), (torch.float16, _BLOCK + 3)):
        states = (torch.arange(6 * dim, device=device) % 7).view(6, dim).to(dtype)
        index, n_tokens, start, row = (
            torch.tensor(values, device=device)
            for values in ([0, 2, 1, 3, 4, 5, 5], [1, 2, 1, 1, 1, 1, 2], [0, 2, 6], [2, 0, 2])
        )
        table = torch.zeros(3, dim, device=device)
        add_segments(table, states, index, n_tokens, start, row)
        weighted = states.float()[index] / n_tokens[:, None]
        expected = torch.stack([weighted[2:6].sum(0), torch.zeros(dim, device=device), weighted[[0, 1, 6]].sum(0)])
        if not torch.equal(table, expected):
            raise ArithmeticError("Triton's sums are wrong on this device.")
