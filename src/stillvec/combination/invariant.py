"""Several languages of one teacher in one space, in which a network cannot tell them apart (Lange et al. 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from stillvec.combination.align import tag_words
from stillvec.combination.joint_space import Floats, Words, join_spaces
from stillvec.errors import UsageError
from stillvec.numerics import unit_rows
from stillvec.registry import check_least, check_positive
from stillvec.vectors import WordVectors

_SPREAD = 0.3  # root mean square of the numbers that the map reads, so that tanh is not far from linear
_BETAS, _EPSILON = (0.9, 0.999), 1e-8  # Adam


class Parameters(NamedTuple):
    map: Floats  # A (d, d): F(x) = tanh(x + x A)
    back: Floats  # B (d, d): F(x) + F(x) B is to be x again
    first: Floats  # (d, hidden) of the network that tells spaces
    first_bias: Floats
    second: Floats  # (hidden, S)
    second_bias: Floats


@dataclass(frozen=True)
class InvariantMap:
    """`F(x) = tanh(x + x A)`, from which x can be computed again, but not told of which space x is.

    A network that tells spaces is trained along, and its gradient is reversed before A (Ganin & Lempitsky 2015). The
    spaces are of one teacher; those of fewer dimensions are padded with zeros. Compare with `align:mapping=none`, which
    only subtracts the mean of each space, and often suffices. A word is the mean over the spaces that have it; `tags`
    as for `align`.
    """

    SUMMARY: ClassVar[str] = "its own vector, by a map from which its language cannot be told"
    PAPERS: ClassVar[tuple[str, ...]] = ("lange-2020-temporal",)

    weight: float = 0.1  # of the reversed gradient; 0: the map only keeps the vectors
    hidden: int = 100  # units of the network that tells spaces
    steps: int = 500
    batch: int = 128  # words of each space per step
    rate: float = 3e-3  # of Adam, falls to a tenth of it
    seed: int = 0
    tags: tuple[str, ...] = ()
    words: Words = "union"

    def __post_init__(self) -> None:
        check_least(self, weight=0, hidden=1, steps=1, batch=1, seed=0)
        check_positive(self, "rate")

    def __call__(self, *spaces: WordVectors) -> WordVectors:
        if self.tags and len(self.tags) != len(spaces):
            raise UsageError.expected(f"{len(spaces)} tags, one per space", len(self.tags), where="tags")
        both = join_spaces([*map(tag_words, spaces, self.tags)] if self.tags else spaces, self.words)
        learnt, width = self.fit(spaces), max(both.dims)
        matrix = both.empty(width)
        for rows, parts, has in both.blocks():
            mapped = [
                map_rows(_widen(part, width), learnt) * known[:, None] for part, known in zip(parts, has, strict=True)
            ]
            matrix[rows] = np.sum(mapped, axis=0) / np.maximum(has.sum(axis=0), 1)[:, None]
        return both.vectors(matrix)

    def fit(self, spaces: Sequence[WordVectors]) -> Parameters:
        """Train on words that are drawn evenly from all spaces."""
        random, dim = np.random.default_rng(self.seed), max(space.dim for space in spaces)
        sizes = [(dim, self.hidden), (self.hidden, len(spaces))]
        weights = [random.uniform(-1, 1, size) * size[0] ** -0.5 for size in sizes]
        learnt = Parameters(
            np.zeros((dim, dim)), np.zeros((dim, dim)), weights[0], np.zeros(self.hidden), weights[1],
            np.zeros(len(spaces)),
        )  # fmt: skip
        moments = [[np.zeros_like(part) for part in learnt] for _ in _BETAS]
        label = np.repeat(np.arange(len(spaces)), self.batch)
        for step in range(1, self.steps + 1):
            drawn = [_widen(space.matrix[random.integers(len(space), size=self.batch)], dim) for space in spaces]
            x = scale_rows(np.concatenate(drawn))
            rate = self.rate * (1 - 0.9 * step / self.steps)
            for part, gradient, first, second in zip(learnt, self.gradients(learnt, x, label), *moments, strict=True):
                first += (1 - _BETAS[0]) * (gradient - first)
                second += (1 - _BETAS[1]) * (gradient**2 - second)
                unbiased = [moment / (1 - beta**step) for moment, beta in zip((first, second), _BETAS, strict=True)]
                part -= rate * unbiased[0] / (np.sqrt(unbiased[1]) + _EPSILON)
        return learnt

    def gradients(self, learnt: Parameters, x: Floats, label: np.ndarray) -> Parameters:
        """Of the mean squared error of x, and of the cross entropy of spaces, which is reversed for A."""
        n = len(x)
        mapped = np.tanh(x + x @ learnt.map)
        wrong = mapped + mapped @ learnt.back - x
        hidden = np.maximum(mapped @ learnt.first + learnt.first_bias, 0)
        scores = hidden @ learnt.second + learnt.second_bias
        likely = np.exp(scores - scores.max(axis=1, keepdims=True))
        said = likely / likely.sum(axis=1, keepdims=True)
        said[np.arange(n), label] -= 1
        said /= n
        of_hidden = said @ learnt.second.T * (hidden > 0)
        by_back = 2 / n * (wrong + wrong @ learnt.back.T)
        of_mapped = by_back - self.weight * (of_hidden @ learnt.first.T)
        return Parameters(
            x.T @ (of_mapped * (1 - mapped**2)), 2 / n * mapped.T @ wrong, mapped.T @ of_hidden, of_hidden.sum(axis=0),
            hidden.T @ said, said.sum(axis=0),
        )  # fmt: skip


def scale_rows(rows: Floats) -> Floats:
    """Rows of one length, so that their numbers have a mean square that suits tanh."""
    return np.asarray(unit_rows(np.asarray(rows, np.float64)) * _SPREAD * np.sqrt(rows.shape[1]))


def _widen(rows: Floats, width: int) -> Floats:
    return np.asarray(np.pad(rows, ((0, 0), (0, width - rows.shape[1]))))


def map_rows(rows: Floats, learnt: Parameters) -> Floats:
    """F(x) of rows (n, d)."""
    x = scale_rows(rows)
    return np.asarray(np.tanh(x + x @ learnt.map))
