"""What listeners hear: the states of a batch, as words and as sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from stillvec.encoding.batch import Batch
from stillvec.errors import UsageError


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

    def add_to(self, table: Tensor, layer: int) -> None:
        """Give each row of the vocabulary's table (V, D) the states of its word, each the mean of its pieces."""
        links = self.sum_place, self.sum_share, self.sum_start
        at_once = _adder(table.device)
        if at_once is not None:
            at_once(table, self.states[layer], *links, self.sum_id)
            return
        place, share, start = links
        shares = share.reciprocal()
        sums = F.embedding_bag(place, self._float(layer), start, mode="sum", per_sample_weights=shares)
        table.index_add_(0, self.sum_id, sums)

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
        raise UsageError(f"There is no piece pooling {pooling!r}; known are mean, first, last, max, min.")


@cache
def _adder(device: torch.device) -> Callable[..., None] | None:
    """One step for it, where there is a GPU, Triton, and the compiler that this wants; tried once."""
    if device.type != "cuda":
        return None
    try:
        from stillvec.encoding.triton_segment_sum import add_groups, tried

        tried(device)
    except Exception:  # whatever is missing, torch does it in three steps
        return None
    return add_groups


def _offsets(lengths: Tensor) -> Tensor:
    return torch.cumsum(lengths, 0) - lengths
