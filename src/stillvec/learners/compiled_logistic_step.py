"""One step of X2Static with negatives per target as a compiled loop, for a CPU: import this module on first use.

Each distinct word's row is read once, its gradient summed over the contexts of its targets, and row and moments updated
while they are in the cache. Threads take different words, so their number decides no bit.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stillvec.training.loop_compiler import compile_loop

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
_FIRST, _SECOND, _EPSILON = np.float32(0.9), np.float32(0.999), np.float32(1e-8)  # as in `training.optimizers`


def update_rows(
    state: Sequence[Tensor], contexts: Tensor, words: Tensor, sentence: Tensor, n_right: int, size: float
) -> float:
    """One step of lazy Adam of this size on table, means and squares (R, D) in place; returns the loss.

    The first `n_right` of the words (N,) are targets of their sentence (N,), the others negatives.
    """
    arrays = [tensor.numpy() for tensor in state]
    order, starts = _sort_words(words.numpy(), len(arrays[0]))
    n_threads = max(1, min(torch.get_num_threads(), len(starts) // 64))
    edges = np.searchsorted(starts, np.linspace(0, len(order), n_threads + 1)[1:-1])
    spans = zip([0, *edges], [*edges, len(starts) - 1], strict=True)
    table, means, squares = arrays
    texts, targets, owners, step = contexts.numpy(), words.numpy(), sentence.numpy(), np.float32(size)

    def update(span: tuple[int, int]) -> NDArray[np.float64]:
        return _update_words(table, means, squares, texts, targets, owners, order, starts, n_right, step, *span)

    parts = _pool(os.getpid(), n_threads).map(update, spans)
    return float(np.concatenate([*parts]).sum())


@cache
def _pool(process: int, n_threads: int) -> ThreadPoolExecutor:
    """Threads for this process; a forked one has none of its parent's."""
    return ThreadPoolExecutor(n_threads, "x2static")


@compile_loop
def _sort_words(words: Ints, n_words: int) -> tuple[Ints, Ints]:
    """The targets ordered by word (N,), and the first of each distinct word, then N."""
    ends = np.zeros(n_words + 1, np.int64)
    for word in words:
        ends[word + 1] += 1
    n_distinct = 0
    for word in range(n_words):
        n_distinct += ends[word + 1] > 0
        ends[word + 1] += ends[word]
    starts, number = np.empty(n_distinct + 1, np.int64), 0
    for word in range(n_words):
        if ends[word + 1] > ends[word]:
            starts[number] = ends[word]
            number += 1
    starts[number] = len(words)
    order = np.empty(len(words), np.int64)
    for target in range(len(words)):
        order[ends[words[target]]] = target
        ends[words[target]] += 1
    return order, starts


@compile_loop
def _update_words(
    table: Floats,
    means: Floats,
    squares: Floats,
    contexts: Floats,
    words: Ints,
    sentence: Ints,
    order: Ints,
    starts: Ints,
    n_right: int,
    size: np.float32,
    first: int,
    last: int,
) -> NDArray[np.float64]:
    """Update the distinct words from `first` to `last`, which is excluded; returns the loss of each."""
    dim = table.shape[1]
    slope = np.empty(dim, np.float32)
    losses = np.zeros(last - first, np.float64)
    one = np.float32(1)
    for number in range(first, last):
        word = words[order[starts[number]]]
        row, mean, square = table[word], means[word], squares[word]
        slope[:] = 0
        for place in range(starts[number], starts[number + 1]):
            target = order[place]
            context = contexts[sentence[target]]
            product = np.float32(0)
            for column in range(dim):
                product += row[column] * context[column]
            sign = one if target < n_right else -one
            logit = sign * product
            small = np.exp(-abs(logit))
            losses[number - first] += max(-logit, np.float32(0)) + np.log1p(small)
            weight = -sign * (small if logit > 0 else one) / (one + small)  # sigmoid(-logit)
            for column in range(dim):
                slope[column] += weight * context[column]
        for column in range(dim):
            mean[column] += (one - _FIRST) * (slope[column] - mean[column])
            square[column] = _SECOND * square[column] + (one - _SECOND) * slope[column] * slope[column]
            row[column] -= size * mean[column] / (np.sqrt(square[column]) + _EPSILON)
    return losses
