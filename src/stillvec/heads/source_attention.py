"""Several sets of vectors as one: side by side, or weighted for each word by a tagger (Lange, Strötgen & Adel 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from stillvec.combination.concat import Concat
from stillvec.combination.joint_space import Words
from stillvec.heads.head_kind import Lesson
from stillvec.heads.labelled_data import read_data
from stillvec.heads.lookup import Lookup
from stillvec.heads.tagger_head import Tagger
from stillvec.numerics import iterate_blocks
from stillvec.progress import drain
from stillvec.registry import check_least
from stillvec.vectors import WordVectors


def join_sources(sets: Sequence[WordVectors], words: Words = "union") -> WordVectors:
    """Several sets side by side, each scaled to a mean square of one; zero where a set lacks a word."""
    scales = [float(np.sqrt(np.square(np.asarray(each.matrix, np.float32)).mean())) or 1.0 for each in sets]
    return Concat(weights=tuple(1 / scale for scale in scales), unit=False, words=words)(*sets)


@dataclass(frozen=True)
class AttentionSum:
    """`sum of a_i tanh(Q_i x_i + b_i)` over the sets that have a word, as a tagger learns it on labelled sentences.

    The weights `a = softmax(v tanh(W tanh(Q_i x_i + b_i)))` are those of a word, not of its sentence: the sum is a
    vector of the word.
    """

    SUMMARY: ClassVar[str] = "the sum of its vectors in all spaces, by the attention of a tagger"
    PAPERS: ClassVar[tuple[str, ...]] = ("lange-2020-auxiliary",)

    on: Path  # labelled sentences, as for `stillvec fit --head tagger`
    epochs: int = 8  # at most
    seed: int = 0
    words: Words = "union"

    def __post_init__(self) -> None:
        check_least(self, epochs=1, seed=0)

    def __call__(self, *spaces: WordVectors) -> WordVectors:
        both = join_sources(spaces, self.words)
        data, kind = read_data(self.on, "tokens"), Tagger(epochs=self.epochs)
        sequences = Lookup(both).read_tokens(data.items)
        widths = tuple(space.dim for space in spaces)
        lesson = Lesson(data, sequences, np.zeros((len(data.items), 0)), widths=widths, seeds=(self.seed,))
        trained = drain(kind.fit(lesson))
        matrix = np.empty((len(both), max(widths)), np.float32)
        for rows, block in iterate_blocks(both.matrix, np.float32):
            matrix[rows] = kind.map_words(trained.arrays, block)
        return both.with_matrix(matrix)
