"""Encoders of the kinds of BERT (Devlin et al. 2019) and MPNet (Song et al. 2020), without the package transformers.

Its import takes longer than everything else until the teacher reads. Modules have the names that weights have in files,
so digests, quantization and whatever looks at a model find what they find in `transformers`, and states are the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from stillvec.teachers.packed_linear import add_residual, apply_gelu

_LAYER = {  # the modules of a layer by kind of model
    "bert": {
        "query": "attention.self.query",
        "key": "attention.self.key",
        "value": "attention.self.value",
        "output": "attention.output.dense",
        "norm": "attention.output.LayerNorm",
        "widen": "intermediate.dense",
        "narrow": "output.dense",
        "last_norm": "output.LayerNorm",
    },
    "mpnet": {
        "query": "attention.attn.q",
        "key": "attention.attn.k",
        "value": "attention.attn.v",
        "output": "attention.attn.o",
        "norm": "attention.LayerNorm",
        "widen": "intermediate.dense",
        "narrow": "output.dense",
        "last_norm": "output.LayerNorm",
    },
}
KINDS = tuple(_LAYER)
_FAR = 128  # MPNet: positions further apart are in one bucket
_SHORT = 48  # tokens


@dataclass(frozen=True)
class EncoderConfig:
    """What decides the shapes; fields have the names of `config.json`."""

    model_type: str
    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    layer_norm_eps: float
    pad_token_id: int
    type_vocab_size: int = 0
    relative_attention_num_buckets: int = 0
    is_encoder_decoder: bool = False
    is_decoder: bool = False

    def __post_init__(self) -> None:
        sizes = (getattr(self, field.name) for field in fields(self) if field.type == "int")
        if (
            not all(isinstance(size, int) and size >= 0 for size in sizes)
            or self.hidden_size % self.num_attention_heads
        ):
            raise ValueError("not the sizes of an encoder")

    def get_text_config(self) -> EncoderConfig:
        return self


class EncoderOutput(NamedTuple):
    last_hidden_state: Tensor  # (B, T, D)
    hidden_states: tuple[Tensor, ...] | None  # of the input and of every layer


class EncoderModel(nn.Module):
    """Token ids in, states out; called as the models of `transformers` are.

    It has no weights until `load_state_dict(..., assign=True)`.
    """

    _supports_sdpa = True  # as `transformers` says that attention is fused

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        dim, is_bert = config.hidden_size, config.model_type == "bert"
        padding = config.pad_token_id if is_bert else 1
        self.embeddings = nn.Module()
        self.embeddings.word_embeddings = _make(nn.Embedding, config.vocab_size, dim, padding)
        positions = _make(nn.Embedding, config.max_position_embeddings, dim, None if is_bert else padding)
        self.embeddings.position_embeddings = positions
        if is_bert:
            self.embeddings.token_type_embeddings = _make(nn.Embedding, config.type_vocab_size, dim)
        self.embeddings.LayerNorm = _make(nn.LayerNorm, dim, config.layer_norm_eps)
        self.encoder = nn.Module()
        self.encoder.layer = nn.ModuleList(_Layer(config) for _ in range(config.num_hidden_layers))
        if not is_bert:
            heads = config.num_attention_heads
            self.encoder.relative_attention_bias = _make(nn.Embedding, config.relative_attention_num_buckets, heads)
        self.pooler = nn.Module()  # never run, but a part of the digest
        self.pooler.dense = _make(nn.Linear, dim, dim)
        self.first_position = 0 if is_bert else padding + 1  # of a text

    def get_input_embeddings(self) -> Any:
        return self.embeddings.word_embeddings

    def forward(
        self,
        input_ids: Tensor,  # (B, T)
        attention_mask: Tensor | None = None,  # (B, T) of zeros and ones, or (B, 1, T, T) to add
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> EncoderOutput:
        states = self._embed(input_ids, token_type_ids, position_ids)
        mask = attention_mask
        if mask is not None and mask.ndim == 2:
            mask = mask.bool()[:, None, None]
        if self.config.model_type == "mpnet":
            bias = self._position_bias(input_ids.shape[1], states.device)
            if mask is not None and mask.dtype == torch.bool:
                mask = torch.zeros(mask.shape, dtype=states.dtype, device=states.device).masked_fill_(~mask, -math.inf)
            mask = (bias if mask is None else bias + mask).to(states.dtype)
        kept = [states]
        for layer in self.encoder.layer:  # type: ignore[union-attr]  # a list of layers
            states = layer(states, mask)
            if output_hidden_states:
                kept.append(states)
        return EncoderOutput(states, tuple(kept) if output_hidden_states else None)

    def _embed(self, ids: Tensor, token_types: Tensor | None, positions: Tensor | None) -> Tensor:
        parts: Any = self.embeddings
        states = parts.word_embeddings(ids)
        if self.config.model_type == "bert":
            kinds = parts.token_type_embeddings
            states = states + (kinds.weight[0] if token_types is None else kinds(token_types))
            if positions is None:
                positions = torch.arange(ids.shape[1], device=ids.device)[None]
        elif positions is None:  # counted without padding, which has a position of its own
            present = (ids != 1).int()
            positions = present.cumsum(1) * present + 1
        out: Tensor = parts.LayerNorm(states + parts.position_embeddings(positions))
        return out

    def _position_bias(self, length: int, device: torch.device) -> Tensor:
        """(1, heads, T, T): a number per head and bucket of distances, wider for longer ones, as in T5."""
        place = torch.arange(length, device=device)
        distance = place[None, :] - place[:, None]
        half = self.config.relative_attention_num_buckets // 2
        exact, size = half // 2, distance.abs()
        share = torch.log(size.clamp_min(1).float() / exact) / math.log(_FAR / exact)
        far = (exact + (share * (half - exact)).long()).clamp_max(half - 1)
        bucket = half * (distance > 0) + torch.where(size < exact, size, far)
        table: Any = self.encoder.relative_attention_bias
        bias: Tensor = table(bucket).permute(2, 0, 1)[None]
        return bias.contiguous()  # sums inherit its layout, and fused attention takes no mask with another


class _Layer(nn.Module):
    """Attention and a feed-forward network, each with a residual connection that is normalized afterwards."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        dim, inner = config.hidden_size, config.intermediate_size
        self.n_heads, self.names = config.num_attention_heads, _LAYER[config.model_type]
        for role, path in self.names.items():
            rows, columns = {"widen": (dim, inner), "narrow": (inner, dim)}.get(role, (dim, dim))
            module = (
                _make(nn.LayerNorm, dim, config.layer_norm_eps) if "norm" in role else _make(nn.Linear, rows, columns)
            )
            *folders, name = path.split(".")
            parent: nn.Module = self
            for folder in folders:
                if folder not in parent._modules:
                    parent.add_module(folder, nn.Module())
                parent = parent.get_submodule(folder)
            parent.add_module(name, module)
        self.find = attrgetter(*self.names.values())  # quantization replaces modules, so they are found by name

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        query, key, value, output, norm, widen, narrow, last_norm = self.find(self)
        shape = (*states.shape[:-1], self.n_heads, -1)
        q, k, v = (linear(states).view(shape).transpose(1, 2) for linear in (query, key, value))
        context = _attend(q, k, v, mask)
        states = norm(add_residual(output, context.transpose(1, 2).flatten(2), states))
        result: Tensor = last_norm(add_residual(narrow, apply_gelu(widen, states), states))
        return result


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Attention (B, heads, T, D / heads). On a CPU in bf16 torch's fused kernel is slow for short texts."""
    if not (q.is_cpu and q.dtype == torch.bfloat16 and q.shape[2] <= _SHORT):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    scores = (q @ k.transpose(2, 3)).float().mul_(q.shape[3] ** -0.5)
    if mask is not None:
        bias = torch.zeros(mask.shape).masked_fill_(~mask, -math.inf) if mask.dtype == torch.bool else mask
        scores += bias
    return scores.softmax(3).to(v.dtype) @ v


def _make(kind: type[nn.Module], *given: Any) -> Any:
    """A module without memory for its weights. To initialize them there would import all of torch's compiler."""
    bare = type(kind.__name__, (kind,), {"reset_parameters": lambda self: None})
    module = bare(*given, device="meta")
    module.__class__ = kind
    return module
