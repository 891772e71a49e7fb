"""The words of several spaces laid side by side, and their rows a block at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError, VocabularyError
from stillvec.numerics import raise_to_power, unit_rows
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary
from stillvec.vocabulary.segmenters import join_segmenters

Words = Literal["union", "intersection"]
Floats = NDArray[np.float64]
_OF_EACH = ("method", "settings", "teacher", "corpus", "refined", "combined")  # keys of the provenance of a space
_BLOCK = 1 << 14  # words per block, so that no matrix is copied whole


@dataclass(frozen=True)
class JointSpace:
    """The rows of each word in several spaces."""

    vocabulary: Vocabulary
    spaces: tuple[WordVectors, ...]
    rows: NDArray[np.int64]  # (S, n), -1 where a space lacks the word

    @property
    def dims(self) -> tuple[int, ...]:
        return tuple(space.dim for space in self.spaces)

    def blocks(self, *, unit: bool = True) -> Iterator[tuple[slice, list[Floats], NDArray[np.bool_]]]:
        """Yield words, their rows per space (b, D_s), zero where missing, and a mask of the known ones (S, b)."""
        for start in range(0, len(self.vocabulary), _BLOCK):
            block = slice(start, min(start + _BLOCK, len(self.vocabulary)))
            has, parts = self.rows[:, block] >= 0, []
            for space, rows, known in zip(self.spaces, self.rows[:, block], has, strict=True):
                part = np.zeros((len(rows), space.dim))
                part[known] = space.matrix[rows[known]]
                parts.append(unit_rows(part) if unit else part)
            yield block, parts, has

    def vectors(self, matrix: NDArray[Any]) -> WordVectors:
        """The combined vectors; their provenance describes each space."""
        combined = []
        for space in self.spaces:
            history = {key: space.provenance[key] for key in _OF_EACH if key in space.provenance}
            combined.append({"words": len(space), "dim": space.dim} | history)
        facts = {"combined": combined, "common_words": int((self.rows >= 0).all(0).sum())}
        return WordVectors(self.vocabulary, matrix, provenance=facts)

    def empty(self, dim: int) -> NDArray[np.float32]:
        """A matrix of zeros for the result (n, dim)."""
        return np.zeros((len(self.vocabulary), dim), np.float32)


def join_spaces(spaces: Sequence[WordVectors], words: Words) -> JointSpace:
    """The union or intersection of the vocabularies, by frequency, then in the order of the first space with the word.

    A count is the maximum over the spaces, not the sum: combined spaces usually come from the same corpus.
    """
    if len(spaces) < 2:
        raise UsageError.expected("two or more sets of vectors", len(spaces))
    counts = dict(zip(spaces[0].words, spaces[0].vocabulary.counts.tolist(), strict=True))
    for space in spaces[1:]:
        for word, count in zip(space.words, space.vocabulary.counts.tolist(), strict=True):
            if counts.setdefault(word, count) < count:
                counts[word] = count
    if words == "intersection":
        shared = set(spaces[0].words).intersection(*(space.words for space in spaces[1:]))
        counts = {word: count for word, count in counts.items() if word in shared}
    if not counts:
        message = f"The {len(spaces)} sets of vectors have no word in common; are they of the same language?"
        raise VocabularyError(message, code="no-common-words")
    chosen = sorted(counts, key=lambda word: -counts[word])
    lowercase = all(space.vocabulary.lowercase for space in spaces)
    segmenter = join_segmenters(*(space.vocabulary.segmenter for space in spaces))
    terms = [term for space in spaces for term in space.vocabulary.terms]
    numbers = [counts[word] for word in chosen]
    vocabulary = Vocabulary(chosen, numbers, lowercase=lowercase, segmenter=segmenter, terms=terms)
    return JointSpace(vocabulary, tuple(spaces), np.stack([vocabulary.rows_in(space.vocabulary) for space in spaces]))


def powers(values: Floats, exponent: float) -> Floats:
    """Each value to a power; 0 for values below the rounding error."""
    least = 1e-12 * values.max(initial=np.finfo(np.float64).tiny)
    return raise_to_power(np.where(values > least, values, 0), exponent)


def resolve_weights(weights: tuple[float, ...], n_spaces: int) -> tuple[float, ...]:
    """One weight per space (default: 1)."""
    if weights and len(weights) != n_spaces:
        raise UsageError.expected(f"{n_spaces} weights, one per set of vectors", len(weights))
    if any(weight < 0 for weight in weights) or (weights and not any(weights)):
        raise UsageError.expected("0 or more, and not all 0", ", ".join(map(str, weights)), where="weights")
    return weights or (1.0,) * n_spaces


def resolve_dim(dim: int | None, dims: Sequence[int]) -> int:
    """The dimension of the result (default: the largest of the spaces)."""
    if dim is None:
        return max(dims)
    if not 1 <= dim <= sum(dims):
        raise UsageError.expected(f"1 to {sum(dims)}", dim, where="dim")
    return dim
