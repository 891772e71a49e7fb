"""MPNet's attention in one step of torch; `transformers` computes it in seven, a quarter of the time on a GPU."""

from __future__ import annotations

from types import MethodType
from typing import Any

import torch.nn.functional as F
from torch import Tensor


def use_fused_attention(model: Any) -> None:
    """Change every attention of an MPNet; other models stay as they are."""
    for module in model.modules():
        if type(module).__name__ == "MPNetSelfAttention" and all(hasattr(module, name) for name in "qkvo"):
            module.forward = MethodType(_forward, module)


def _forward(
    self: Any,
    hidden_states: Tensor,
    attention_mask: Tensor | None = None,
    position_bias: Tensor | None = None,
    output_attentions: bool = False,
    **more: Any,
) -> tuple[Tensor, ...]:
    if output_attentions:  # which the one step does not give
        found: tuple[Tensor, ...] = type(self).forward(
            self, hidden_states, attention_mask, position_bias, output_attentions, **more
        )
        return found
    heads = (*hidden_states.shape[:-1], -1, self.attention_head_size)
    query, key, value = (each(hidden_states).view(heads).transpose(1, 2) for each in (self.q, self.k, self.v))
    added = [each for each in (position_bias, attention_mask) if each is not None]
    bias = sum(added[1:], added[0]).to(query.dtype) if added else None
    context = F.scaled_dot_product_attention(query, key, value, attn_mask=bias)
    return (self.o(context.transpose(1, 2).reshape(*hidden_states.shape[:-1], -1)),)
