"""The precision of a teacher on a CPU: bf16 where the CPU computes in it and the states agree with those in fp32.

Whether they agree is measured when the teacher is loaded, on the same texts each time, so that the choice depends on
the teacher and the machine alone: a run that is continued, and results that are merged, have the same precision.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from stillvec.errors import is_out_of_memory

AGREEMENT = 0.99  # least mean cosine of states in any layer
_CPU_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}  # the last one of ARM
_MIN_DIM = 256  # narrower matrices gain nothing
_MAX_TOKENS = 48  # of a text, which every teacher can read
_TEXTS = (
    "The old man of the sea had not caught a fish for eighty days, and it was said that he was out of luck.",
    "Enzymes lower the activation energy of a reaction; in 1913 Michaelis and Menten found the constant.",
    "Der Zug nach München fährt um 12:30 Uhr ab, mais le dernier train pour Paris est déjà parti.",
)


def computes_bf16() -> bool:
    """Whether this CPU multiplies numbers in bf16, which others only emulate."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return False
    flags = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    return not _CPU_FLAGS.isdisjoint(flags.partition(":")[2].split())


def gains_from_bf16(model: Any) -> bool:
    """Whether a model is trained, or asked for labels, faster in bf16 on this CPU."""
    return bool(model.config.get_text_config().hidden_size >= _MIN_DIM) and computes_bf16()


@torch.inference_mode()
def try_bf16(model: Any, tokenizer: Any) -> float | None:
    """Convert the model to bf16; return the agreement with its states before, or None for a model it is not for."""
    if model.config.get_text_config().hidden_size < _MIN_DIM:
        return None
    try:
        before = _states(model, tokenizer)
        model.bfloat16()
        after = _states(model, tokenizer)
    except Exception as error:  # a model of anyone's making
        if is_out_of_memory(error):
            raise
        return 0.0
    cosines = (torch.cosine_similarity(*pair, dim=-1).mean() for pair in zip(before, after, strict=True))
    least = min(map(float, cosines))
    return least if least == least else 0.0  # NaN


def _states(model: Any, tokenizer: Any) -> list[Tensor]:
    """The states (T, D) of every layer and text."""
    reader = model.get_encoder() if getattr(model.config, "is_encoder_decoder", False) else model
    inputs = (torch.tensor([tokenizer(text)["input_ids"][:_MAX_TOKENS]]) for text in _TEXTS)
    outputs = (reader(input_ids=ids, output_hidden_states=True).hidden_states for ids in inputs)
    return [state[0].float() for states in outputs for state in states]
