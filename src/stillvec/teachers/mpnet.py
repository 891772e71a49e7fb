"""Fused attention for MPNet: one call of torch instead of seven operations, a quarter of the time on a GPU.

MPNet is not among the models whose attention `transformers` 5.22 lets us register (`AttentionInterface`), because of
its position bias. So its attention modules are replaced, the model is compared with what it was, and the replacement is
undone if the states differ. Models that `transformers` itself runs with fused attention are left alone.
"""

import logging
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_TRIAL = (2, 24)  # rows and tokens
_TOLERANCE = 0.05  # of the mean size of a state, for rounding; bf16 is the coarsest
logger = logging.getLogger(__name__)


class FusedAttention(nn.Module):
    """`MPNetSelfAttention` with `scaled_dot_product_attention`; the position bias is added to the mask."""

    def __init__(self, original: Any) -> None:
        super().__init__()
        self.original = [original]  # in a list, so that its weights are not registered twice
        self.q, self.k, self.v, self.o = original.q, original.k, original.v, original.o
        self.head_size = original.attention_head_size

    def forward(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        position_bias: Tensor | None = None,
        output_attentions: bool = False,
        **kwargs: Any,
    ) -> Any:
        if output_attentions:  # the fused kernel does not return the weights
            return self.original[0](hidden_states, attention_mask, position_bias, output_attentions, **kwargs)
        heads = (*hidden_states.shape[:-1], -1, self.head_size)
        query, key, value = (linear(hidden_states).view(heads).transpose(1, 2) for linear in (self.q, self.k, self.v))
        biases = [bias for bias in (position_bias, attention_mask) if bias is not None]
        mask = sum(biases[1:], biases[0]).to(query.dtype) if biases else None
        context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return (self.o(context.transpose(1, 2).reshape(*hidden_states.shape[:-1], -1)),)


def use_fused_attention(model: Any) -> bool:
    """Replace the attention of an MPNet if the states stay the same; other models are not changed."""
    if model.config.model_type != "mpnet" or getattr(model, "_supports_sdpa", False):
        return False
    replaced: list[tuple[Any, Any]] = []
    try:
        before = _run_trial(model)
        replaced = [(layer.attention, layer.attention.attn) for layer in model.encoder.layer]
        for layer, original in replaced:
            layer.attn = FusedAttention(original)
        difference = float((_run_trial(model) - before).abs().mean() / before.abs().mean())
        reason = "" if difference < _TOLERANCE else f"states differ by {difference:.1%}"
    except Exception as error:  # another layout of the model, or one that does not run
        reason = repr(error)
    if reason:
        logger.warning("MPNet runs without fused attention, which is slower: %s", reason)
        for layer, original in replaced:
            layer.attn = original
    return not reason


@torch.inference_mode()
def _run_trial(model: Any) -> Tensor:
    device = model.get_input_embeddings().weight.device
    ids = 5 + torch.arange(_TRIAL[0] * _TRIAL[1], device=device).view(_TRIAL) % (model.config.vocab_size - 5)
    mask = torch.ones_like(ids)
    mask[1, _TRIAL[1] // 2 :] = 0
    states: Tensor = model(input_ids=ids, attention_mask=mask).last_hidden_state.float()
    return states
