"""The inner loops of Sent2vec, sentence by sentence; imported where they are used, since they are compiled."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from stillvec.baselines.jit import compiled

Table = NDArray[np.float32]
Vector = NDArray[np.float32]
Rows = NDArray[np.int64]

_MULTIPLIER = np.uint64(116049371)  # fastText's, for hashes of word n-grams


@compiled
def learn(
    sources: Table,  # (V + B, D) words, then buckets of n-grams
    targets: Table,  # (V, D)
    rows: Rows,  # (W,) words of sentences that lie one after the other
    ends: Rows,  # (S,)
    told: NDArray[np.bool_],  # (W,) which of them are targets
    drawn: Rows,  # (T, K) negatives of the targets
    dropping: NDArray[np.float64],  # (S, N) from 0 to 1: an n-gram to drop each
    ngrams: int,
    rate: float,
) -> float:
    """A step on each sentence; gives the loss of its targets, each before its step."""
    size, dim = targets.shape
    longest = ends[0]
    for sentence in range(1, len(ends)):
        longest = max(longest, ends[sentence] - ends[sentence - 1])
    grams = np.empty((ngrams, longest), np.int64)
    slopes = np.empty((longest, dim), np.float32)  # by the sources, target by target
    whole, context = np.empty(dim, np.float32), np.empty(dim, np.float32)
    loss, passed, begin = 0.0, 0, 0
    for sentence in range(len(ends)):
        words = rows[begin : ends[sentence]]
        mine = told[begin : ends[sentence]]
        begin = ends[sentence]
        held = _features(words, dropping[sentence], size, len(sources) - size, grams)
        _add(sources, grams, len(words), whole)
        for at in range(len(words)):
            if mine[at]:
                share = np.float32(1 / (held - _without(at, sources, grams, whole, context)))
                for d in range(dim):
                    context[d] *= share
                loss += _tell(words[at], drawn[passed], context, targets, np.float32(rate), slopes[at])
                for d in range(dim):
                    slopes[at, d] *= share
                passed += 1
        _spread(sources, grams, mine, slopes, np.float32(rate), whole)
    return loss


@compiled
def _features(words: Rows, dropping: NDArray[np.float64], size: int, buckets: int, grams: Rows) -> int:
    """The n-grams by their length and first word, -1 where there is none or it is dropped; gives how many stay."""
    length, found = len(words), 0
    longer = np.empty(len(grams) * length, np.int64)  # where n-grams of several words are
    for at in range(length):
        hashed = np.uint64(words[at])
        grams[0, at] = words[at]
        for more in range(1, len(grams)):
            grams[more, at] = -1
            if at + more < length:
                hashed = hashed * _MULTIPLIER + np.uint64(words[at + more])
                grams[more, at] = size + np.int64(hashed % np.uint64(buckets))
                longer[found] = more * length + at
                found += 1
    drops = min(len(dropping), found)
    for number in range(drops):
        other = number + int(dropping[number] * (found - number))
        gone = longer[other]
        longer[other] = longer[number]
        grams[gone // length, gone % length] = -1
    return length + found - drops


@compiled
def _add(sources: Table, grams: Rows, length: int, whole: Vector) -> None:
    """The sum of all features."""
    whole[:] = 0
    for more in range(len(grams)):
        for at in range(length):
            feature = grams[more, at]
            if feature >= 0:
                for d in range(len(whole)):
                    whole[d] += sources[feature, d]


@compiled
def _without(at: int, sources: Table, grams: Rows, whole: Vector, context: Vector) -> int:
    """The sum without the features that have the word at a place in them; gives how many these are."""
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


@compiled
def _tell(word: int, drawn: Rows, context: Vector, targets: Table, rate: np.float32, slope: Vector) -> float:
    """The word told from those drawn, with a step on the rows of all; gives the loss, and its slope by the context."""
    slope[:] = 0
    likely = 1.0
    for number in range(-1, len(drawn)):
        other = word if number < 0 else drawn[number]
        if number >= 0 and other == word:
            continue
        product = np.float32(0)
        for d in range(len(context)):
            product += context[d] * targets[other, d]
        product = min(max(product, np.float32(-30)), np.float32(30))  # beyond, the loss has no number
        right = 1 / (1 + math.exp(-product if number < 0 else product))
        likely *= right
        pull = np.float32(right - 1 if number < 0 else 1 - right)
        for d in range(len(context)):
            slope[d] += pull * targets[other, d]
            targets[other, d] -= rate * pull * context[d]
    return -math.log(likely)


@compiled
def _spread(
    sources: Table, grams: Rows, told: NDArray[np.bool_], slopes: Table, rate: np.float32, whole: Vector
) -> None:
    """A step on each feature, against the slopes of the targets that it does not have in it."""
    whole[:] = 0
    for at in range(len(told)):
        if told[at]:
            for d in range(len(whole)):
                whole[d] += slopes[at, d]
    for more in range(len(grams)):
        for first in range(len(told)):
            feature = grams[more, first]
            if feature < 0:
                continue
            for d in range(len(whole)):
                sources[feature, d] -= rate * whole[d]
            for at in range(first, first + more + 1):
                if told[at]:
                    for d in range(len(whole)):
                        sources[feature, d] += rate * slopes[at, d]
