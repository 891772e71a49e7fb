"""Filters of three words and the largest value of each (Kim 2014), as in the task `classification`."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.heads.head_kind import Lesson, NetworkHead, Trained
from stillvec.heads.numpy_layers import Floats32, filter_texts, iterate_batches, unit
from stillvec.heads.sequence_batches import Sequences
from stillvec.numerics.array_types import Rows


@dataclass(frozen=True)
class Cnn(NetworkHead):
    def fit(self, lesson: Lesson) -> Generator[float, None, Trained]:
        from stillvec.heads.head_training import train_texts  # importing torch takes seconds
        from stillvec.heads.text_networks import CnnNetworks

        own, trained = yield from train_texts(self, CnnNetworks, lesson, border=1)
        trained.arrays.update(zip(("filters", "filter_bias"), own, strict=True))
        return trained

    def encode(self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences) -> Floats32:
        features = np.zeros((len(sequences), len(arrays["filter_bias"])), np.float32)
        table = sequences.table * arrays["factor"]
        for numbers, ids, _ in iterate_batches(sequences, border=1):
            features[numbers] = filter_texts(table, ids, arrays["filters"], arrays["filter_bias"])[0]
        return features

    def explain(self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences, label: Rows) -> Floats32:
        """What the filters whose largest value is at the word give to the score: they sum to it, but for the bias."""
        shares = np.zeros(len(sequences.ids), np.float32)
        table, starts = sequences.table * arrays["factor"], sequences.ends - sequences.lengths
        for numbers, ids, lengths in iterate_batches(sequences, border=1):
            features, middles = filter_texts(table, ids, arrays["filters"], arrays["filter_bias"])
            given = unit(features) if self.compares_by_cosine else features
            worth = given * arrays["weights"].T[label[numbers]]  # (B, F)
            places = starts[numbers][:, None] + np.minimum(middles, np.maximum(lengths - 1, 0)[:, None])
            counted = (lengths > 0)[:, None] & (worth != 0)
            np.add.at(shares, places[counted], worth[counted])
        return shares
