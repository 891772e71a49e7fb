"""An axis from pairs of words (he-she, good-bad), and where words lie on it (Bolukbasi et al. 2016).

With unit vectors, `a` the mean of the left words and `b` of the right, a word is at
`2 (w - (a + b) / 2) · (b - a) / ‖b - a‖²`: -1 is the left end, +1 the right one, 0 is between them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.vectors import WordVectors

Pair = tuple[str, str]


def along(vectors: WordVectors, pairs: Sequence[Pair], words: Sequence[str]) -> NDArray[np.float64]:
    """The places (n,) of words on the axis of some pairs."""
    if not pairs:
        raise UsageError("An axis needs at least one pair of words, and none came; write he-she.")
    left, right = (_unit(vectors[[pair[side] for pair in pairs]]).mean(axis=0) for side in (0, 1))
    axis = right - left
    length = float(axis @ axis)
    if length < 1e-12:
        told = ", ".join("-".join(pair) for pair in pairs)
        raise UsageError(f"Both ends of the axis {told} are one and the same place; give words that differ.")
    middle = (left + right) / 2
    return np.asarray(2 * (_unit(vectors[words]) - middle) @ axis / length)


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    wide = rows.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.asarray(wide / np.where(lengths > 0, lengths, 1))


def paired(words: Sequence[str], name: str) -> list[Pair]:
    """he, she, good, bad → (he, she), (good, bad)."""
    if len(words) % 2:
        raise UsageError(f"The axis {name} is made of pairs, and {len(words)} words came; write he-she, good-bad.")
    return [*zip(words[::2], words[1::2], strict=True)]
