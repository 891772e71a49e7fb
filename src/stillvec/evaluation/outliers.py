"""Outlier detection: which word does not belong with the others? (Camacho-Collados & Navigli 2016.)

The compactness of a word is the mean of its cosines with the other words of the group and one outlier. OP is the
number of group words that are more compact than the outlier; ties count against the outlier. `accuracy` is the share of
outliers with OP = group size, `opp` the mean of OP / group size. Interval: Wilson for accuracy, percentile bootstrap
over outliers for OPP; outliers of one group are not independent, so these intervals are too narrow.

Files: `outliers/*.txt` with the words of a group, an empty line, its outliers, one word per line, and an empty line
before the next group; folders `outliers/NAME/` with one group per file, as 8-8-8 is distributed; `outliers/*.csv` with
the columns category, words, outliers, the last two lists in brackets, as in word-benchmarks. An item is a group with
one of its outliers, and is covered if all its words are.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stillvec.errors import DatasetError
from stillvec.evaluation.item_files import make_items
from stillvec.evaluation.tasks import Answers, Items, Task
from stillvec.files import inner_suffix
from stillvec.files.path_names import files_in
from stillvec.heads.dataset_files import read_blocks, read_table
from stillvec.heads.lookup import Lookup
from stillvec.numerics import unit_rows

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
        items = [(name, (*words, outlier)) for name, words, outliers in groups for outlier in outliers]
        return make_items(path, "one word", [texts for _, texts in items], sections=[name for name, _ in items])

    def answer(self, lookup: Lookup, items: Items) -> Answers:
        rows = [lookup.rows(words) for words in items.texts]
        covered = np.array([bool((words >= 0).all()) for words in rows])
        share = np.zeros(len(items))
        for at in lookup.select(covered):
            points = unit_rows(lookup.take(rows[at])).astype(np.float64)
            cosines = (points @ points.T).round(12)
            np.fill_diagonal(cosines, 0)
            sums = cosines.sum(axis=1)
            share[at] = (sums[:-1] > sums[-1] + 1e-9).mean()
        return Answers(covered, {"accuracy": share == 1, "opp": share})


def _blocks(path: Path) -> Iterator[Group]:
    """Groups of a file in which empty lines separate words from outliers."""
    blocks = [(block[0][0], [line.strip() for _, line in block]) for block in read_blocks(path)]
    if len(blocks) % 2:
        what = "an empty line and outliers after these words"
        raise DatasetError.expected(what, "the end", path=path, line=blocks[-1][0])
    pairs = [*zip(blocks[::2], blocks[1::2], strict=True)]
    for place, ((number, words), (_, outliers)) in enumerate(pairs, 1):
        name = path.stem if len(pairs) == 1 else f"{path.stem} {place}"
        yield _group((path, number), name, words, outliers)


def _table(path: Path) -> Iterator[Group]:
    """Groups of a table with lists in two of the columns."""
    for line, row in read_table(path, ("category", "words", "outliers")):
        words, outliers = (_parse_list((path, line), row[column]) for column in ("words", "outliers"))
        yield _group((path, line), row["category"], words, outliers)


def _parse_list(where: tuple[Path, int], text: str) -> list[str]:
    try:
        words = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        words = None
    if not isinstance(words, list | tuple):
        raise DatasetError.expected("a list of words in brackets", repr(text[:40]), path=where[0], line=where[1])
    return [str(word).strip() for word in words if str(word).strip()]


def _group(where: tuple[Path, int], name: str, words: list[str], outliers: list[str]) -> Group:
    if len(words) < 2 or not outliers:
        got = f"{len(words)} and {len(outliers)}"
        raise DatasetError.expected("at least two words and one outlier", got, path=where[0], line=where[1])
    return name, words, outliers
