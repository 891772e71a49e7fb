"""The inner loop of GloVe, pair by pair; imported on first use, since numba compiles it."""

import math

import numpy as np
from numpy.typing import NDArray

from stillvec.baselines.jit import compile_loop

Table = NDArray[np.float32]
Rows = NDArray[np.float32]  # (2, W) of a word: its vector, and AdaGrad's sums of squares

_TILE = 256  # contexts: 600 KB at 300 dimensions


@compile_loop
def train(
    words: Table,  # (V, 2, W)
    contexts: Table,
    order: NDArray[np.int64],  # words to train, each with its pairs
    first: int,  # only contexts from this one
    last: int,  # up to this one, excluded
    starts: NDArray[np.int64],  # (V + 1,)
    columns: NDArray[np.int32],  # (N,)
    counts: NDArray[np.float32],  # (N,)
    x_max: float,
    alpha: float,
    lr: float,
) -> float:
    """Steps on the pairs of some words with some contexts; returns their summed loss, each before its step."""
    limit, power, step = np.float32(x_max), np.float32(alpha), np.float32(lr)
    loss = 0.0
    places = starts[order]
    for number in range(len(order)):
        i = order[number]
        places[number] += np.searchsorted(columns[starts[i] : starts[i + 1]], first)
    for tile in range(first, last, _TILE):  # rows that fit a core's cache
        edge = min(tile + _TILE, last)
        for number in range(len(order)):
            i, place = order[number], places[number]
            while place < starts[i + 1] and columns[place] < edge:
                slope = _slope(words[i], contexts[columns[place]], counts[place], limit, power)
                loss += float(slope[0])
                _step(words[i], contexts[columns[place]], slope[1] * step)
                place += 1
            places[number] = place
    return loss


@compile_loop
def _slope(
    word: Rows, context: Rows, count: np.float32, x_max: np.float32, alpha: np.float32
) -> tuple[np.float32, np.float32]:
    """The loss of a pair, and half its derivative by the product."""
    distance = -math.log(count)
    for d in range(word.shape[1]):
        distance += word[0, d] * context[0, d]
    weight = np.float32(1) if count >= x_max else (count / x_max) ** alpha
    return weight * distance * distance, weight * distance


@compile_loop
def _step(word: Rows, context: Rows, slope: np.float32) -> None:
    """AdaGrad on both rows."""
    for d in range(word.shape[1]):
        by_word, by_context = slope * context[0, d], slope * word[0, d]
        word[0, d] -= by_word / np.float32(math.sqrt(word[1, d]))
        context[0, d] -= by_context / np.float32(math.sqrt(context[1, d]))
        word[1, d] += by_word * by_word
        context[1, d] += by_context * by_context
