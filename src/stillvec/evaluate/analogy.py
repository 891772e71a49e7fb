"""Analogies: the share of questions that 3CosAdd answers (Mikolov et al. 2013; Levy & Goldberg 2014).

    a is to b as c is to   argmax over d not in {a, b, c} of   cos(d, b) - cos(d, a) + cos(d, c)

Every `analogy/*.txt` in Google's form (`: section`, then four words a line) and every `analogy/*.csv` with
the columns type, word1, word2, word3, target. The rules are gensim's: only the `restrict` most frequent
words are asked about and are candidates. Interval: Wilson's; questions made of the same pairs are not
independent, so the truth is wider.

A table of SemEval-2012 relations (types `1a` to `10j`) has these columns too, but pairs an example of a
relation with others that illustrate it more or less well: one question has many right answers, and it is
not read as analogies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError
from stillvec.evaluate.intervals import Estimate, Resampling, wilson
from stillvec.evaluate.lookup import Lookup, unit
from stillvec.evaluate.reading import files_in, lines, records
from stillvec.evaluate.tasks import Answers, Items

_COLUMNS = ("type", "word1", "word2", "word3", "target")
_RELATION = re.compile(r"([1-9]|10)[a-j]")
_TABLE = 1 << 23  # cosines held at once: 32 MB
_BATCH = 32  # questions scored at once: with 8,192 candidates 1 MB, what a core's cache holds


@dataclass(frozen=True)
class Analogy:
    restrict: int | None = 300_000  # gensim's

    def find(self, folder: Path) -> list[Path]:
        found = files_in(folder / "analogy", (".txt", ".csv"))
        return [path for path in found if not (path.suffix.lower() == ".csv" and _is_relation_table(path))]

    def read(self, path: Path) -> Items:
        rows = [*(_table(path) if path.suffix.lower() == ".csv" else _google(path))]
        if not rows:
            raise DatasetError(f"{path}:1: four words a line are wanted, and there are none in the file.")
        return Items(tuple(words for _, words in rows), np.ones(len(rows)), tuple(section for section, _ in rows))

    def answer(self, lookup: Lookup, items: Items) -> Answers:
        rows = lookup.rows([word for words in items.texts for word in words]).reshape(-1, 4)
        limit = min(len(lookup.vectors), self.restrict or len(lookup.vectors))
        rows = np.where(rows < limit, rows, -1)
        covered = np.asarray((rows >= 0).all(axis=1))
        # a question whose answer is unknown cannot be answered, whatever stands in for its other words
        asked = np.flatnonzero(covered if lookup.unknown == "skip" else rows[:, 3] >= 0)
        questions, place = np.unique(rows[asked, :3], axis=0, return_inverse=True)
        right = np.zeros(len(rows), bool)
        if len(asked):
            right[asked] = _best(lookup, questions, limit)[place.ravel()] == rows[asked, 3]
        return Answers(covered, {"accuracy": right})

    def score(
        self, items: Items, answers: Answers, chosen: NDArray[np.int64], resampling: Resampling
    ) -> dict[str, Estimate]:
        return {"accuracy": wilson(int(answers.values["accuracy"][chosen].sum()), len(chosen))}


def _best(lookup: Lookup, questions: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """The row that answers each question (q, 3), the first where several are equal.

    Questions share words, so each word's cosines are computed once, a block of candidates at a time, and a
    question costs two additions a candidate whatever the dimension.
    """
    words, place = np.unique(questions, return_inverse=True)
    place = place.reshape(-1, 3)
    units = unit(lookup.take(words))  # (w, dim)
    answer = np.zeros(len(questions), np.int64)
    best = np.full(len(questions), -np.inf, np.float32)
    width = int(np.clip(_TABLE // len(words), 256, 8192))
    for start in range(0, limit, width):
        block = unit(np.asarray(lookup.vectors.matrix[start : min(start + width, limit)], np.float32))
        table = units @ block.T  # (w, width)
        dead = ~block.any(axis=1)
        for first in range(0, len(questions), _BATCH):
            batch = slice(first, first + _BATCH)
            scores = table[place[batch, 1]]
            scores -= table[place[batch, 0]]
            scores += table[place[batch, 2]]
            scores[:, dead] = -np.inf
            question, word = np.nonzero((questions[batch] >= start) & (questions[batch] < start + len(block)))
            scores[question, questions[batch][question, word] - start] = -np.inf
            top = scores.argmax(axis=1)
            value = scores[np.arange(len(top)), top]
            better = np.flatnonzero(value > best[batch])
            answer[first + better] = start + top[better]
            best[first + better] = value[better]
    return answer


def _google(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(section, four words) of each line in Google's form."""
    section = "all"
    for number, line in lines(path):
        words = line.split()
        if line.startswith(":"):
            section = line[1:].strip()
        elif words and not line.startswith("#"):
            if len(words) != 4:
                raise DatasetError(f"{path}:{number}: four words are wanted, and {len(words)} came.")
            yield section, tuple(words)


def _table(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(type, four words) of each row of a table with a header."""
    rows = records(path)
    where, header = next(rows, (f"{path}:1", []))
    if not set(_COLUMNS) <= set(header):
        raise DatasetError(f"{where}: a header with {', '.join(_COLUMNS)} is wanted, and {','.join(header)!r} came.")
    at = [header.index(name) for name in _COLUMNS]
    for where, fields in rows:
        if len(fields) != len(header) or not all(fields[i] for i in at):
            filled = len([*filter(None, fields)])
            raise DatasetError(f"{where}: a type and four words are wanted, and {filled} fields came.")
        section, *words = (fields[i] for i in at)
        yield section, tuple(words)


def _is_relation_table(path: Path) -> bool:
    """Whether all types are SemEval-2012's; an unreadable file is not, and reading it says why."""
    try:
        types = {section for section, _ in _table(path)}
    except DatasetError:
        return False
    return bool(types) and all(_RELATION.fullmatch(each) for each in types)
