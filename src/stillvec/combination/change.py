"""Semantic change: how far each word moved between two aligned spaces of one language (Hamilton et al. 2016).

How far words move by chance depends on their frequency and is estimated on controls: pairs of spaces between which
nothing changed, such as two halves of one corpus (Dubossarsky et al. 2017).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import false_discovery_control

from stillvec.combination.align import Align
from stillvec.combination.joint_space import Floats
from stillvec.combination.rotation import procrustes
from stillvec.errors import VocabularyError
from stillvec.registry import check_least
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Moves:
    """Words and how far they moved, the farthest first."""

    words: tuple[str, ...]
    moved: Floats  # (n,) 1 - cosine between before and after
    low: Floats  # (n,) 95% interval: bootstrap over the words used for alignment
    high: Floats
    p: Floats  # (n,) share of words of similar frequency that move as far in the controls
    q: Floats  # (n,) false discovery rate (Benjamini & Hochberg 1995)


@dataclass(frozen=True)
class Change:
    """`moved = 1 - cos(R x_before, x_after)`, `R` by Procrustes over all common words, rows centred.

    Without controls, `p` is the rank of a word among words of similar frequency, and `q` is not informative. The
    smallest possible `p` is one in `band` times the number of controls.
    """

    most: int = 100_000  # common words used, by frequency in the first
    resamples: int = 100
    band: int = 1000  # words of similar frequency that estimate chance
    seed: int = 0

    def __post_init__(self) -> None:
        check_least(self, most=2, resamples=0, band=1, seed=0)

    def __call__(
        self, before: WordVectors, after: WordVectors, controls: Sequence[tuple[WordVectors, WordVectors]] = ()
    ) -> Moves:
        words, x, z = self._align(before, after)
        moved = _distances(x, z)
        low, high = self._interval(x, z, moved)
        p = self._chance(moved, [_distances(*self._align(*pair)[1:]) for pair in controls] or [moved])
        order = np.lexsort((np.arange(len(words)), -moved))
        columns = (column[order] for column in (moved, low, high, p, np.asarray(false_discovery_control(p))))
        return Moves(tuple(words[row] for row in order.tolist()), *columns)

    def _align(self, before: WordVectors, after: WordVectors) -> tuple[list[str], Floats, Floats]:
        """The common words, most frequent first, and their rows in one space (n, W)."""
        common = [word for word in before.words if word in after.vocabulary.index][: self.most]
        if len(common) < 2:
            raise VocabularyError.expected("at least two common words", len(common), code="no-common-words")
        pair = before.subset(common), after.subset(common)
        x, z = (space.rows(np.arange(len(common))) for space in Align(rounds=0).fit(*pair))
        return common, x, z

    def _interval(self, x: Floats, z: Floats, moved: Floats) -> tuple[Floats, Floats]:
        if not self.resamples:
            return moved, moved
        random = np.random.default_rng(self.seed)
        x, z = x.astype(np.float32), z.astype(np.float32)  # sufficient for an interval
        resampled = np.empty((self.resamples, len(x)), np.float32)
        for row in resampled:
            times = np.bincount(random.integers(0, len(x), len(x)), minlength=len(x)).astype(np.float32)
            row[:] = 1 - ((z @ procrustes(z, x, times)) * x).sum(1)
        low, high = np.percentile(resampled, [2.5, 97.5], axis=0)
        return np.minimum(low, moved), np.maximum(high, moved)

    def _chance(self, moved: Floats, controls: Sequence[Floats]) -> Floats:
        """Share of moves at least as large, among words of about the same frequency rank."""
        p = np.ones(len(moved))
        for number, mine in enumerate(moved):
            bands = [_band(moves, number / len(moved), self.band) for moves in controls]
            farther = sum(int((band >= mine).sum()) for band in bands)
            own = controls[0] is moved  # the band of a word includes the word itself
            p[number] = (farther + (not own)) / (sum(map(len, bands)) + (not own))
        return p


def _distances(x: Floats, z: Floats) -> Floats:
    return np.asarray(1 - (x * z).sum(1))


def _band(moves: Floats, place: float, width: int) -> Floats:
    """The `width` moves around a relative frequency rank (0 to 1)."""
    width = min(width, len(moves))
    start = int(np.clip(round(place * len(moves)) - width // 2, 0, len(moves) - width))
    return moves[start : start + width]
