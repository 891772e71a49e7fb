"""One step of X2Static with negatives per target in one GPU kernel, in Triton.

A program per distinct word reads its row once, adds up the gradient over the contexts of its targets and updates row
and moments in place. In torch it takes a dozen kernels that write and read a row per target.
"""

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


def update_rows(
    state: tuple[Tensor, ...], contexts: Tensor, targets: tuple[Tensor, ...], size: Tensor, pad: int
) -> Tensor:
    """One step of lazy Adam of this size on table, means and squares (R, D) in place; returns the loss.

    targets: of targets and negatives ordered by word, the word (N,), the sentence (N,) and whether it is a target (N,);
        then the first of each distinct word, and N from there on (N + 1,). Padding has words from `pad` on.
    """
    table, means, squares = state
    n_targets, dim = len(targets[0]), table.shape[1]
    losses = torch.empty(n_targets, dtype=torch.float32, device=table.device)
    kernel: Any = _update[(n_targets,)]
    kernel(
        table, means, squares, contexts, *targets, losses, size, n_targets, pad, dim, _FIRST, _SECOND, _EPSILON,
        block=triton.next_power_of_2(dim), num_warps=4 if dim > 256 else 1,
    )  # fmt: skip
    return losses.sum()


def self_test(device: torch.device) -> None:
    """Raise what prevents the kernel from running, or an error if its steps are wrong.

    Words that occur once, often and not at all, positive and negative, padding, and a dimension that is no power of 2.
    """
    dim, pad = 37, 5
    generator = torch.Generator().manual_seed(0)
    state = tuple(torch.randn(pad + 1, dim, generator=generator).abs().to(device) for _ in range(3))
    contexts = torch.randn(3, dim, generator=generator).to(device)
    size = torch.tensor(0.1, device=device)
    words, sentence, is_right, start = (
        torch.tensor(values, device=device)
        for values in ([0, 1, 1, 1, 4, 5, 6], [2, 0, 1, 2, 0, 1, 1], [1, 0, 1, 0, 0, 1, 0], [0, 1, 4, 5, 6, 7, 7, 7])
    )
    table, means, squares = (tensor.clone().double() for tensor in state)
    slopes, expected = torch.zeros_like(table), 0.0
    for number in range(5):
        word, context = int(words[number]), contexts[sentence[number]].double()
        sign = 1.0 if is_right[number] else -1.0
        logit = sign * (table[word] @ context)
        slopes[word] -= sign * torch.sigmoid(-logit) * context
        expected += float(torch.nn.functional.softplus(-logit))
    loss = update_rows(state, contexts, (words, sentence, is_right, start), size, pad)
    for word in (0, 1, 4):
        means[word] = _FIRST * means[word] + (1 - _FIRST) * slopes[word]
        squares[word] = _SECOND * squares[word] + (1 - _SECOND) * slopes[word] ** 2
        table[word] -= 0.1 * means[word] / (squares[word].sqrt() + _EPSILON)
    pairs = zip(state, (table, means, squares), strict=True)
    errors = [float((one[:pad].double() - other[:pad]).abs().max()) for one, other in pairs]
    if not max(*errors, abs(float(loss) / expected - 1)) < _TOLERANCE:
        raise ArithmeticError("Triton's steps are wrong on this device.")
