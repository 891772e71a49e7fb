"""An axis from pairs of words (he-she, good-bad), and the coordinates of words on it (Bolukbasi et al. 2016).

With unit vectors, `a` the mean of the left words and `b` that of the right ones, the coordinate of a word `w` is
`2 (w - (a + b) / 2) · (b - a) / ‖b - a‖²`: -1 at the left end, +1 at the right end, 0 between them.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.numerics import unit_rows
from stillvec.vectors import WordVectors

Pair = tuple[str, str]


def project_words(vectors: WordVectors, pairs: Sequence[Pair], words: Sequence[str]) -> NDArray[np.float64]:
    """The coordinates (n,) of words on the axis through the means of some pairs."""
    if not pairs:
        raise UsageError.expected("at least one pair of words such as he-she", "none", where="axis")
    left, right = (unit_rows(vectors[[pair[side] for pair in pairs]], np.float64).mean(axis=0) for side in (0, 1))
    axis = right - left
    length = float(axis @ axis)
    if length < 1e-12:
        name = ", ".join("-".join(pair) for pair in pairs)
        raise UsageError.conflict(f"Both ends of the axis {name} have the same vector", cure="use different words")
    middle = (left + right) / 2
    return np.asarray(2 * (unit_rows(vectors[words], np.float64) - middle) @ axis / length)


def pair_words(words: Sequence[str], name: str) -> list[Pair]:
    """he, she, good, bad → (he, she), (good, bad)."""
    if len(words) % 2:
        raise UsageError.expected("pairs such as he-she, good-bad", f"{len(words)} words", where=f"axis {name}")
    return [*zip(words[::2], words[1::2], strict=True)]
