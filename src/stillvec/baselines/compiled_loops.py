"""The inner loops of GloVe and Sent2vec, which numba compiles on the first call: import this module on first use."""

import math

import numpy as np
from numpy.typing import NDArray

from stillvec.training.loop_compiler import compile_loop

Table = NDArray[np.float32]
Vector = NDArray[np.float32]
Rows = NDArray[np.int64]

_TILE = 256  # contexts of GloVe: 600 KB at 300 dimensions
_MULTIPLIER = np.uint64(116049371)  # fastText's, for hashes of word n-grams


@compile_loop
def train_glove(
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
) -> tuple[int, float]:
    """Steps on the pairs of some words with some contexts; returns their number and summed loss, before each step."""
    limit, power, step = np.float32(x_max), np.float32(alpha), np.float32(lr)
    n_pairs, loss = 0, 0.0
    places = starts[order]
    for number in range(len(order)):
        i = order[number]
        places[number] += np.searchsorted(columns[starts[i] : starts[i + 1]], first)
    for tile in range(first, last, _TILE):  # rows that fit a core's cache
        edge = min(tile + _TILE, last)
        for number in range(len(order)):
            i, place = order[number], places[number]
            while place < starts[i + 1] and columns[place] < edge:
                slope = _pair_slope(words[i], contexts[columns[place]], counts[place], limit, power)
                loss += float(slope[0])
                _update_pair(words[i], contexts[columns[place]], slope[1] * step)
                place += 1
            n_pairs += place - places[number]
            places[number] = place
    return n_pairs, loss


@compile_loop
def _pair_slope(
    word: Table, context: Table, count: np.float32, x_max: np.float32, alpha: np.float32
) -> tuple[np.float32, np.float32]:
    """The loss of a pair, and half its derivative by the product."""
    distance = -math.log(count)
    for d in range(word.shape[1]):
        distance += word[0, d] * context[0, d]
    weight = np.float32(1) if count >= x_max else (count / x_max) ** alpha
    return weight * distance * distance, weight * distance


@compile_loop
def _update_pair(word: Table, context: Table, slope: np.float32) -> None:
    """AdaGrad on both rows."""
    for d in range(word.shape[1]):
        by_word, by_context = slope * context[0, d], slope * word[0, d]
        word[0, d] -= by_word / np.float32(math.sqrt(word[1, d]))
        context[0, d] -= by_context / np.float32(math.sqrt(context[1, d]))
        word[1, d] += by_word * by_word
        context[1, d] += by_context * by_context


@compile_loop
def train_sent2vec(
    sources: Table,  # (V + B, D) words, then buckets of n-grams
    targets: Table,  # (V, D)
    rows: Rows,  # (W,) words, sentence after sentence
    ends: Rows,  # (S,)
    is_target: NDArray[np.bool_],  # (W,)
    negatives: Rows,  # (T, K) of the targets
    dropping: NDArray[np.float64],  # (S, N) uniform, each chooses an n-gram to drop
    ngrams: int,
    lr: float,
) -> float:
    """One step per sentence; returns the summed loss of the targets, each before its step."""
    size, dim = targets.shape
    longest = ends[0]
    for sentence in range(1, len(ends)):
        longest = max(longest, ends[sentence] - ends[sentence - 1])
    grams = np.empty((ngrams, longest), np.int64)
    slopes = np.empty((longest, dim), np.float32)  # gradient by the sources, per target
    whole, context = np.empty(dim, np.float32), np.empty(dim, np.float32)
    loss, target, begin = 0.0, 0, 0
    for sentence in range(len(ends)):
        words = rows[begin : ends[sentence]]
        here = is_target[begin : ends[sentence]]
        begin = ends[sentence]
        n_features = _features(words, dropping[sentence], size, len(sources) - size, grams)
        _sum_features(sources, grams, len(words), whole)
        for at in range(len(words)):
            if here[at]:
                share = np.float32(1 / (n_features - _leave_out(at, sources, grams, whole, context)))
                for d in range(dim):
                    context[d] *= share
                loss += _step(words[at], negatives[target], context, targets, np.float32(lr), slopes[at])
                for d in range(dim):
                    slopes[at, d] *= share
                target += 1
        _update_sources(sources, grams, here, slopes, np.float32(lr), whole)
    return loss


