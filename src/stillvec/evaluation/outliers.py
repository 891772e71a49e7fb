"""Outlier detection: which word does not belong with the others? (Camacho-Collados & Navigli 2016.)

Of a group and one outlier, each word has the mean of its cosines with all others; leaving out the word that has the
least makes the rest the most compact. With OP the number of words of the group that have more than the outlier:
`accuracy` is the share of outliers with OP = size of the group, `opp` the mean of OP / size of the group. Equal means
count against the outlier. Interval: Wilson's for accuracy, percentile bootstrap over the outliers for OPP; those of
one group share it, so the truth is wider.

Every `outliers/*.txt`: the words of a group one a line, an empty line, its outliers one a line; then perhaps an empty
line and the next group. Every folder `outliers/NAME/` is one dataset, a group a file, as 8-8-8 comes. Every
`outliers/*.csv` with the columns category, words, outliers, the last two lists in brackets, as word-benchmarks has
them. An item is a group with one of its outliers, and is known if all these words are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError
from stillvec.evaluation.dataset_files import files_in, lines, records
from stillvec.evaluation.intervals import Estimate, Resampling, mean_estimate, wilson
from stillvec.evaluation.lookup import Lookup, unit
from stillvec.evaluation.tasks import Answers, Items, Task
from stillvec.files import inner_suffix

_COLUMNS = ("category", "words", "outliers")
Group = tuple[str, list[str], list[str]]  # name, words, outliers


@dataclass(frozen=True)
class Outliers(Task):
    def find(self, folder: Path) -> list[Path]:
        place = folder / "outliers"
        folders = [path for path in place.iterdir() if files_in(path, (".txt",))] if place.is_dir() else []
        return sorted([*files_in(place, (".txt", ".csv")), *folders])

    def read(self, path: Path) -> Items:
        files = files_in(path, (".txt",)) if path.is_dir() else [path]
        read = _table if inner_suffix(path) == ".csv" and not path.is_dir() else _blocks
        groups = [group for file in files for group in read(file)]
        if not groups:
            raise DatasetError(f"{path}:1: a group of words and its outliers are wanted, and there are none.")
        items = [(name, (*words, outlier)) for name, words, outliers in groups for outlier in outliers]
        return Items(tuple(texts for _, texts in items), np.ones(len(items)), tuple(name for name, _ in items))

    def answer(self, lookup: Lookup, items: Items) -> Answers:
        rows = [lookup.rows(words) for words in items.texts]
        covered = np.array([bool((each >= 0).all()) for each in rows])
        share = np.zeros(len(items))
        for at in np.flatnonzero(covered if lookup.oov == "skip" else covered | True):
            points = unit(lookup.take(rows[at])).astype(np.float64)
            cosines = (points @ points.T).round(12)
            np.fill_diagonal(cosines, 0)
            sums = cosines.sum(axis=1)
            share[at] = (sums[:-1] > sums[-1] + 1e-9).mean()
        return Answers(covered, {"accuracy": share == 1, "opp": share})

    def score(
        self, items: Items, answers: Answers, chosen: NDArray[np.int64], resampling: Resampling
    ) -> dict[str, Estimate]:
        right, share = (answers.values[metric][chosen] for metric in ("accuracy", "opp"))
        return {"accuracy": wilson(int(right.sum()), len(chosen)), "opp": mean_estimate(share, resampling)}


def _blocks(path: Path) -> Iterator[Group]:
    """Groups of a file in which empty lines part words from outliers."""
    blocks: list[tuple[int, list[str]]] = []
    before = ""
    for number, line in lines(path):
        word = line.strip()
        if word and not before:
            blocks.append((number, []))
        if word:
            blocks[-1][1].append(word)
        before = word
    if len(blocks) % 2:
        number = blocks[-1][0]
        raise DatasetError(f"{path}:{number}: after these words an empty line and their outliers are wanted.")
    pairs = [*zip(blocks[::2], blocks[1::2], strict=True)]
    for place, ((number, words), (_, outliers)) in enumerate(pairs, 1):
        name = path.stem if len(pairs) == 1 else f"{path.stem} {place}"
        yield _group(f"{path}:{number}", name, words, outliers)


def _table(path: Path) -> Iterator[Group]:
    """Groups of a table with lists in two of its columns."""
    rows = records(path)
    where, header = next(rows, (f"{path}:1", []))
    if not set(_COLUMNS) <= set(header):
        raise DatasetError(f"{where}: a header with {', '.join(_COLUMNS)} is wanted, and {','.join(header)!r} came.")
    for where, fields in rows:
        if len(fields) != len(header):
            raise DatasetError(f"{where}: {len(header)} fields are wanted, and {len(fields)} came.")
        name, words, outliers = (fields[header.index(column)] for column in _COLUMNS)
        yield _group(where, name, _listed(where, words), _listed(where, outliers))


def _listed(where: str, text: str) -> list[str]:
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        found = None
    if not isinstance(found, list | tuple):
        raise DatasetError(f"{where}: a list of words in brackets is wanted, and {text[:40]!r} came.")
    return [str(word).strip() for word in found if str(word).strip()]


def _group(where: str, name: str, words: list[str], outliers: list[str]) -> Group:
    if len(words) < 2 or not outliers:
        came = f"{len(words)} and {len(outliers)}"
        raise DatasetError(f"{where}: two words or more and an outlier are wanted, and {came} came.")
    return name, words, outliers
