"""The word that answers an analogy, in three forms, among all words and in bounded memory.

a is to b as c is to the word d, not one of them, for which is highest

    3cosadd     cos(d, b) - cos(d, a) + cos(d, c)                          (Mikolov et al. 2013)
    3cosmul     p(d, b) p(d, c) / (p(d, a) + 1e-6),  p = (1 + cos) / 2     (Levy & Goldberg 2014)
    direction   cos(d - c, b - a), all at length one                       (Mikolov et al. 2013, "pair direction")

Each of them needs of a candidate only its cosines with a, b and c. Questions share words, so the cosines of each word
are computed once, a block of candidates at a time, and a question costs two or three passes over the block, whatever
the dimension.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.evaluation.lookup import Lookup, unit

Form = Literal["3cosadd", "3cosmul", "direction"]
Floats = NDArray[np.float32]
Scorer = Callable[[NDArray[np.int64]], Floats]  # numbers of questions (n,) → scores of the candidates (n, width)
_TABLE = 1 << 23  # cosines held at once: 32 MB
_BATCH = 32  # questions scored at once: with 8,192 candidates 1 MB, what a core's cache holds
_EPSILON = np.float32(1e-6)  # gensim's


def solve(
    lookup: Lookup, questions: NDArray[np.int64], limit: int, forms: Sequence[Form]
) -> dict[Form, NDArray[np.int64]]:
    """For each form the row below `limit` that answers each question (q, 3), the first where several are equal."""
    words, place = np.unique(questions, return_inverse=True)
    place = place.reshape(-1, 3)
    units = unit(lookup.take(words))  # (w, dim)
    best = {form: _Best(questions) for form in forms}
    width = int(np.clip(_TABLE // max(1, len(words)), 256, 8192))
    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    spans = [span for span in np.array_split(np.arange(len(questions)), workers) if len(span)]
    with ThreadPoolExecutor(workers) as pool:  # numpy's passes leave the interpreter free
        for start in range(0, limit, width):
            block = unit(np.asarray(lookup.vectors.matrix[start : min(start + width, limit)], np.float32))
            table = units @ block.T  # (w, width)
            dead = np.flatnonzero(~block.any(axis=1))
            for form in forms:
                look = partial(best[form].look, _SCORERS[form](table, place, units), start, dead)
                [*pool.map(look, spans)]
    return {form: each.rows for form, each in best.items()}


class _Best:
    """The best candidate of each question so far."""

    def __init__(self, questions: NDArray[np.int64]) -> None:
        self.questions = questions
        self.rows = np.zeros(len(questions), np.int64)
        self.values = np.full(len(questions), -np.inf, np.float32)

    def look(self, scorer: Scorer, start: int, dead: NDArray[np.int64], span: NDArray[np.int64]) -> None:
        """Let a span of the questions look at the block of candidates that begins at row `start`."""
        for first in range(0, len(span), _BATCH):
            batch = span[first : first + _BATCH]
            scores = scorer(batch)  # (n, width)
            asked = self.questions[batch] - start
            question, word = np.nonzero((asked >= 0) & (asked < scores.shape[1]))
            scores[question, asked[question, word]] = -np.inf
            scores[:, dead] = -np.inf
            top = scores.argmax(axis=1)
            value = scores[np.arange(len(top)), top]
            better = np.flatnonzero(value > self.values[batch])
            self.rows[batch[better]] = start + top[better]
            self.values[batch[better]] = value[better]


def _add(table: Floats, place: NDArray[np.int64], units: Floats) -> Scorer:
    a, b, c = place.T

    def scores(batch: NDArray[np.int64]) -> Floats:
        found: Floats = table[b[batch]]
        found -= table[a[batch]]
        found += table[c[batch]]
        return found

    return scores


def _multiply(table: Floats, place: NDArray[np.int64], units: Floats) -> Scorer:
    a, b, c = place.T
    near = table + np.float32(1)
    near /= 2
    far = near + _EPSILON
    np.reciprocal(far, out=far)

    def scores(batch: NDArray[np.int64]) -> Floats:
        found: Floats = near[b[batch]]
        found *= near[c[batch]]
        found *= far[a[batch]]
        return found

    return scores


def _direct(table: Floats, place: NDArray[np.int64], units: Floats) -> Scorer:
    a, b, c = place.T
    from_c = np.einsum("qd,qd->q", units[b] - units[a], units[c])[:, None]  # (q, 1)
    squares = 1 + np.einsum("wd,wd->w", units, units)[:, None] - 2 * table  # |d - c|²
    apart = squares > 1e-6  # what is as good as c has no direction from it
    nearness = np.divide(1, np.sqrt(squares, where=apart, out=squares), where=apart, out=np.zeros_like(table))

    def scores(batch: NDArray[np.int64]) -> Floats:
        found: Floats = table[b[batch]]
        found -= table[a[batch]]
        found -= from_c[batch]
        found *= nearness[c[batch]]
        return found

    return scores


_SCORERS: dict[Form, Callable[[Floats, NDArray[np.int64], Floats], Scorer]] = {
    "3cosadd": _add,
    "3cosmul": _multiply,
    "direction": _direct,
}
