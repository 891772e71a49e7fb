"""Several sentences in one row, each attending only to itself; which inputs a model needs for that is found by trial.

A GPU is fastest on rows of one width without padding. A model that takes a pairwise attention mask and position ids
gives each sentence the states it has alone; three sentences show which of the variants below works. If none does, the
model reads padded rows.
"""

import logging
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from stillvec.teachers.device import avoid_plans
from stillvec.teachers.subword_tokenizer import SubwordTokenizer

_TRIAL = "The old man of the sea had not caught a fish for eighty days, and it was said that he was out of luck."
_LENGTHS = (100, 17, 9)  # tokens: long enough to reveal local attention
TRIAL_TOKENS = max(_LENGTHS)
_TOLERANCE = 0.05  # of the mean size of a state, for rounding (bf16 is the coarsest); a wrong variant is far off
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SequencePacking:
    """The inputs with which a model keeps packed sentences apart."""

    causal: bool
    first: int | None  # position id of a sentence's first token; None: the model takes no position ids

    def inputs(self, position_ids: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
        """Mask and positions for position ids (B, T) that count from 0 in each sentence; padding has 0."""
        sentence = (position_ids == 0).cumsum(1)
        visible = sentence[:, :, None] == sentence[:, None, :]
        if self.causal:
            visible = visible.tril()
        mask = torch.zeros(visible.shape, dtype=dtype, device=position_ids.device)
        inputs = {"attention_mask": mask.masked_fill_(~visible, torch.finfo(dtype).min)[:, None]}
        return inputs if self.first is None else inputs | {"position_ids": position_ids + self.first}


@torch.inference_mode()
def detect_packing(model: Any, tokenizer: SubwordTokenizer, pad: int, device: torch.device) -> SequencePacking | None:
    """The variant that this model takes, if any."""
    if tokenizer.segments:
        return None
    with avoid_plans():  # the shapes of the trial do not recur
        return _try_variants(model, tokenizer, pad, device)


def _try_variants(model: Any, tokenizer: SubwordTokenizer, pad: int, device: torch.device) -> SequencePacking | None:
    text = tokenizer.encode([_TRIAL]).ids.tolist()
    lengths = [length - len(tokenizer.prefix) - len(tokenizer.suffix) for length in _LENGTHS]
    rows = [[*tokenizer.prefix, *(text * length)[:length], *tokenizer.suffix] for length in lengths]
    ids = torch.tensor([[*(token for row in rows for token in row), pad, pad]], device=device)
    position_ids = torch.tensor([[*(position for row in rows for position in range(len(row))), 0, 0]], device=device)
    reason = "sentences change each other's states"
    try:
        alone = [model(input_ids=torch.tensor([row], device=device)).last_hidden_state[0].float() for row in rows]
        dtype = next(model.parameters()).dtype
    except Exception as error:  # a model of anyone's making: one that cannot read these cannot be packed
        logger.warning("The teacher reads padded batches, which is slower: %r", error)
        return None
    want = torch.cat(alone)
    for causal in (False, True):
        for first in (0, pad + 1, None):
            packing = SequencePacking(causal, first)
            try:
                inputs = packing.inputs(position_ids, dtype)
                got = model(input_ids=ids, **inputs).last_hidden_state[0, : len(want)].float()
            except Exception as error:  # not this variant; the type depends on whose code it is
                reason = repr(error)
                continue
            if bool((got - want).abs().mean() < _TOLERANCE * want.abs().mean()):
                return packing
    logger.warning("The teacher reads padded batches, which is slower: %s", reason)
    return None