@compile_loop
def _features(words: Rows, dropping: NDArray[np.float64], size: int, buckets: int, grams: Rows) -> int:
    """Fill in the n-grams by length and first word, -1 where there is none or it is dropped; returns their number."""
    length, n_longer = len(words), 0
    longer = np.empty(len(grams) * length, np.int64)  # indices of n-grams of several words
    for at in range(length):
        hashed = np.uint64(words[at])
        grams[0, at] = words[at]
        for more in range(1, len(grams)):
            grams[more, at] = -1
            if at + more < length:
                hashed = hashed * _MULTIPLIER + np.uint64(words[at + more])
                grams[more, at] = size + np.int64(hashed % np.uint64(buckets))
                longer[n_longer] = more * length + at
                n_longer += 1
    drops = min(len(dropping), n_longer)
    for number in range(drops):
        other = number + int(dropping[number] * (n_longer - number))
        dropped = longer[other]
        longer[other] = longer[number]
        grams[dropped // length, dropped % length] = -1
    return length + n_longer - drops


@compile_loop
def _sum_features(sources: Table, grams: Rows, length: int, whole: Vector) -> None:
    """The sum of all features."""
    whole[:] = 0
    for more in range(len(grams)):
        for at in range(length):
            feature = grams[more, at]
            if feature >= 0:
                for d in range(len(whole)):
                    whole[d] += sources[feature, d]


@compile_loop
def _leave_out(at: int, sources: Table, grams: Rows, whole: Vector, context: Vector) -> int:
    """The sum without the features that contain the word at a position; returns the number of these."""
    inside = 0
    context[:] = whole
    for more in range(len(grams)):
        for first in range(max(0, at - more), at + 1):
            feature = grams[more, first]
            if feature >= 0:
                inside += 1
                for d in range(len(context)):
                    context[d] -= sources[feature, d]
    return inside


@compile_loop
def _step(word: int, negatives: Rows, context: Vector, targets: Table, lr: np.float32, slope: Vector) -> float:
    """Update the rows of a word and its negatives; returns the loss, and its gradient by the context in `slope`."""
    slope[:] = 0
    likely = 1.0
    for number in range(-1, len(negatives)):
        other = word if number < 0 else negatives[number]
        if number >= 0 and other == word:
            continue
        product = np.float32(0)
        for d in range(len(context)):
            product += context[d] * targets[other, d]
        product = min(max(product, np.float32(-30)), np.float32(30))  # beyond, the loss is not finite
        right = 1 / (1 + math.exp(-product if number < 0 else product))
        likely *= right
        pull = np.float32(right - 1 if number < 0 else 1 - right)
        for d in range(len(context)):
            slope[d] += pull * targets[other, d]
            targets[other, d] -= lr * pull * context[d]
    return -math.log(likely)


@compile_loop
def _update_sources(
    sources: Table, grams: Rows, is_target: NDArray[np.bool_], slopes: Table, lr: np.float32, whole: Vector
) -> None:
    """Update each feature by the gradients of the targets that it does not contain."""
    whole[:] = 0
    for at in range(len(is_target)):
        if is_target[at]:
            for d in range(len(whole)):
                whole[d] += slopes[at, d]
    for more in range(len(grams)):
        for first in range(len(is_target)):
            feature = grams[more, first]
            if feature < 0:
                continue
            for d in range(len(whole)):
                sources[feature, d] -= lr * whole[d]
            for at in range(first, first + more + 1):
                if is_target[at]:
                    for d in range(len(whole)):
                        sources[feature, d] += lr * slopes[at, d]
