"""Two texts: logistic regression on [u; v; |u - v|; u * v], the means of their words (Conneau et al. 2017).

With `hidden`, one layer between; else as `linear`. The words of the two texts are one sequence, divided by a row of
padding. Two means that differ only by rounding are made equal, so that the order of words cannot be seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.heads.labelled_data import Unit
from stillvec.heads.linear_head import Linear
from stillvec.heads.linear_probe import PENALTIES
from stillvec.heads.numpy_layers import Floats32
from stillvec.heads.sequence_batches import PADDING, UNKNOWN, Sequences
from stillvec.numerics.array_types import Rows

PAIR_PENALTIES = tuple(10 * penalty for penalty in PENALTIES)  # pairs have more columns that say little
ROUNDING = 1e-4  # of the norm of a text vector


def pair_features(u: NDArray[np.float32], v: NDArray[np.float32]) -> NDArray[np.float32]:
    """[u; v; |u - v|; u * v] of two texts (n, 4 dim)."""
    same = np.linalg.norm(u - v, axis=1) <= ROUNDING * np.linalg.norm(u, axis=1)
    v = np.where(same[:, None], u, v)
    return np.concatenate([u, v, np.abs(u - v), u * v], axis=1)


def join_pairs(sequences: Sequences) -> Sequences:
    """Texts two by two as one sequence, with padding between them."""
    lengths = sequences.lengths
    places = sequences.ends[::2].astype(np.int64)  # before which the padding comes
    joined = np.insert(sequences.ids, places, PADDING)
    return Sequences(
        sequences.table, joined, np.cumsum(lengths[::2] + lengths[1::2] + 1), source_rows=sequences.source_rows
    )


def divide_pairs(sequences: Sequences) -> NDArray[np.bool_]:
    """Whether each word of joined pairs is of the second text (N,); the padding between them counts as such."""
    padding = np.cumsum(sequences.ids == PADDING)
    return np.asarray(padding > sequences.text)


@dataclass(frozen=True)
class PairHead(Linear):
    unit: ClassVar[Unit] = "pair"
    penalties: ClassVar[tuple[float, ...]] = PAIR_PENALTIES

    def network(self) -> Any:
        from stillvec.heads.text_networks import PairNetworks  # importing torch takes seconds

        return PairNetworks

    def read_features(self, sequences: Sequences) -> Floats32:
        return pair_features(*_mean_sides(sequences, np.float32(1)))

    def encode_means(self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences) -> Floats32:
        return pair_features(*_mean_sides(sequences, arrays["factor"]))

    def explain(self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences, label: Rows) -> Floats32:
        """Its share of the score, of |u - v| by the sign of u - v, of u * v half for each side: they sum to it."""
        u, v = _mean_sides(sequences, arrays["factor"])
        columns = self.open_columns(arrays, sequences, label)  # (n, 4 d)
        of_u, of_v, apart, product = np.split(columns, 4, axis=1)
        sign = np.sign(u - v)
        sides = np.stack([of_u + sign * apart + v * product / 2, of_v - sign * apart + u * product / 2])  # (2, n, d)
        second = divide_pairs(sequences).astype(np.int64)
        known = (sequences.ids != UNKNOWN) & (sequences.ids != PADDING)
        counts = np.zeros((2, len(sequences)))
        np.add.at(counts, (second[known], sequences.text[known]), 1)
        words = sequences.table[sequences.ids] * arrays["factor"]
        shares = np.einsum("nd,nd->n", words, sides[second, sequences.text])
        return np.asarray(np.where(known, shares / np.maximum(counts[second, sequences.text], 1), 0), np.float32)


def _mean_sides(sequences: Sequences, factor: Any) -> tuple[Floats32, Floats32]:
    """The means of the known words of the two texts of each pair (n, d); zero if there are none."""
    second = divide_pairs(sequences)
    made = []
    for side in (~second, second):
        chosen = side & (sequences.ids != PADDING)
        ends = np.cumsum(np.bincount(sequences.text[chosen], minlength=len(sequences)))
        part = Sequences(sequences.table, sequences.ids[chosen], ends)
        means = part.means() * factor
        means[part.known == 0] = 0
        made.append(np.asarray(means, np.float32))
    return made[0], made[1]
