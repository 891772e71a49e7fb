"""Networks that write the tags of a sentence as one sequence of primitives (Bhargava & Penn 2020).

    c_i = ReLU(W h_i + b), h_i the states of a BiLSTM;   s_t = LSTM([c_i; e(y_{t-1})], s_{t-1});   y_t ~ softmax(V s_t)

The primitive [SEP] ends the tag of word i, and moves to word i + 1; the state is not reset between words. Training has
the right primitives as history. Dropout is that of the tagger, not on c_i.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from stillvec.heads.networks import (
    NetworkGroup,
    NetworkSettings,
    PaddedTexts,
    Shapes,
    drop_units,
    lstm_shapes,
    run_lstm,
    scan_lstm,
)

NAMES = (
    "enter", "recur", "biases", "merge", "merge_bias", "embedding", "decoder_enter", "decoder_recur", "decoder_bias",
    "weights", "bias",
)  # fmt: skip
_UNITS, _MERGED, _EMBEDDED, _DECODER = 100, 200, 50, 200
_DROPOUT = 0.3


class PrimitiveNetworks(NetworkGroup):
    batch_size, max_norm = 32, 1.0

    def __init__(
        self,
        texts: PaddedTexts,
        parts: Sequence[Sequence[Sequence[int]]],
        n_primitives: int,
        networks: Sequence[NetworkSettings],
        *,
        tuned: bool = False,
    ) -> None:
        """Parts are the primitives of each word of each sentence, numbered from 1; 0 is [SEP]."""
        self.n_primitives = n_primitives + 1
        super().__init__(texts, networks, tuned=tuned)
        lengths = [sum(len(word) + 1 for word in sentence) for sentence in parts]
        written = np.zeros((len(parts) + 1, max(lengths)), np.int64)
        place = np.zeros_like(written)
        for number, sentence in enumerate(parts):
            written[number, : lengths[number]] = [*chain.from_iterable([*word, 0] for word in sentence)]
            place[number, : lengths[number]] = np.repeat(np.arange(len(sentence)), [len(word) + 1 for word in sentence])
        self.written, self.place = (torch.from_numpy(part).to(texts.device) for part in (written, place))  # (n + 1, T)
        self.n_written = torch.tensor([*lengths, 0], device=texts.device)  # (n + 1,)

    def shapes(self, dim: int) -> Shapes:
        wide, bound, gates = 2 * _UNITS, _DECODER**-0.5, 4 * _DECODER
        return [
            *lstm_shapes(dim, _UNITS),
            ((wide, _MERGED), (3 / wide) ** 0.5),
            ((_MERGED,), 0.0),
            ((self.n_primitives, _EMBEDDED), 0.3),
            ((_MERGED + _EMBEDDED, gates), bound),
            ((_DECODER, gates), bound),
            ((gates,), bound),
            ((_DECODER, self.n_primitives), bound),
            ((self.n_primitives,), bound),
        ]

    def losses(self, texts: Tensor, width: int, salts: Tensor) -> Tensor:
        scores = self.score(texts, width, salts)
        length = scores.shape[2]
        right, counts = self.written[:, :length][texts], self.n_written[texts]
        lost = functional.cross_entropy(scores.flatten(0, 2), right.flatten(), reduction="none").view(right.shape)
        inside = torch.arange(length, device=texts.device) < counts.unsqueeze(-1)
        n_texts = (texts < self.texts.n_texts).sum(dim=1)
        return (lost * inside).sum(dim=(1, 2)) / n_texts

    def score(self, texts: Tensor, width: int, salts: Tensor | None = None) -> Tensor:
        """Of each primitive at each place, after the right ones (M, B, T, primitives)."""
        enter, recur, biases, merge, merge_bias, embedding, *decoder = self.parameters[: len(NAMES)]
        ids = self.read(texts, width)
        inputs = self.embed(ids)
        inputs = inputs if salts is None else drop_units(inputs, salts[0], _DROPOUT)
        states = run_lstm(inputs, ids != 0, enter, recur, biases)
        states = states if salts is None else drop_units(states, salts[1], _DROPOUT)
        merged = torch.relu(torch.baddbmm(merge_bias.unsqueeze(1), states.flatten(1, 2), merge))
        merged = merged.view(*ids.shape, -1)  # (M, B, L, C)
        length = max(1, int(self.n_written[texts].max()))
        place, written = self.place[:, :length][texts], self.written[:, :length][texts]  # (M, B, T)
        before = functional.pad(written, (1, 0))[..., :-1]
        own = torch.arange(len(ids), device=ids.device).view(-1, 1, 1)
        words = merged.gather(2, place.unsqueeze(3).expand(*place.shape, merged.shape[3]))
        given = torch.cat([words, embedding[own, before]], dim=3)
        gates = torch.baddbmm(decoder[2].unsqueeze(1), given.flatten(1, 2), decoder[0]).view(*place.shape, -1)
        made = scan_lstm(gates, decoder[1])
        made = made if salts is None else drop_units(made, salts[0] ^ salts[1], _DROPOUT)
        scores: Tensor = torch.baddbmm(decoder[4].unsqueeze(1), made.flatten(1, 2), decoder[3])
        return scores.view(*place.shape, -1)

    def read_arrays(self, at: int) -> dict[str, NDArray[Any]]:
        """The parameters of one network, by name."""
        return {name: part[at].detach().cpu().numpy() for name, part in zip(NAMES, self.parameters, strict=False)}
