"""States added up by word in one step of a GPU, in Triton: read in the teacher's precision, summed in fp32.

In torch it is three (to fp32, a weighted bag, rows added), which take five times as long: the states are written once
more, in twice the bytes, and read again.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 256  # numbers of a row that one program adds up


@triton.jit  # type: ignore[untyped-decorator]
def _add(states, place, share, start, row, table, links, groups, dim, block: tl.constexpr):  # type: ignore[no-untyped-def]
    group = tl.program_id(0)
    column = tl.program_id(1) * block + tl.arange(0, block)
    inside = column < dim
    first = tl.load(start + group)
    end = tl.load(start + group + 1, mask=group + 1 < groups, other=links)
    total = tl.zeros([block], tl.float32)
    for link in range(first, end):
        state = tl.load(states + tl.load(place + link) * dim + column, mask=inside, other=0.0)
        total += state.to(tl.float32) / tl.load(share + link)
    tl.atomic_add(table + tl.load(row + group) * dim + column, total, mask=inside)


def add_groups(table: Tensor, states: Tensor, place: Tensor, share: Tensor, start: Tensor, row: Tensor) -> None:
    """table[row[g]] += the sum of states[place[l]] / share[l] over the links l of each group g."""
    groups, dim = len(start), states.shape[1]
    if groups:
        programs = groups, triton.cdiv(dim, _BLOCK)
        kernel: Any = _add[programs]
        kernel(states, place, share, start, row, table, len(place), groups, dim, block=_BLOCK)


def tried(device: torch.device) -> None:
    """Raises what stands in the way, and a wrong sum."""
    table = torch.zeros(3, 2, device=device)
    states = torch.tensor([[1.0, 2.0], [3.0, 5.0], [7.0, 11.0]], dtype=torch.bfloat16, device=device)
    place, share, start, row = (torch.tensor(each, device=device) for each in ([0, 2, 1], [1, 2, 1], [0, 2], [2, 0]))
    add_groups(table, states, place, share, start, row)
    if table.tolist() != [[3.0, 5.0], [0.0, 0.0], [4.5, 7.5]]:
        raise ArithmeticError("Triton adds up wrongly here.")
