"""Steps of X2Static with negatives per target, each one GPU kernel, in Triton.

A program per distinct word reads its row once, adds up the gradient over the contexts of its targets and updates row
and moments in place. In torch it takes a dozen kernels that write and read a row per target.
"""

from collections.abc import Mapping
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

_FIRST, _SECOND, _EPSILON = 0.9, 0.999, 1e-8  # as in `training.optimizers`
_TOLERANCE = 1e-5


@triton.jit  # type: ignore[untyped-decorator]
def _update(  # type: ignore[no-untyped-def]
    table, means, squares, contexts, words, sentence, is_right, start, losses, size,
    n_targets, pad, dim, first, second, epsilon, block: tl.constexpr,
):  # fmt: skip
    segment = tl.program_id(0)
    begin = tl.load(start + segment)
    loss = 0.0
    if begin < n_targets:
        word = tl.load(words + begin).to(tl.int64)
        if word < pad:
            column = tl.arange(0, block)
            inside = column < dim
            end = tl.load(start + segment + 1)
            place = word * dim + column
            row = tl.load(table + place, mask=inside, other=0.0)
            slope = tl.zeros([block], tl.float32)
            for target in range(begin, end):
                context = tl.load(contexts + tl.load(sentence + target) * dim + column, mask=inside, other=0.0)
                sign = tl.where(tl.load(is_right + target) != 0, 1.0, -1.0)
                logit = sign * tl.sum(row * context)
                small = tl.exp(-tl.abs(logit))
                loss += tl.maximum(-logit, 0.0) + tl.log(1.0 + small)
                against = tl.where(logit > 0, small, 1.0) / (1.0 + small)  # sigmoid(-logit)
                slope -= sign * against * context
            mean = tl.load(means + place, mask=inside, other=0.0)
            square = tl.load(squares + place, mask=inside, other=0.0)
            mean += (1 - first) * (slope - mean)
            square = second * square + (1 - second) * slope * slope
            row -= tl.load(size) * mean / (tl.sqrt(square) + epsilon)
            tl.store(means + place, mean, mask=inside)
            tl.store(squares + place, square, mask=inside)
            tl.store(table + place, row, mask=inside)
    tl.store(losses + segment, loss)


def run_steps(state: tuple[Tensor, ...], contexts: Tensor, steps: Mapping[str, Tensor], pad: int) -> Tensor:
    """Steps of lazy Adam on table, means and squares (R, D) in place, one after the other; returns their losses (S,).

    steps: what `x2static.order_targets` returns, and the "size" of each step (S,). Padding has words from `pad` on.
    """
    table, means, squares = state
    n_targets, dim = steps["words"].shape[1], table.shape[1]
    losses = torch.empty(steps["words"].shape, dtype=torch.float32, device=table.device)
    columns = [steps[name].unbind() for name in ("words", "sentence", "is_right", "starts")]
    kernel: Any = _update[(n_targets,)]
    sizes = steps["size"][:, None].repeat(1, 4).unbind()  # aligned as the other rows are: others compile once more
    for *targets, loss, size in zip(*columns, losses.unbind(), sizes, strict=True):
        kernel(
            table, means, squares, contexts, *targets, loss, size, n_targets, pad, dim, _FIRST, _SECOND, _EPSILON,
            block=triton.next_power_of_2(dim), num_warps=4 if dim > 256 else 1,
        )  # fmt: skip
    return losses.sum(1)


def self_test(device: torch.device) -> None:
    """Raise what prevents the kernel from running, or an error if its steps are wrong.

    Words that occur once, often and not at all, positive and negative, padding, and a dimension that is no power of 2.
    """
    dim, pad = 37, 5
    generator = torch.Generator().manual_seed(0)
    state = tuple(torch.randn(pad + 1, dim, generator=generator).abs().to(device) for _ in range(3))
    contexts = torch.randn(3, dim, generator=generator)
    words, sentence = torch.tensor([0, 1, 1, 1, 4, *range(5, 16)]), torch.tensor([2, 0, 1, 2, 0] + [1] * 11)
    is_right, starts = (
        torch.tensor([1, 0, 1, 0, 0] + [1] * 11).bool(),
        torch.tensor([0, 1, 4, *range(5, 17), 16, 16, 0]),
    )
    steps = {"words": words.int(), "sentence": sentence, "is_right": is_right, "starts": starts}
    table, means, squares = (tensor.cpu().double() for tensor in state)
    stacked = {name: values.expand(2, -1).contiguous().to(device) for name, values in steps.items()}
    sizes = [0.1, 0.05]
    losses = run_steps(state, contexts.to(device), stacked | {"size": torch.tensor(sizes, device=device)}, pad)
    for size, loss in zip(sizes, losses.tolist(), strict=True):
        slopes, expected = torch.zeros_like(table), 0.0
        for number in range(5):
            word, context = int(words[number]), contexts[sentence[number]].double()
            sign = 1.0 if is_right[number] else -1.0
            logit = sign * (table[word] @ context)
            slopes[word] -= sign * torch.sigmoid(-logit) * context
            expected += float(torch.nn.functional.softplus(-logit))
        for word in (0, 1, 4):
            means[word] = _FIRST * means[word] + (1 - _FIRST) * slopes[word]
            squares[word] = _SECOND * squares[word] + (1 - _SECOND) * slopes[word] ** 2
            table[word] -= size * means[word] / (squares[word].sqrt() + _EPSILON)
        if not abs(loss / expected - 1) < _TOLERANCE:
            raise ArithmeticError("Triton's losses are wrong on this device.")
    pairs = zip(state, (table, means, squares), strict=True)
    if not max(float((one[:pad].cpu().double() - other[:pad]).abs().max()) for one, other in pairs) < _TOLERANCE:
        raise ArithmeticError("Triton's steps are wrong on this device.")
