"""The layers of heads in NumPy, for prediction: the arithmetic of `networks.py`, `text_networks.py` and `crf.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.heads.sequence_batches import Sequences
from stillvec.numerics.array_types import Rows

Floats32 = NDArray[np.float32]
_BATCH = 256  # texts at once
_MOST = 1 << 15  # words of a batch, with padding, unless a single text has more
_SHIFT = 30.0  # of an exponent that is as good as infinite


def iterate_batches(sequences: Sequences, border: int = 0) -> Iterator[tuple[Rows, Rows, Rows]]:
    """Numbers of texts of similar length (B,), their rows (B, border + L + border) and lengths (B,)."""
    for batch in sequences.batches(np.arange(len(sequences)), _BATCH):
        left = batch  # the longest come last
        while len(left):
            n_texts = max(1, _MOST // (int(sequences.lengths[left[-1]]) + 2 * border or 1))
            numbers, left = left[-n_texts:], left[:-n_texts]
            yield numbers, sequences.pad(numbers, border), sequences.lengths[numbers]


def write_words(target: NDArray[Any], sequences: Sequences, numbers: Rows, values: NDArray[Any]) -> None:
    """Write the values of the words of a batch (B, L, ...) to their places among those of all texts (N, ...)."""
    lengths = sequences.lengths[numbers]
    steps = np.arange(values.shape[1])
    inside = steps < lengths[:, None]
    target[((sequences.ends[numbers] - lengths)[:, None] + steps)[inside]] = values[inside]


def softmax(scores: Floats32) -> Floats32:
    """Along the last axis."""
    shifted = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True), np.float32)


def sigmoid(x: Floats32) -> Floats32:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -_SHIFT, _SHIFT))), np.float32)


def unit(x: Floats32) -> Floats32:
    """Rows of length one."""
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12), np.float32)


def filter_texts(table: Floats32, ids: Rows, filters: Floats32, bias: Floats32) -> tuple[Floats32, Rows]:
    """The largest value of each filter of three words (B, F), and the word at its middle (B, F)."""
    n_filters = len(bias)
    words, place = np.unique(ids, return_inverse=True)
    parts = (table[words] @ filters).reshape(-1, 3, n_filters)[place.reshape(ids.shape)]  # (B, L + 2, 3, F)
    hidden = parts[:, :-2, 0] + parts[:, 1:-1, 1] + parts[:, 2:, 2] + bias
    hidden = np.maximum(hidden, 0) * (ids[:, 1:-1] != 0)[..., None]
    return hidden.max(axis=1), hidden.argmax(axis=1)


def run_both_ways(inputs: Floats32, lengths: Rows, arrays: dict[str, NDArray[Any]]) -> Floats32:
    """The states of an LSTM in both directions (B, L, 2 U) for inputs (B, L, d)."""
    enter, recur, biases = arrays["enter"], arrays["recur"], arrays["biases"].sum(axis=0)
    n, length, _ = inputs.shape
    n_units = recur.shape[1]
    gates = (inputs.reshape(n * length, -1) @ enter + biases).reshape(n, length, 2, 4 * n_units)
    inside = np.arange(length) < lengths[:, None]  # (n, L)
    states = np.zeros((n, length, 2 * n_units), np.float32)
    for direction, steps in enumerate((range(length), range(length - 1, -1, -1))):
        state = cell = np.zeros((n, n_units), np.float32)
        for step in steps:
            given = gates[:, step, direction] + state @ recur[direction]
            opened = sigmoid(given[:, : 3 * n_units])
            here = inside[:, step, None]
            written = opened[:, :n_units] * np.tanh(given[:, 3 * n_units :]) * here
            cell = opened[:, n_units : 2 * n_units] * cell + written
            cell = cell * here  # outside a sentence the state is zero
            state = opened[:, 2 * n_units :] * np.tanh(cell) * here
            states[:, step, direction * n_units : (direction + 1) * n_units] = state
    return states


def find_best_paths(scores: Floats32, lengths: Rows, begin: Floats32, step: Floats32, end: Floats32) -> Rows:
    """Viterbi's algorithm: the best tags of each sentence (B, L), 0 outside; of equals as `crf.best_paths`."""
    n, length, n_tags = scores.shape
    inside = np.arange(length) < lengths[:, None]
    best = begin + scores[:, 0]
    back = np.zeros((length, n, n_tags), np.int64)
    for at in range(1, length):
        reached = best[:, :, None] + step  # (B, from, to)
        previous = reached.argmax(axis=1)
        here = inside[:, at, None]
        back[at] = np.where(here, previous, np.arange(n_tags))
        best = np.where(here, np.take_along_axis(reached, previous[:, None], 1)[:, 0] + scores[:, at], best)
    path = np.zeros((n, length), np.int64)
    tag = (best + end).argmax(axis=1)
    for at in range(length - 1, -1, -1):
        path[:, at] = tag
        tag = back[at][np.arange(n), tag]
    return path * inside


def find_tag_chances(scores: Floats32, lengths: Rows, begin: Floats32, step: Floats32, end: Floats32) -> Floats32:
    """The probability of each tag of each word (B, L, T), by the forward-backward algorithm; 0 outside."""
    length = scores.shape[1]
    inside = np.arange(length) < lengths[:, None]
    before, after = np.zeros_like(scores), np.zeros_like(scores) + end
    before[:, 0] = begin + scores[:, 0]
    for at in range(1, length):
        reached = np.logaddexp.reduce(before[:, at - 1, :, None] + step, axis=1) + scores[:, at]
        before[:, at] = reached - reached.max(axis=1, keepdims=True)
    for at in range(length - 2, -1, -1):
        left = np.logaddexp.reduce(step + (scores + after)[:, at + 1, None, :], axis=2)
        after[:, at] = np.where(inside[:, at + 1, None], left - left.max(axis=1, keepdims=True), end)
    return np.asarray(softmax(before + after) * inside[..., None], np.float32)
