"""Development pairs as rows of a table, and how well cosines order them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.lexicons import read_rated_pairs
from stillvec.vocabulary import Vocabulary

Array = NDArray[Any]


class RatedPairs(NamedTuple):
    """One file of pairs, as far as the words are known."""

    left: Array  # rows (n,)
    right: Array  # rows (n,)
    gold: Array  # what people said (n,)


def known_pairs(vocabulary: Vocabulary, places: Sequence[str], least: int) -> list[RatedPairs]:
    """The files, or files of folders, that have at least so many pairs of known words."""
    found, row = [], vocabulary.row
    for file in [file for place in places for file in read_rated_pairs(place).values()]:
        known = [(a, b, s) for x, y, s in file if (a := row(x)) is not None and (b := row(y)) is not None]
        if len(known) >= least:
            found.append(RatedPairs(*(np.array(column) for column in zip(*known, strict=True))))
    if not found:
        raise UsageError(
            f"To choose, a file with {least} pairs of known words is wanted, and none of {', '.join(places)} has so "
            "many; give other pairs."
        )
    return found
