"""What listeners hear: the states of a batch, as words and as sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from stillvec.encoding.prepared import Batch
from stillvec.errors import CallError


@dataclass(frozen=True, eq=False)
class Encoded:
    """A batch after the teacher. Poolings are computed once, whoever asks; all come in fp32 on the teacher's device."""

    batch: Batch
    states: Mapping[int, Tensor]  # layer → (B * T, D)
    piece_place: Tensor  # (P,)
    sentence_pieces: Tensor  # (S,)
    link_place: Tensor  # (K,)
    word_links: Tensor  # (W,)
    known: Tensor  # (N,) which of the W words the vocabulary has
    known_id: Tensor  # (N,) their rows in it
    known_sentence: Tensor  # (N,)
    sum_place: Tensor  # (L,)
    sum_share: Tensor  # (L,)
    sum_start: Tensor  # (G,)
    sum_id: Tensor  # (G,) rows in the vocabulary, some of them several times
    _known: dict[object, Tensor] = field(default_factory=dict, init=False, repr=False)

    def words(self, layer: int, pooling: str = "mean") -> Tensor:
        """The state of each word, its pieces pooled (W, D)."""
        key = (layer, pooling)
        if key not in self._known:
            self._known[key] = self._pool(layer, pooling)
        return self._known[key]

    def sums(self, layer: int) -> Tensor:
        """Of known words, the mean of each one's pieces, added up by groups (G, D): what `sum_id` has to be given."""
        key = (layer, "sums")
        if key not in self._known:
            shares = self.sum_share.reciprocal()
            self._known[key] = F.embedding_bag(
                self.sum_place, self._float(layer), self.sum_start, mode="sum", per_sample_weights=shares
            )
        return self._known[key]

    def sentences(self, layer: int) -> Tensor:
        """The mean of each sentence's piece states, special tokens left out (S, D)."""
        key = (layer, "sentence")
        if key not in self._known:
            offsets = _offsets(self.sentence_pieces)
            self._known[key] = F.embedding_bag(self.piece_place, self._float(layer), offsets, mode="mean")
        return self._known[key]

    def _float(self, layer: int) -> Tensor:
        if layer not in self._known:
            self._known[layer] = self.states[layer].float()
        return self._known[layer]

    def _pool(self, layer: int, pooling: str) -> Tensor:
        states, offsets = self._float(layer), _offsets(self.word_links)
        if pooling in ("mean", "max"):
            return F.embedding_bag(self.link_place, states, offsets, mode=pooling)
        if pooling == "min":
            return -F.embedding_bag(self.link_place, -states, offsets, mode="max")
        if pooling == "first":
            return states[self.link_place[offsets]]
        if pooling == "last":
            return states[self.link_place[offsets + self.word_links - 1]]
        raise CallError(f"There is no piece pooling {pooling!r}; known are mean, first, last, max, min.")


def _offsets(lengths: Tensor) -> Tensor:
    return torch.cumsum(lengths, 0) - lengths
