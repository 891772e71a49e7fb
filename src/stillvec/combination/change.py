"""Semantic change: two spaces of one language aligned, and how far each word moved (Hamilton et al. 2016).

How far words move by chance depends on how often they were seen, and can only be learnt where nothing changed: from
spaces of two halves of one corpus, say (Dubossarsky et al. 2017). Such pairs are the controls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import false_discovery_control

from stillvec.combination.align import Align
from stillvec.combination.joint_space import Floats
from stillvec.combination.rotation import procrustes
from stillvec.errors import UsageError, VocabularyError
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Moves:
    """Words and how far they moved, the farthest first."""

    words: tuple[str, ...]
    moved: Floats  # (n,) 1 - cosine between before and after
    low: Floats  # (n,) 95% interval: the words that the spaces are aligned by, drawn again
    high: Floats
    p: Floats  # (n,) the share of words about as frequent that move as far where nothing changed
    q: Floats  # (n,) the share of false finds if all words down to this p are taken (Benjamini & Hochberg 1995)


@dataclass(frozen=True)
class Change:
    """`moved = 1 - cos(R x_before, x_after)`, `R` by Procrustes over all words of both, rows centred.

    Without controls the other words of the comparison stand in for them: `p` is then a word's place among words about
    as frequent, and `q` finds nothing. No `p` is below one in `band` times the controls: more controls see finer.
    """

    most: int = 100_000  # words of both that are looked at, by frequency in the first
    resamples: int = 100
    band: int = 1000  # words about as frequent as a word that say how far words move by chance
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("most", 2), ("resamples", 0), ("band", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise UsageError(f"The setting {name} is at least {least}, and {getattr(self, name)} came.")

    def __call__(
        self, before: WordVectors, after: WordVectors, controls: Sequence[tuple[WordVectors, WordVectors]] = ()
    ) -> Moves:
        words, x, z = self._aligned(before, after)
        moved = 1 - (x * z).sum(1)
        low, high = self._interval(x, z, moved)
        p = self._chance(moved, [self._moves(*pair) for pair in controls] or [moved])
        order = np.lexsort((np.arange(len(words)), -moved))
        columns = (each[order] for each in (moved, low, high, p, np.asarray(false_discovery_control(p))))
        return Moves(tuple(words[row] for row in order.tolist()), *columns)

    def _aligned(self, before: WordVectors, after: WordVectors) -> tuple[list[str], Floats, Floats]:
        """Words of both, the most frequent first, and their rows in one space (n, W)."""
        common = [word for word in before.words if word in after.vocabulary.index][: self.most]
        if len(common) < 2:
            raise VocabularyError(
                f"The two sets of vectors have {len(common)} words in common; nothing can be compared."
            )
        pair = before.subset(common), after.subset(common)
        every = np.arange(len(common))
        x, z = (each.rows(every) for each in Align(rounds=0).fit(*pair))
        return common, x, z

    def _moves(self, before: WordVectors, after: WordVectors) -> Floats:
        _, x, z = self._aligned(before, after)
        return np.asarray(1 - (x * z).sum(1))

    def _interval(self, x: Floats, z: Floats, moved: Floats) -> tuple[Floats, Floats]:
        if not self.resamples:
            return moved, moved
        random = np.random.default_rng(self.seed)
        x, z = x.astype(np.float32), z.astype(np.float32)  # half the time, and an interval needs no more
        drawn = np.empty((self.resamples, len(x)), np.float32)
        for row in drawn:
            often = np.bincount(random.integers(0, len(x), len(x)), minlength=len(x)).astype(np.float32)
            row[:] = 1 - ((z @ procrustes(z, x, often)) * x).sum(1)
        low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
        return np.minimum(low, moved), np.maximum(high, moved)

    def _chance(self, moved: Floats, controls: Sequence[Floats]) -> Floats:
        """The share of moves at least as far, among the words at about the same place in the order of frequency."""
        p = np.ones(len(moved))
        for number, mine in enumerate(moved):
            alike = [_band(each, number / len(moved), self.band) for each in controls]
            farther = sum(int((each >= mine).sum()) for each in alike)
            own = controls[0] is moved  # a word is among those about as frequent as itself
            p[number] = (farther + (not own)) / (sum(map(len, alike)) + (not own))
        return p


def _band(moves: Floats, place: float, width: int) -> Floats:
    """The `width` moves around a place (0 to 1) in the order of frequency."""
    width = min(width, len(moves))
    start = int(np.clip(round(place * len(moves)) - width // 2, 0, len(moves) - width))
    return moves[start : start + width]
