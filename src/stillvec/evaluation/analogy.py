"""Analogies: the accuracy of 3CosAdd, 3CosMul and pair direction.

The answer to "a is to b as c is to ?" is the word d other than a, b and c with the highest score:

    3cosadd     cos(d, b) - cos(d, a) + cos(d, c)                          (Mikolov et al. 2013)
    3cosmul     p(d, b) p(d, c) / (p(d, a) + 1e-6),  p = (1 + cos) / 2     (Levy & Goldberg 2014)
    direction   cos(d - c, b - a), all at length one                       (Mikolov et al. 2013, "pair direction")

Feature tuples (`refine --step feature_tuples`) have a form of their own, which is asked only by name (`forms=fuzzy`):

    fuzzy       -H(y, d), y = b + c - min(b + c, a) clipped to (0, 1], H the cross-entropy (Bhat et al. 2020)

The other three need only cosines with a, b and c. Questions share words, so the cosines of each word are computed once
per block of candidates, and the cost of a question does not depend on the dimension. The metrics are `accuracy`
(3CosAdd), `accuracy-3cosmul`, `accuracy-direction` and `accuracy-fuzzy`; `forms` selects them. Each is also reported
per section.

Files: `analogy/*.txt` in Google's format (`: section`, then four words per line), and `analogy/*.csv` with the columns
type, word1, word2, word3, target. As in gensim, only the `restrict` most frequent words are asked about and are
candidates. Interval: Wilson's; it is too narrow, as questions that share pairs are not independent.

A table of SemEval-2012 relations (types `1a` to `10j`) has the same columns, but its questions have many correct
answers; the task `relation` reads it.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError
from stillvec.evaluation.intervals import Rows
from stillvec.evaluation.item_files import make_items
from stillvec.evaluation.tasks import Answers, Items, Task
from stillvec.files import inner_suffix
from stillvec.files.path_names import files_in
from stillvec.heads.dataset_files import count_fields, lines, read_table
from stillvec.heads.lookup import Lookup
from stillvec.numerics import unit_rows
from stillvec.refinement.fuzzy_sets import analogy_target, check_tuples

Form = Literal["3cosadd", "3cosmul", "direction", "fuzzy"]
Floats = NDArray[np.float32]
Scorer = Callable[[Rows], Floats]  # questions (n,) → scores of the candidates (n, width)
_TABLE = 1 << 23  # cosines in memory at once: 32 MB
_BATCH = 32  # questions scored at once: 1 MB with 8,192 candidates, which fits the cache of a core
_TINY = float(np.finfo(np.float32).tiny)
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
                if form == "fuzzy":
                    scorer = _cross_entropy(lookup, questions, start, len(block))
                else:
                    scorer = _SCORERS[form](table, place, units)
                [*pool.map(partial(best[form].update, scorer, start, zero), spans)]
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


def _cross_entropy(lookup: Lookup, questions: Rows, start: int, width: int) -> Scorer:
    block = np.asarray(lookup.vectors.matrix[start : start + width], np.float64)
    check_tuples(block)
    logs, rests = (np.log(np.maximum(rows, _TINY)).T for rows in (block, 1 - block))  # (dim, width)

    def score(batch: Rows) -> Floats:
        target = analogy_target(*(lookup.take(column) for column in questions[batch].T))  # (n, dim)
        return np.asarray(target @ logs + (1 - target) @ rests, np.float32)

    return score


_Factory = Callable[[Floats, Rows, Floats], Scorer]
_SCORERS: dict[Form, _Factory] = {"3cosadd": _add, "3cosmul": _multiply, "direction": _direct}


_COLUMNS = ("type", "word1", "word2", "word3", "target")
_RELATION = re.compile(r"([1-9]|10)[a-j]")
_COSINE_FORMS: tuple[Form, ...] = ("3cosadd", "3cosmul", "direction")
_METRICS: dict[Form, str] = {form: "accuracy" if form == "3cosadd" else f"accuracy-{form}" for form in get_args(Form)}


@dataclass(frozen=True)
class Analogy(Task):
    restrict: int | None = 300_000  # gensim's
    forms: tuple[Form, ...] = _COSINE_FORMS

    def find(self, folder: Path) -> list[Path]:
        files = files_in(folder / "analogy", (".txt", ".csv"))
        return [path for path in files if not (inner_suffix(path) == ".csv" and is_relation_table(path))]

    def read(self, path: Path) -> Items:
        is_table = inner_suffix(path) == ".csv"
        rows = [(section, words) for _, section, words, _ in table(path)] if is_table else [*_read_google(path)]
        return make_items(path, "four words", [words for _, words in rows], sections=[section for section, _ in rows])

    def answer(self, lookup: Lookup, items: Items) -> Answers:
        rows = lookup.rows([word for words in items.texts for word in words]).reshape(-1, 4)
        limit = min(len(lookup.vectors), self.restrict or len(lookup.vectors))
        rows = np.where(rows < limit, rows, -1)
        covered = np.asarray((rows >= 0).all(axis=1))
        # no policy for OOV words can answer a question whose answer is OOV
        asked = np.flatnonzero(covered if lookup.oov == "skip" else rows[:, 3] >= 0)
        questions, place = np.unique(rows[asked, :3], axis=0, return_inverse=True)
        right = {_METRICS[form]: np.zeros(len(rows), bool) for form in self.forms}
        if len(asked):
            for form, best in solve(lookup, questions, limit, self.forms).items():
                right[_METRICS[form]][asked] = best[place.ravel()] == rows[asked, 3]
        return Answers(covered, right)


def _read_google(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(section, four words) of each line in Google's format."""
    section = "all"
    for number, line in lines(path):
        words = line.split()
        if line.startswith(":"):
            section = line[1:].strip()
        elif words and not line.startswith("#"):
            if len(words) != 4:
                raise DatasetError.expected("four words", len(words), path=path, line=number)
            yield section, tuple(words)


def table(path: Path) -> Iterator[tuple[int, str, tuple[str, ...], str | None]]:
    """(line number, type, four words, score or None) of each row of a table with a header."""
    for line, row in read_table(path, _COLUMNS):
        section, *words = (row[name] for name in _COLUMNS)
        if not section or not all(words):
            raise DatasetError.expected("a type and four words", count_fields([*row.values()]), path=path, line=line)
        yield line, section, tuple(words), row.get("score")


def is_relation_table(path: Path) -> bool:
    """Whether all types are SemEval-2012's; False for a file that cannot be read, so that `read` raises the error."""
    try:
        types = {section for _, section, _, _ in table(path)}
    except DatasetError:
        return False
    return bool(types) and all(map(_RELATION.fullmatch, types))
