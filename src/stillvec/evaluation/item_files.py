"""Items of dataset files: texts and what is asked of them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from stillvec.errors import DatasetError
from stillvec.evaluation.tasks import Items
from stillvec.heads.dataset_files import count_fields
from stillvec.lexicons.rated_pairs import parse_ratings


def make_items(
    path: Path, what: str, texts: Sequence[tuple[str, ...]], gold: Sequence[float] = (), sections: Sequence[str] = ()
) -> Items:
    """The items of a file, at least one; without `gold`, all that is asked is true."""
    if not texts:
        raise DatasetError.expected(f"{what} per line", "an empty file", path=path, line=1)
    return Items(tuple(texts), np.array(gold or np.ones(len(texts)), np.float64), tuple(sections))


def parse_scored_pairs(rows: Iterator[tuple[int, list[str]]], path: Path, what: str) -> Items:
    """Items of two texts and a number per row; a first row without a number is a header."""
    pairs = [*parse_ratings(_require_three(rows, path, what), path, what, DatasetError)]
    return make_items(path, what, [pair[:2] for pair in pairs], [rating for *_, rating in pairs])


def _require_three(rows: Iterator[tuple[int, list[str]]], path: Path, what: str) -> Iterator[tuple[int, list[str]]]:
    for line, fields in rows:
        if len(fields) != 3 or not all(fields):
            raise DatasetError.expected(what, count_fields(fields), path=path, line=line)
        yield line, fields
