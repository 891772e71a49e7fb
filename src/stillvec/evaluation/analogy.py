"""Analogies: the accuracy of 3CosAdd, 3CosMul and pair direction (formulas in `analogy_solver.py`).

The metrics are `accuracy` (3CosAdd, Mikolov et al. 2013), `accuracy-3cosmul` (Levy & Goldberg 2014) and
`accuracy-direction`; `forms` selects them. Each is also reported per section of the file.

Files: `analogy/*.txt` in Google's format (`: section`, then four words per line), and `analogy/*.csv` with the columns
type, word1, word2, word3, target. As in gensim, only the `restrict` most frequent words are asked about and are
candidates. Interval: Wilson's; it is too narrow, as questions that share pairs are not independent.

A table of SemEval-2012 relations (types `1a` to `10j`) has the same columns, but its questions have many correct
answers; the task `relation` reads it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np

from stillvec.errors import DatasetError
from stillvec.evaluation.analogy_solver import Form, solve
from stillvec.evaluation.dataset_files import count_fields, lines, make_items, read_table
from stillvec.evaluation.lookup import Lookup
from stillvec.evaluation.tasks import Answers, Items, Task
from stillvec.files import inner_suffix
from stillvec.files.path_names import files_in

_COLUMNS = ("type", "word1", "word2", "word3", "target")
_RELATION = re.compile(r"([1-9]|10)[a-j]")
_METRICS: dict[Form, str] = {form: "accuracy" if form == "3cosadd" else f"accuracy-{form}" for form in get_args(Form)}


@dataclass(frozen=True)
class Analogy(Task):
    restrict: int | None = 300_000  # gensim's
    forms: tuple[Form, ...] = get_args(Form)

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
