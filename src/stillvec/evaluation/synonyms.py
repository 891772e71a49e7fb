"""Synonym detection: which choice means the same as the word? (TOEFL, Landauer & Dumais 1997; ESL, Turney 2001.)

Files: `synonyms/*.txt`, `*.tsv`, `*.csv` with a word, its synonym, then the wrong choices, separated by `|`, tabs or,
in a .csv, commas; a first line whose second field is `answer`, `right`, `correct` or `synonym` is a header. The answer
is the choice with the highest cosine; a tie counts as wrong. An item is covered if all its words are.
Interval: Wilson.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from stillvec.errors import DatasetError
from stillvec.evaluation.item_files import make_items
from stillvec.evaluation.tasks import Answers, Items, Task
from stillvec.files import inner_suffix
from stillvec.heads.dataset_files import count_fields, lines
from stillvec.heads.lookup import Lookup
from stillvec.numerics import cosines

_HEADERS = ("answer", "right", "correct", "synonym")


@dataclass(frozen=True)
class Synonyms(Task):
    files: ClassVar[tuple[str, ...]] = ("synonyms", ".txt", ".tsv", ".csv")

    def read(self, path: Path) -> Items:
        texts: list[tuple[str, ...]] = []
        for place, (line, fields) in enumerate(_fields(path)):
            if place == 0 and len(fields) > 1 and fields[1].lower() in _HEADERS:
                continue
            if len(fields) < 3 or not all(fields):
                what = "a word, its synonym and a wrong choice"
                raise DatasetError.expected(what, count_fields(fields), path=path, line=line)
            texts.append(tuple(fields))
        return make_items(path, "a word, its synonym and wrong choices", texts)

    def answer(self, lookup: Lookup, items: Items) -> Answers:
        rows = [lookup.rows(words) for words in items.texts]
        covered = np.array([bool((words >= 0).all()) for words in rows])
        right = np.zeros(len(items), bool)
        for at in lookup.select(covered):
            word, *choices = lookup.take(rows[at])
            near = cosines(np.array(choices), np.tile(word, (len(choices), 1)))
            right[at] = near[0] > near[1:].max()
        return Answers(covered, {"accuracy": right})


def _fields(path: Path) -> Iterator[tuple[int, list[str]]]:
    """(line number, fields) of each line."""
    for number, line in lines(path):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        separator = next((mark for mark in ("|", "\t") if mark in text), None)
        commas = separator is None and inner_suffix(path) == ".csv"
        fields = next(csv.reader([text])) if commas else text.split(separator)
        yield number, [field.strip() for field in fields]
