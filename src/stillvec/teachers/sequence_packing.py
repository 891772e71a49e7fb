"""Several sentences in one row, each seeing only itself: how a model is told so, found by trying it.

Rows of one width without padding are what a GPU reads fastest. A model that takes a mask for every pair of places, and
the places of its pieces, gives each sentence the states it has alone; which of the ways below is its own is seen on
three sentences. A model that takes none of them reads padded rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from stillvec.teachers.subword_tokenizer import SubwordTokenizer

_TRIAL = "The old man of the sea had not caught a fish for eighty days, and it was said that he was out of luck."
_LENGTHS = (100, 17, 9)  # pieces: long enough to show a window of attention
_APART = 0.05  # of the mean size of a state: what rounding may change, bf16 being the coarsest; a wrong way is far off


@dataclass(frozen=True)
class SequencePacking:
    """A way to tell a model."""

    causal: bool
    first: int | None  # the place of a sentence's first piece; None: the model is told no places

    def inputs(self, places: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
        """`places` (B, T) count from 0 in each sentence; what is not read has 0."""
        sentence = (places == 0).cumsum(1)
        seen = sentence[:, :, None] == sentence[:, None, :]
        if self.causal:
            seen = seen.tril()
        mask = torch.zeros(seen.shape, dtype=dtype, device=places.device).masked_fill_(~seen, torch.finfo(dtype).min)
        told = {"attention_mask": mask[:, None]}
        return told if self.first is None else told | {"position_ids": places + self.first}


@torch.inference_mode()
def packing_of(model: Any, cutter: SubwordTokenizer, pad: int, device: torch.device) -> SequencePacking | None:
    """The way that this model takes, if any."""
    if cutter.segments:
        return None
    text = cutter.cut([_TRIAL]).ids.tolist()
    room = [length - len(cutter.prefix) - len(cutter.suffix) for length in _LENGTHS]
    rows = [[*cutter.prefix, *(text * length)[:length], *cutter.suffix] for length in room]
    ids = torch.tensor([[*(piece for row in rows for piece in row), pad, pad]], device=device)
    places = torch.tensor([[*(place for row in rows for place in range(len(row))), 0, 0]], device=device)
    try:
        alone = [model(input_ids=torch.tensor([row], device=device)).last_hidden_state[0].float() for row in rows]
        dtype = next(model.parameters()).dtype
    except Exception:  # a model of anyone's making: one that cannot read these reads none packed
        return None
    want = torch.cat(alone)
    for causal in (False, True):
        for first in (0, pad + 1, None):
            way = SequencePacking(causal, first)
            try:
                got = model(input_ids=ids, **way.inputs(places, dtype)).last_hidden_state[0, : len(want)].float()
            except Exception:  # not its way; what it raises depends on whose code it is
                continue
            if bool((got - want).abs().mean() < _APART * want.abs().mean()):
                return way
    return None
