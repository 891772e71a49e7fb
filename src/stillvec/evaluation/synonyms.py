"""Synonym detection: which of some words means the same? (TOEFL, Landauer & Dumais 1997; ESL, Turney 2001.)

Every `synonyms/*.txt`, `*.tsv` or `*.csv`: a word, its synonym, then the wrong choices, parted by `|`, tabs or, in a
.csv, commas; a first line whose second field is `answer`, `right`, `correct` or `synonym` is a header. The choice of
highest cosine with the word is the answer; where the synonym shares it with another, nothing was told apart, and it
is wrong. An item is known if all its words are. Interval: Wilson's.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError
from stillvec.evaluation.dataset_files import files_in, lines
from stillvec.evaluation.intervals import Estimate, Resampling, wilson
from stillvec.evaluation.lookup import Lookup, cosines
from stillvec.evaluation.tasks import Answers, Items, Task
from stillvec.files import inner_suffix

_HEADERS = ("answer", "right", "correct", "synonym")


@dataclass(frozen=True)
class Synonyms(Task):
    def find(self, folder: Path) -> list[Path]:
        return files_in(folder / "synonyms", (".txt", ".tsv", ".csv"))

    def read(self, path: Path) -> Items:
        texts: list[tuple[str, ...]] = []
        for place, (number, fields) in enumerate(_fields(path)):
            if place == 0 and len(fields) > 1 and fields[1].lower() in _HEADERS:
                continue
            if len(fields) < 3 or not all(fields):
                came = len([*filter(None, fields)])
                wanted = "a word, its synonym and a wrong choice"
                raise DatasetError(f"{path}:{number}: {wanted} are wanted, and {came} fields came.")
            texts.append(tuple(fields))
        if not texts:
            raise DatasetError(f"{path}:1: a word, its synonym and wrong choices a line are wanted, and none is there.")
        return Items(tuple(texts), np.ones(len(texts)))

    def answer(self, lookup: Lookup, items: Items) -> Answers:
        rows = [lookup.rows(words) for words in items.texts]
        covered = np.array([bool((each >= 0).all()) for each in rows])
        right = np.zeros(len(items), bool)
        for at in np.flatnonzero(covered if lookup.oov == "skip" else covered | True):
            word, *choices = lookup.take(rows[at])
            near = cosines(np.array(choices), np.tile(word, (len(choices), 1)))
            right[at] = near[0] > near[1:].max()
        return Answers(covered, {"accuracy": right})

    def score(
        self, items: Items, answers: Answers, chosen: NDArray[np.int64], resampling: Resampling
    ) -> dict[str, Estimate]:
        return {"accuracy": wilson(int(answers.values["accuracy"][chosen].sum()), len(chosen))}


def _fields(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The number of each line and its fields."""
    for number, line in lines(path):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        parting = next((each for each in ("|", "\t") if each in text), None)
        commas = parting is None and inner_suffix(path) == ".csv"
        fields = next(csv.reader([text])) if commas else text.split(parting)
        yield number, [field.strip() for field in fields]
