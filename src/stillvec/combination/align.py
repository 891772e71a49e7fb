"""Alignment: every space is mapped onto the first, by a seed dictionary or by identical words.

Orthogonal Procrustes with self-learning (Artetxe et al. 2018) and CSLS retrieval (Conneau et al. 2018); before it each
space may be mapped to another order of similarity (Vulić, Korhonen & Glavaš 2020); after it the directions may be
weighted by the agreement of the two spaces (symmetric re-weighting of VecMap, Artetxe et al. 2018), or the rotation be
replaced by a linear map that RCSLS trains from it (Joulin et al. 2018). Spaces of one multilingual teacher are aligned
already: `mapping=none` only subtracts the mean of each.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.combination.joint_space import Floats, Words, join_spaces, powers
from stillvec.combination.rcsls import minimize_rcsls
from stillvec.combination.rotation import mutual_nearest, procrustes, reweight_directions
from stillvec.errors import LexiconError, UsageError, VocabularyError
from stillvec.lexicons import LEXICONS
from stillvec.numerics import iterate_blocks, principal_axes, second_moments, unit_rows
from stillvec.registry import check_least
from stillvec.vectors import WordVectors

_BLOCK = 1 << 14
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class AlignedSpace:
    """A space and its map `unit(unit(x Q Δ^α) - mean) R`; `R` rotates, unless it weights directions or is RCSLS's."""

    space: WordVectors
    order: Floats  # Q Δ^α (D, D)
    mean: Floats  # (D,)
    rotation: Floats  # R (W, W), W the largest dimension

    def rows(self, rows: Rows) -> Floats:
        """Mapped rows (n, W)."""
        normalized = unit_rows(unit_rows(np.asarray(self.space.matrix[rows], np.float64) @ self.order) - self.mean)
        return np.asarray(np.pad(normalized, ((0, 0), (0, len(self.rotation) - self.space.dim))) @ self.rotation)


