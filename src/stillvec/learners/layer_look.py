"""Which layers of a teacher relate words: a look at some words of known relation, before anything is read.

`z(l) = mean over pairs (a, b) of (cos(a, b) - mean over c of cos(a, c)) / deviation over c of cos(a, c)`, c the second
words of all pairs, from the states at layer l of "the meaning of a is", centred and without their first direction. The
pairs (`related_words.txt`) are English, as are the first words of most teachers.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from stillvec.encoding.text_states import encode_texts
from stillvec.learners.accumulators import to_numpy
from stillvec.learners.device_algebra import place, spread
from stillvec.progress import drain
from stillvec.statistics import Array
from stillvec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from stillvec.teachers import Teacher

_TEMPLATE = "the meaning of {} is"
_LEAST = 2.0  # of z: below it the teacher does not relate these words, as one of another language
_LOOKS: WeakKeyDictionary[Teacher, int] = WeakKeyDictionary()  # several accumulators ask about one teacher


def find_best_layer(teacher: Teacher) -> int:
    """The layer that relates words best; the last if none does."""
    if teacher not in _LOOKS:
        scores = score_layers(teacher)
        best = max(scores, key=scores.__getitem__, default=teacher.depth)
        _LOOKS[teacher] = best if scores.get(best, 0.0) >= _LEAST else teacher.depth
    return _LOOKS[teacher]


def score_layers(teacher: Teacher) -> dict[int, float]:
    """How well each layer relates words, from 1 on: the input relates words by their tokens alone."""
    pairs = read_pairs()
    words = sorted({word for pair in pairs for word in pair})
    layers = range(1, teacher.depth + 1)
    states = drain(encode_texts(teacher, [_TEMPLATE.format(word) for word in words], [(n, "mean") for n in layers]))
    row = {word: number for number, word in enumerate(words)}
    first, second = (np.array([row[word] for word in side]) for side in zip(*pairs, strict=True))
    vocabulary = Vocabulary(words)
    return {n: relate(to_numpy(spread(place(states[n, "mean"]), vocabulary)), first, second) for n in layers}


def relate(rows: Array, first: Array, second: Array) -> float:
    """z of pairs of rows of unit length; a word is not compared with itself, nor with its own partner."""
    cosines = rows[first] @ rows[second].T  # (P, P)
    others = (first[:, None] != second) & ~np.eye(len(first), dtype=bool)
    n_others = others.sum(1)
    means = np.where(others, cosines, 0).sum(1) / n_others
    variances = np.where(others, (cosines - means[:, None]) ** 2, 0).sum(1) / n_others
    return float(np.mean((np.diag(cosines) - means) / np.sqrt(np.maximum(variances, 1e-12))))


def read_pairs() -> list[tuple[str, str]]:
    lines = (files("stillvec.learners") / "related_words.txt").read_text("utf-8").splitlines()
    words = [line.split() for line in lines if not line.startswith("#")]
    return [(first, second) for first, second in words]
