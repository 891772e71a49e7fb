"""The inner loop of GloVe, pair by pair; imported where it is used, since it is compiled."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from stillvec.baselines.compiling import compiled

Table = NDArray[np.float32]
Vector = NDArray[np.float32]

_TILE = 256  # contexts: 600 KB at 300 dimensions


@compiled
def learn(
    words: Table,  # (V, D + 1), the bias last
    contexts: Table,
    word_squares: Table,
    context_squares: Table,
    order: NDArray[np.int64],  # rows of words, each with its pairs
    starts: NDArray[np.int64],  # (V + 1,)
    columns: NDArray[np.int32],  # (N,)
    counts: NDArray[np.float32],  # (N,)
    x_max: float,
    alpha: float,
    rate: float,
    part: int,  # of `parts`: only columns that leave this as a remainder
    parts: int,
) -> float:
    """Steps on the pairs of some words; gives their loss, each before its step."""
    words.shape[1] - 1
    step = np.float32(rate)
    loss = 0.0
    places = starts[order]
    for edge in range(_TILE * parts, len(words) + _TILE * parts, _TILE * parts):  # rows that a core holds near it
        for number in range(len(order)):
            i, place = order[number], places[number]
            while place < starts[i + 1] and columns[place] < edge:
                j, count = columns[place], counts[place]
                place += 1
                if j % parts == part:
                    slope = _slope(words[i], contexts[j], count, x_max, alpha)
                    loss += slope[0]
                    _step(words[i], contexts[j], word_squares[i], context_squares[j], slope[1] * step)
            places[number] = place
    return loss


@compiled
def _slope(word: Vector, context: Vector, count: np.float32, x_max: float, alpha: float) -> tuple[float, np.float32]:
    """The pair's loss, and half its derivative by the product."""
    dim = len(word) - 1
    product = np.float32(0)
    for d in range(dim):
        product += word[d] * context[d]
    distance = product + word[dim] + context[dim] - np.float32(math.log(count))
    weight = np.float32(1) if count >= x_max else np.float32((count / x_max) ** alpha)
    return weight * distance * distance, weight * distance


@compiled
def _step(word: Vector, context: Vector, word_squares: Vector, context_squares: Vector, slope: np.float32) -> None:
    """AdaGrad's, on both rows and their biases."""
    dim = len(word) - 1
    for d in range(dim):
        by_word, by_context = slope * context[d], slope * word[d]
        word[d] -= by_word / np.float32(math.sqrt(word_squares[d]))
        context[d] -= by_context / np.float32(math.sqrt(context_squares[d]))
        word_squares[d] += by_word * by_word
        context_squares[d] += by_context * by_context
    word[dim] -= slope / np.float32(math.sqrt(word_squares[dim]))
    context[dim] -= slope / np.float32(math.sqrt(context_squares[dim]))
    word_squares[dim] += slope * slope
    context_squares[dim] += slope * slope
