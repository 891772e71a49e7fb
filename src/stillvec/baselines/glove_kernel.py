"""The inner loop of GloVe, pair by pair; imported where it is used, since it is compiled."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from stillvec.baselines.compiling import compiled

Table = NDArray[np.float32]


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
    dim = words.shape[1] - 1
    step = np.float32(rate)
    loss = 0.0
    for i in order:
        for place in range(starts[i], starts[i + 1]):
            j = columns[place]
            if j % parts != part:
                continue
            count = counts[place]
            product = np.float32(0)
            for d in range(dim):
                product += words[i, d] * contexts[j, d]
            distance = product + words[i, dim] + contexts[j, dim] - np.float32(math.log(count))
            weight = np.float32(1) if count >= x_max else np.float32((count / x_max) ** alpha)
            loss += weight * distance * distance
            slope = weight * distance * step
            for d in range(dim):
                by_word, by_context = slope * contexts[j, d], slope * words[i, d]
                words[i, d] -= by_word / math.sqrt(word_squares[i, d])
                contexts[j, d] -= by_context / math.sqrt(context_squares[j, d])
                word_squares[i, d] += by_word * by_word
                context_squares[j, d] += by_context * by_context
            words[i, dim] -= slope / math.sqrt(word_squares[i, dim])
            contexts[j, dim] -= slope / math.sqrt(context_squares[j, dim])
            word_squares[i, dim] += slope * slope
            context_squares[j, dim] += slope * slope
    return loss
