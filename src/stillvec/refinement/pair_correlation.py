"""Development pairs of known words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.lexicons import read_rated_pairs
from stillvec.vocabulary import Vocabulary

Array = NDArray[Any]


@dataclass(frozen=True)
class RatedPairs:
    """The pairs of one file whose words are known."""

    left: Array  # rows (n,)
    right: Array  # rows (n,)
    gold: Array  # human ratings (n,)


def read_known_pairs(vocabulary: Vocabulary, places: Sequence[str], least: int) -> list[RatedPairs]:
    """The pairs of each file that has at least `least` pairs of known words; `places` are files or folders."""
    usable, row = [], vocabulary.row
    for file in [file for place in places for file in read_rated_pairs(place).values()]:
        known = [(a, b, s) for x, y, s in file if (a := row(x)) is not None and (b := row(y)) is not None]
        if len(known) >= least:
            usable.append(RatedPairs(*(np.array(column) for column in zip(*known, strict=True))))
    if not usable:
        where = f"pairs {', '.join(places)}"
        raise UsageError.expected(f"a file with {least} pairs of known words", "fewer", where=where)
    return usable
