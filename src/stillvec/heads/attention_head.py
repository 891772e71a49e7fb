"""An LSTM in both directions with attention over its states (Tutek & Šnajder 2020)."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.heads.head_kind import Lesson, NetworkHead, Trained
from stillvec.heads.numpy_layers import Floats32, iterate_batches, run_both_ways, softmax, write_words
from stillvec.heads.sequence_batches import Sequences
from stillvec.numerics.array_types import Rows

_LSTM = ("enter", "recur", "biases")
_HIDDEN = -1e4  # the score of a place without a word


@dataclass(frozen=True)
class AttentionHead(NetworkHead):
    form: Literal["additive", "dot"] = "additive"

    def fit(self, lesson: Lesson) -> Generator[float, None, Trained]:
        from stillvec.heads.head_training import train_texts  # importing torch takes seconds
        from stillvec.heads.text_networks import AttentionNetworks

        networks = type("AttentionNetworks", (AttentionNetworks,), {"dot": self.form == "dot"})
        own, trained = yield from train_texts(self, networks, lesson)
        names = (*_LSTM, "query") if self.form == "dot" else (*_LSTM, "key", "key_bias", "query")
        trained.arrays.update(zip(names, own, strict=True))
        adds = [name in lesson.options for name in ("concat", "residual")]
        trained.arrays["adds_words"] = np.array(adds, np.uint8)
        return trained

    def encode(self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences) -> Floats32:
        return self.attend(arrays, sequences)[0]

    def explain(self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences, label: Rows) -> Floats32:
        """The attention to it."""
        return self.attend(arrays, sequences)[1]

    def attend(
        self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences, change: Any = None
    ) -> tuple[Floats32, Floats32]:
        """The features of texts (n, F) and the weight of each word (N,); `change` gets weights (B, L) and lengths."""
        features = np.zeros((len(sequences), len(arrays["weights"])), np.float32)
        weights = np.zeros(len(sequences.ids), np.float32)
        for numbers, states, given, lengths in self.iterate_states(arrays, sequences):
            changed = given if change is None else change(given, lengths)
            features[numbers] = np.einsum("bl,blf->bf", changed, states)
            write_words(weights, sequences, numbers, changed)
        return features, weights

    def iterate_states(
        self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences
    ) -> Generator[tuple[Rows, Floats32, Floats32, Rows], None, None]:
        """Texts (B,), their states (B, L, F), the weights of words (B, L) and lengths."""
        table = np.asarray(sequences.table * arrays["factor"], np.float32)
        concat, residual = arrays["adds_words"].tolist()
        for numbers, ids, lengths in iterate_batches(sequences):
            words = table[ids]
            states = run_both_ways(words, lengths, dict(arrays))
            if residual:
                states[..., : words.shape[2]] += words * (ids != 0)[..., None]
            states = np.concatenate([states, words], axis=2) if concat else states
            if self.form == "dot":
                scores = states @ arrays["query"] / np.float32(states.shape[2] ** 0.5)
            else:
                scores = np.tanh(states @ arrays["key"] + arrays["key_bias"]) @ arrays["query"]
            yield numbers, states, softmax(np.where(ids != 0, scores, _HIDDEN)), lengths
