"""Solve analogies by three formulas, with all words as candidates and in bounded memory.

The answer to "a is to b as c is to ?" is the word d other than a, b and c with the highest score:

    3cosadd     cos(d, b) - cos(d, a) + cos(d, c)                          (Mikolov et al. 2013)
    3cosmul     p(d, b) p(d, c) / (p(d, a) + 1e-6),  p = (1 + cos) / 2     (Levy & Goldberg 2014)
    direction   cos(d - c, b - a), all at length one                       (Mikolov et al. 2013, "pair direction")

All three need only the cosines of d with a, b and c. Questions share words, so the cosines of each word are computed
once per block of candidates, and the cost of a question does not depend on the dimension.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.evaluation.intervals import Rows
from stillvec.evaluation.lookup import Lookup
from stillvec.numerics import unit_rows

Form = Literal["3cosadd", "3cosmul", "direction"]
Floats = NDArray[np.float32]
Scorer = Callable[[Rows], Floats]  # questions (n,) → scores of the candidates (n, width)
_TABLE = 1 << 23  # cosines in memory at once: 32 MB
_BATCH = 32  # questions scored at once: 1 MB with 8,192 candidates, which fits the cache of a core
_EPSILON = np.float32(1e-6)  # gensim's


def solve(lookup: Lookup, questions: Rows, limit: int, forms: Sequence[Form]) -> dict[Form, Rows]:
    """Form → the row below `limit` with the highest score for each question (q, 3); the first of equal rows."""
    words, place = np.unique(questions, return_inverse=True)
    place = place.reshape(-1, 3)
    units = unit_rows(lookup.take(words))  # (w, dim)
    best = {form: _Best(questions) for form in forms}
    width = int(np.clip(_TABLE // max(1, len(words)), 256, 8192))
    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    spans = [span for span in np.array_split(np.arange(len(questions)), workers) if len(span)]
    with ThreadPoolExecutor(workers) as pool:  # NumPy releases the GIL
        for start in range(0, limit, width):
            block = unit_rows(np.asarray(lookup.vectors.matrix[start : min(start + width, limit)], np.float32))
            table = units @ block.T  # (w, width)
            zero = np.flatnonzero(~block.any(axis=1))
            for form in forms:
                update = partial(best[form].update, _SCORERS[form](table, place, units), start, zero)
                [*pool.map(update, spans)]
    return {form: result.rows for form, result in best.items()}


class _Best:
    """The best candidate of each question so far."""

    def __init__(self, questions: Rows) -> None:
        self.questions = questions
        self.rows = np.zeros(len(questions), np.int64)
        self.values = np.full(len(questions), -np.inf, np.float32)

    def update(self, scorer: Scorer, start: int, zero: Rows, span: Rows) -> None:
        """Compare a span of questions with the block of candidates from row `start`, where `zero` have no direction."""
        for first in range(0, len(span), _BATCH):
            batch = span[first : first + _BATCH]
            scores = scorer(batch)  # (n, width)
            asked = self.questions[batch] - start
            question, word = np.nonzero((asked >= 0) & (asked < scores.shape[1]))
            scores[question, asked[question, word]] = -np.inf
            scores[:, zero] = -np.inf
            top = scores.argmax(axis=1)
            value = scores[np.arange(len(top)), top]
            better = np.flatnonzero(value > self.values[batch])
            self.rows[batch[better]] = start + top[better]
            self.values[batch[better]] = value[better]


def _add(table: Floats, place: Rows, units: Floats) -> Scorer:
    a, b, c = place.T

    def score(batch: Rows) -> Floats:
        scores: Floats = table[b[batch]]
        scores -= table[a[batch]]
        scores += table[c[batch]]
        return scores

    return score


def _multiply(table: Floats, place: Rows, units: Floats) -> Scorer:
    a, b, c = place.T
    near = table + np.float32(1)
    near /= 2
    far = near + _EPSILON
    np.reciprocal(far, out=far)

    def score(batch: Rows) -> Floats:
        scores: Floats = near[b[batch]]
        scores *= near[c[batch]]
        scores *= far[a[batch]]
        return scores

    return score


def _direct(table: Floats, place: Rows, units: Floats) -> Scorer:
    a, b, c = place.T
    from_c = np.einsum("qd,qd->q", units[b] - units[a], units[c])[:, None]  # (q, 1)
    squares = 1 + np.einsum("wd,wd->w", units, units)[:, None] - 2 * table  # |d - c|²
    apart = squares > 1e-6  # a candidate equal to c has no direction from it
    nearness = np.divide(1, np.sqrt(squares, where=apart, out=squares), where=apart, out=np.zeros_like(table))

    def score(batch: Rows) -> Floats:
        scores: Floats = table[b[batch]]
        scores -= table[a[batch]]
        scores -= from_c[batch]
        scores *= nearness[c[batch]]
        return scores

    return score


_Factory = Callable[[Floats, Rows, Floats], Scorer]
_SCORERS: dict[Form, _Factory] = {"3cosadd": _add, "3cosmul": _multiply, "direction": _direct}