@dataclass(frozen=True)
class Align:
    """All words in the first space: rows normalized, centred, normalized again, then rotated.

    A word is the mean of its vectors over the spaces that have it; with `tags`, words are prefixed by the tag of their
    space (`en:gift`, `de:gift`) and never averaged.
    """

    SUMMARY: ClassVar[str] = "its own vector, rotated onto the first space"
    PAPERS: ClassVar[tuple[str, ...]] = ("artetxe-2018-align", "joulin-2018", "vulic-2020")

    dictionary: Path | None = None  # per line, a word of each space; None: identical words
    alphas: tuple[float, ...] = ()  # α per space, order 2α + 1; -0.25,0.15 in the paper; empty: 0
    center: bool = True
    rounds: int = 5  # self-learning rounds with mutual nearest words, while their number grows
    candidates: int = 10_000  # most frequent words per space that may become pairs
    neighbours: int = 10  # of CSLS
    reweight: float = 0.0  # power of the agreement, for two spaces; 0.5 in VecMap; 0: rotation only
    tags: tuple[str, ...] = ()
    words: Words = "union"
    mapping: Literal["procrustes", "rcsls", "none"] = "procrustes"  # rcsls: gradient steps from it; none: only centre
    steps: int = 10  # of RCSLS
    rate: float = 1.0  # learning rate of RCSLS; 1 to 50 in the paper
    spectral: bool = False  # RCSLS: limit the singular values of the map to 1

    def __post_init__(self) -> None:
        check_least(self, rounds=0, candidates=1, neighbours=1, steps=1)
        if not 0 < self.rate < np.inf:
            raise UsageError.expected("a finite number above 0", self.rate, where="rate")
        if self.mapping != "procrustes" and self.reweight:
            raise UsageError.conflict(f"reweight is for rotations, and mapping={self.mapping} is none")
        if not 0 <= self.reweight <= 1:
            raise UsageError.expected("0 to 1", self.reweight, where="reweight")
        if len(set(self.tags)) < len(self.tags):
            raise UsageError.expected("a different tag per space", ",".join(self.tags), where="tags")

    def __call__(self, *spaces: WordVectors) -> WordVectors:
        _check_length("tags", self.tags, len(spaces))
        both = join_spaces([*map(tag_words, spaces, self.tags)] if self.tags else spaces, self.words)
        aligned = self.fit(*spaces)
        matrix = both.empty(max(both.dims))
        for start in range(0, len(matrix), _BLOCK):
            known = both.rows[:, start : start + _BLOCK]  # (S, b)
            for space, rows in zip(aligned, known, strict=True):
                has = np.flatnonzero(rows >= 0)
                matrix[start + has] += space.rows(rows[has]) / (known[:, has] >= 0).sum(0)[:, None]
        return both.vectors(matrix)

    def fit(self, *spaces: WordVectors) -> list[AlignedSpace]:
        """The map of each space onto the first."""
        _check_length("alphas", self.alphas, len(spaces))
        for name in ("dictionary", "reweight"):
            if getattr(self, name) and len(spaces) != 2:
                raise UsageError.expected("two spaces", len(spaces), where=name, cure="align them in pairs")
        width = max(space.dim for space in spaces)
        alphas = self.alphas or (0.0,) * len(spaces)
        first, *others = (self._prepare(*pair, width) for pair in zip(spaces, alphas, strict=True))
        if self.mapping == "none":
            return [first, *others]
        rotated = [self._rotate(first, other) for other in others]
        aligned = [first, *([self._train(first, other) for other in rotated] if self.mapping == "rcsls" else rotated)]
        return self._reweight(*aligned) if self.reweight else aligned

    def _reweight(self, first: AlignedSpace, other: AlignedSpace) -> list[AlignedSpace]:
        """Weight directions by mutual nearest words after the rotation, or by the seed if `rounds` is 0."""
        left, right = self.pairs(first.space, other.space)
        if self.rounds:
            x, z = map(self._candidate_rows, (first, other))
            left, right = mutual_nearest(x, z, self.neighbours)
        maps = reweight_directions(first.rows(left), other.rows(right), self.reweight)
        pairs = zip((first, other), maps, strict=True)
        return [replace(space, rotation=space.rotation @ change) for space, change in pairs]

    def _prepare(self, space: WordVectors, alpha: float, width: int) -> AlignedSpace:
        order = np.eye(space.dim)
        if alpha:
            values, axes = principal_axes(second_moments(space.matrix))
            order = axes * powers(values / max(values[0], np.finfo(np.float64).tiny), alpha)
        plain = AlignedSpace(space, order, np.zeros(space.dim), np.eye(width))
        if not self.center or not len(space):
            return plain
        total = np.zeros(space.dim)
        for _, block in iterate_blocks(space.matrix):
            total += unit_rows(block @ order).sum(0)
        return replace(plain, mean=total / len(space))

    def _rotate(self, first: AlignedSpace, other: AlignedSpace) -> AlignedSpace:
        """Rotate by the seed, then by mutual nearest words, as long as their number grows."""
        left, right = self.pairs(first.space, other.space)
        best = current = replace(other, rotation=procrustes(other.rows(right), first.rows(left)))
        if not self.rounds:
            return best
        target, plain = map(self._candidate_rows, (first, other))
        most = 0
        for _ in range(self.rounds + 1):  # the last round only counts
            left, right = mutual_nearest(target, plain @ current.rotation, self.neighbours)
            if len(left) <= most:
                break
            most, best = len(left), current
            current = replace(other, rotation=procrustes(plain[right], target[left]))
        return best

    def _train(self, first: AlignedSpace, rotated: AlignedSpace) -> AlignedSpace:
        """Replace the rotation by a linear map that RCSLS trains on the seed."""
        left, right = self.pairs(first.space, rotated.space)
        plain = replace(rotated, rotation=np.eye(len(rotated.rotation)))
        pairs = plain.rows(right), first.rows(left)
        candidates = self._candidate_rows(plain), self._candidate_rows(first)
        settings = {"neighbours": self.neighbours, "steps": self.steps}
        map_ = minimize_rcsls(rotated.rotation, pairs, candidates, **settings, rate=self.rate, spectral=self.spectral)
        return replace(rotated, rotation=map_)

    def _candidate_rows(self, space: AlignedSpace) -> Floats:
        return space.rows(np.arange(min(self.candidates, len(space.space))))

    def pairs(self, first: WordVectors, second: WordVectors) -> tuple[Rows, Rows]:
        """The rows of the seed dictionary in both spaces."""
        if self.dictionary is None:
            rows = first.vocabulary.rows_in(second.vocabulary)
            left = np.flatnonzero(rows >= 0)
            if not len(left):
                message = "The spaces have no word in common; give the setting dictionary."
                raise VocabularyError(message, code="no-common-words")
            return left, rows[left]
        edges = LEXICONS["pairs"](self.dictionary)
        rows_of_pairs = [(first.vocabulary.row(edge.left), second.vocabulary.row(edge.right)) for edge in edges]
        known = np.array([pair for pair in rows_of_pairs if None not in pair], np.int64).reshape(-1, 2)
        if not len(known):
            none = f"none of {len(rows_of_pairs)}"
            raise LexiconError.expected("pairs known to both spaces", none, path=self.dictionary)
        return known[:, 0], known[:, 1]


def tag_words(space: WordVectors, tag: str) -> WordVectors:
    """The same vectors, of words with a prefix: `en:gift`."""
    old = space.vocabulary
    words = [f"{tag}:{word}" for word in old.words]
    vocabulary = old.like(words, old.counts.tolist())
    return WordVectors(vocabulary, space.matrix, provenance=space.provenance)


def _check_length(name: str, values: Sequence[object], n_spaces: int) -> None:
    if values and len(values) != n_spaces:
        raise UsageError.expected(f"{n_spaces} {name}, one per space", len(values))
