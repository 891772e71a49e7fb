"""The words of several spaces laid side by side, and their rows a block at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError, VocabularyError
from stillvec.numerics import raise_to_power, unit_rows
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

Words = Literal["union", "intersection"]
Floats = NDArray[np.float64]
_OF_EACH = ("method", "settings", "teacher", "corpus", "refined", "combined")  # provenance that is kept of a space
_BLOCK = 1 << 14  # words at a time: spaces of millions of rows are never copied whole


@dataclass(frozen=True)
class Joined:
    """Which row of each space a word has."""

    vocabulary: Vocabulary
    spaces: tuple[WordVectors, ...]
    rows: NDArray[np.int64]  # (S, n), -1 where a space lacks the word

    @property
    def dims(self) -> tuple[int, ...]:
        return tuple(space.dim for space in self.spaces)

    def blocks(self, *, unit: bool = True) -> Iterator[tuple[slice, list[Floats], NDArray[np.bool_]]]:
        """Some words, their rows in each space (b, D_s), zero where it lacks them, and which space has them (S, b)."""
        for start in range(0, len(self.vocabulary), _BLOCK):
            some = slice(start, min(start + _BLOCK, len(self.vocabulary)))
            taken = self.rows[:, some]
            parts = [_taken(space, rows, unit) for space, rows in zip(self.spaces, taken, strict=True)]
            yield some, parts, taken >= 0

    def vectors(self, matrix: NDArray[Any]) -> WordVectors:
        """The combined vectors; their provenance says what each space was."""
        common = int((self.rows >= 0).all(0).sum())
        history = {"combined": [*map(describe_space, self.spaces)], "common_words": common}
        return WordVectors(self.vocabulary, matrix, provenance=history)

    def empty(self, dim: int) -> NDArray[np.float32]:
        """Where the result of `dim` numbers a word goes."""
        return np.zeros((len(self.vocabulary), dim), np.float32)


def describe_space(space: WordVectors) -> dict[str, Any]:
    """The size of a space and how it was made, for the provenance of what it is combined into."""
    history = {key: space.provenance[key] for key in _OF_EACH if key in space.provenance}
    return {"words": len(space), "dim": space.dim} | history


def joined(spaces: Sequence[WordVectors], words: Words) -> Joined:
    """All words of the spaces, or those that all of them have.

    In order of frequency, and where counts are alike or not known in the order of the first space that has the word, as
    foreign files are in order of frequency and do not say it. A count is the largest of the counts: spaces are mostly
    combined that learnt from one corpus, and their sum would count it twice.
    """
    if len(spaces) < 2:
        raise UsageError(f"Two sets of vectors or more are combined, and {len(spaces)} came.")
    counts = dict(zip(spaces[0].words, spaces[0].vocabulary.counts.tolist(), strict=True))
    for space in spaces[1:]:
        for word, count in zip(space.words, space.vocabulary.counts.tolist(), strict=True):
            if counts.setdefault(word, count) < count:
                counts[word] = count
    if words == "intersection":
        shared = set(spaces[0].words).intersection(*(space.words for space in spaces[1:]))
        counts = {word: count for word, count in counts.items() if word in shared}
    if not counts:
        raise VocabularyError(f"The {len(spaces)} sets of vectors have no word in common; are they of one language?")
    chosen = sorted(counts, key=lambda word: -counts[word])
    lowercase = all(space.vocabulary.lowercase for space in spaces)
    vocabulary = Vocabulary(chosen, [counts[word] for word in chosen], lowercase=lowercase)
    return Joined(vocabulary, tuple(spaces), np.stack([vocabulary.rows_in(space.vocabulary) for space in spaces]))


def powers(values: Floats, exponent: float) -> Floats:
    """Each value to a power; 0 for those that are nothing but rounding."""
    least = 1e-12 * values.max(initial=np.finfo(np.float64).tiny)
    return raise_to_power(np.where(values > least, values, 0), exponent)


def checked_weights(weights: tuple[float, ...], spaces: int) -> tuple[float, ...]:
    """A weight a space; none given: all are 1."""
    if weights and len(weights) != spaces:
        raise UsageError(f"{spaces} sets of vectors take {spaces} weights, and {len(weights)} came.")
    if any(weight < 0 for weight in weights) or (weights and not any(weights)):
        raise UsageError(f"Weights are 0 or more, and not all 0; {', '.join(map(str, weights))} came.")
    return weights or (1.0,) * spaces


def checked_dim(dim: int | None, dims: Sequence[int]) -> int:
    """The dimensions asked for, or as many as the widest space has."""
    if dim is None:
        return max(dims)
    if not 1 <= dim <= sum(dims):
        raise UsageError(f"Spaces of {sum(dims)} dimensions together cannot give {dim}; give 1 to {sum(dims)}.")
    return dim


def _taken(space: WordVectors, rows: NDArray[np.int64], unit: bool) -> Floats:
    taken = np.zeros((len(rows), space.dim))
    has = rows >= 0
    taken[has] = space.matrix[rows[has]]
    return unit_rows(taken) if unit else taken
