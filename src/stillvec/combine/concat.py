"""Rows of several spaces side by side, each space with its weight; the words that all of them have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stillvec.errors import CallError
from stillvec.refine.unit import Unit
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Concat:
    weights: tuple[float, ...] = ()  # one a space; empty: all 1

    def __call__(self, spaces: Sequence[WordVectors]) -> WordVectors:
        weights = self.weights or (1.0,) * len(spaces)
        if not spaces or len(weights) != len(spaces):
            raise CallError(f"{len(spaces)} spaces came with {len(weights)} weights; each space needs one.")
        first, *others = spaces
        if any(other.vocabulary.words != first.vocabulary.words for other in others):
            held = set(first.words).intersection(*(other.words for other in others))
            shared = [word for word in first.words if word in held]
            first, *others = (space.subset(shared) for space in spaces)
        rows = [weight * Unit()(space).matrix for weight, space in zip(weights, (first, *others), strict=True)]
        return WordVectors(first.vocabulary, np.concatenate(rows, axis=1))
