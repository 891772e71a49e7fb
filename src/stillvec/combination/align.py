"""Alignment: every space turned onto the first, from a seed dictionary or the words they write alike.

Orthogonal Procrustes with self-learning (Artetxe et al. 2018) and CSLS retrieval (Conneau et al. 2018); before it each
space may be changed to another order of similarity (Vulić, Korhonen & Glavaš 2020), and after it the directions may be
weighted by how far the two spaces agree on them (VecMap's symmetric re-weighting, Artetxe et al. 2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.combination.joint_space import Floats, Words, joined, powers
from stillvec.combination.rotation import mutual_nearest, procrustes, reweighted
from stillvec.errors import LexiconError, UsageError, VocabularyError
from stillvec.lexicons import LEXICONS
from stillvec.numerics import iterate_blocks, principal_axes, second_moments, unit_rows
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

_BLOCK = 1 << 14
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Turned:
    """A space, and what is done with its rows: `unit(unit(x Q Δ^α) - mean) R`; `R` turns, and may weight directions."""

    space: WordVectors
    order: Floats  # Q Δ^α (D, D)
    mean: Floats  # (D,)
    rotation: Floats  # R (W, W), W the widest space's dimensions

    def rows(self, rows: Rows) -> Floats:
        """(n, W)."""
        changed = unit_rows(unit_rows(np.asarray(self.space.matrix[rows], np.float64) @ self.order) - self.mean)
        return np.asarray(np.pad(changed, ((0, 0), (0, len(self.rotation) - self.space.dim))) @ self.rotation)


@dataclass(frozen=True)
class Align:
    """All words in the first space: rows at length one, centred, at length one again, then turned.

    A word that several spaces have is the mean of what they say, and one that a space lacks the mean of the others;
    with `tags` each word is written with its space's tag (`en:gift`, `de:gift`), and no two fall together.
    """

    SUMMARY: ClassVar[str] = "its own vector, rotated onto the first space"
    PAPERS: ClassVar[tuple[str, ...]] = ("artetxe-2018-align", "vulic-2020")

    dictionary: Path | None = None  # a word of the first and a word of the second a line; none: words written alike
    alphas: tuple[float, ...] = ()  # α of each space, of order 2α + 1; the paper's are -0.25,0.15; none: 0
    center: bool = True
    rounds: int = 5  # of taking each other's nearest words for the dictionary, as long as they grow more
    candidates: int = 10_000  # most frequent words of each space that may become its pairs
    neighbours: int = 10  # of CSLS
    reweight: float = 0.0  # power of the agreement, of two spaces; VecMap's is 0.5; 0: rotations only
    tags: tuple[str, ...] = ()
    words: Words = "union"

    def __post_init__(self) -> None:
        for name, least in (("rounds", 0), ("candidates", 1), ("neighbours", 1)):
            if getattr(self, name) < least:
                raise UsageError(f"The setting {name} is at least {least}, and {getattr(self, name)} came.")
        if not 0 <= self.reweight <= 1:
            raise UsageError(f"The power of re-weighting is 0 to 1, and {self.reweight} came.")
        if len(set(self.tags)) < len(self.tags):
            raise UsageError(f"Each space has a tag of its own, and {','.join(self.tags)} came.")

    def __call__(self, *spaces: WordVectors) -> WordVectors:
        written = spaces
        if self.tags:
            _check_length("tags", self.tags, len(spaces))
            written = tuple(_tagged(*each) for each in zip(spaces, self.tags, strict=True))
        both = joined(written, self.words)
        turned = self.fit(*spaces)
        matrix = both.empty(max(both.dims))
        for start in range(0, len(matrix), _BLOCK):
            known = both.rows[:, start : start + _BLOCK]  # (S, b)
            for each, rows in zip(turned, known, strict=True):
                has = np.flatnonzero(rows >= 0)
                matrix[start + has] += each.rows(rows[has]) / (known[:, has] >= 0).sum(0)[:, None]
        return both.vectors(matrix)

    def fit(self, *spaces: WordVectors) -> list[Turned]:
        """How each space is turned onto the first."""
        if self.alphas:
            _check_length("alphas", self.alphas, len(spaces))
        if self.dictionary is not None and len(spaces) != 2:
            raise UsageError(f"A dictionary is of two spaces, and {len(spaces)} came; align them two by two.")
        if self.reweight and len(spaces) != 2:
            raise UsageError(f"Two spaces are re-weighted, and {len(spaces)} came; align them two by two.")
        wider = max(space.dim for space in spaces)
        alphas = self.alphas or (0.0,) * len(spaces)
        first, *others = (self._prepared(*each, wider) for each in zip(spaces, alphas, strict=True))
        turned = [first, *(self._onto(first, other) for other in others)]
        return self._reweighted(turned[0], turned[1]) if self.reweight else turned

    def _reweighted(self, first: Turned, other: Turned) -> list[Turned]:
        """By the words that are each other's nearest once the other is turned, or by the seed where none are grown."""
        left, right = self.pairs(first.space, other.space)
        if self.rounds:
            x, z = (each.rows(np.arange(min(self.candidates, len(each.space)))) for each in (first, other))
            left, right = mutual_nearest(x, z, self.neighbours)
        maps = reweighted(first.rows(left), other.rows(right), self.reweight)
        both = zip((first, other), maps, strict=True)
        return [replace(each, rotation=each.rotation @ change) for each, change in both]

    def _prepared(self, space: WordVectors, alpha: float, wider: int) -> Turned:
        order = np.eye(space.dim)
        if alpha:
            values, axes = principal_axes(second_moments(space.matrix))
            order = axes * powers(values / max(values[0], np.finfo(np.float64).tiny), alpha)
        plain = Turned(space, order, np.zeros(space.dim), np.eye(wider))
        if not self.center or not len(space):
            return plain
        total = np.zeros(space.dim)
        for _, block in iterate_blocks(space.matrix):
            total += unit_rows(block @ order).sum(0)
        return replace(plain, mean=total / len(space))

    def _onto(self, first: Turned, other: Turned) -> Turned:
        """Turned on the seed; then on each other's nearest words, as long as there come to be more of them."""
        left, right = self.pairs(first.space, other.space)
        found = turned = replace(other, rotation=procrustes(other.rows(right), first.rows(left)))
        if not self.rounds:
            return found
        target, plain = (each.rows(np.arange(min(self.candidates, len(each.space)))) for each in (first, other))
        most = 0
        for _ in range(self.rounds + 1):  # the last one only counts
            left, right = mutual_nearest(target, plain @ turned.rotation, self.neighbours)
            if len(left) <= most:
                break
            most, found = len(left), turned
            turned = replace(other, rotation=procrustes(plain[right], target[left]))
        return found

    def pairs(self, first: WordVectors, second: WordVectors) -> tuple[Rows, Rows]:
        """The rows of the seed dictionary in both spaces."""
        if self.dictionary is None:
            rows = first.vocabulary.rows_in(second.vocabulary)
            left = np.flatnonzero(rows >= 0)
            if not len(left):
                raise VocabularyError("The spaces write no word alike; give the setting dictionary.")
            return left, rows[left]
        edges = LEXICONS["pairs"](self.dictionary)
        found = [(first.vocabulary.row(edge.left), second.vocabulary.row(edge.right)) for edge in edges]
        known = np.array([pair for pair in found if None not in pair], np.int64).reshape(-1, 2)
        if not len(known):
            raise LexiconError(f"None of the {len(found)} pairs in {self.dictionary} is known to both spaces.")
        return known[:, 0], known[:, 1]


def _tagged(space: WordVectors, tag: str) -> WordVectors:
    old = space.vocabulary
    words = [f"{tag}:{word}" for word in old.words]
    vocabulary = Vocabulary(words, old.counts.tolist(), lowercase=old.lowercase)
    return WordVectors(vocabulary, space.matrix, provenance=space.provenance)


def _check_length(name: str, given: Sequence[object], spaces: int) -> None:
    if len(given) != spaces:
        raise UsageError(f"{spaces} spaces take {spaces} {name}, and {len(given)} came.")
