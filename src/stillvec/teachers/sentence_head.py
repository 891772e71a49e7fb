"""What a sentence-transformers folder does after the transformer: pooling, `Dense` layers, normalization, prompts.

`modules.json` lists the modules in order, each with a folder of its own: a Transformer, one Pooling, then any number of
Dense, Normalize and Dropout (which does nothing here). `sentence_bert_config.json` limits the length of a text, and
`config_sentence_transformers.json` has prompts; the one that the user chooses (`--prompt NAME`), else the default one
if it names one, is put before every text. A text's vector is then the one that the model was trained to give, as the
package sentence-transformers computes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

POOLINGS = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")


@dataclass(frozen=True, eq=False)
class SentenceHead:
    """Token states of a text in, the model's own vector of it out."""

    dim: int  # of the vector
    poolings: tuple[str, ...] = ("mean",)
    layers: nn.Sequential = field(default_factory=nn.Sequential, repr=False)  # after pooling, in fp32
    include_prompt: bool = True  # whether the tokens of a prompt are pooled
    prompts: Mapping[str, str] = field(default_factory=dict)
    prompt: str = ""  # put before every text
    max_tokens: int | None = None  # of a text, special tokens included
    lowercase: bool = False
    files: tuple[str, ...] = ()  # that it was read from
    digest: str = ""  # of what changes the vectors

    @property
    def is_plain(self) -> bool:
        """Whether the vector is the mean of the tokens, perhaps of length one."""
        return (
            self.poolings == ("mean",) and not self.prompt and all(isinstance(part, UnitLength) for part in self.layers)
        )

    def to(self, device: torch.device) -> SentenceHead:
        return replace(self, layers=self.layers.to(device))

    def limit(self, longest: int) -> SentenceHead:
        """The head with texts of at most `longest` tokens."""
        return replace(self, max_tokens=min(self.max_tokens or longest, longest))

    def describe(self) -> dict[str, Any]:
        """The facts for a manifest."""
        layers = [type(layer).__name__ for layer in self.layers]
        facts = {"pooling": "+".join(self.poolings), "layers": layers, "dim": self.dim, "files": [*self.files]}
        return facts | ({"prompt": self.prompt} if self.prompt else {})

    def prepare(self, text: str) -> str:
        """The text as the tokenizer is to get it."""
        text = self.prompt + text
        return text.lower() if self.lowercase else text

    @torch.inference_mode()
    def vectors(self, states: Tensor, starts: Tensor, lengths: Tensor, n_prompt: int = 0) -> Tensor:
        """The vectors (S, dim) of texts whose tokens are at `starts` (S,) in flat states (N, D), special ones included.

        The first `n_prompt` of the `lengths` tokens, the prompt with the special tokens before it, are pooled only if
        the model was trained so.
        """
        position = torch.arange(int(lengths.sum()), device=states.device)
        position -= torch.repeat_interleave(torch.cumsum(lengths, 0) - lengths, lengths)
        index = torch.repeat_interleave(starts, lengths) + position
        if n_prompt and not self.include_prompt:
            kept = position >= n_prompt
            index, position, lengths = index[kept], position[kept], lengths - n_prompt
        tokens = _Tokens(states, index, position, lengths)
        pooled = torch.cat([tokens.pool(mode) for mode in self.poolings], dim=1)
        return torch.as_tensor(self.layers(pooled))


@dataclass(frozen=True, eq=False)
class _Tokens:
    states: Tensor  # (N, D)
    index: Tensor  # (P,) of the pooled tokens, text by text
    position: Tensor  # (P,) in the text
    lengths: Tensor  # (S,)

    def pool(self, mode: str) -> Tensor:
        first = torch.cumsum(self.lengths, 0) - self.lengths
        if mode == "cls":
            return self.states[self.index[first]]
        if mode == "lasttoken":
            return self.states[self.index[first + self.lengths - 1]]
        if mode in ("mean", "max"):
            return F.embedding_bag(self.index, self.states, first, mode=mode)
        weights = torch.ones_like(self.index, dtype=self.states.dtype)
        if mode == "weightedmean":
            weights = (self.position + 1).to(self.states.dtype)
        sums = F.embedding_bag(self.index, self.states, first, mode="sum", per_sample_weights=weights)
        text = torch.repeat_interleave(torch.arange(len(first), device=first.device), self.lengths)
        totals = torch.zeros(len(first), dtype=weights.dtype, device=weights.device).index_add_(0, text, weights)
        return sums / (totals.sqrt() if mode == "mean_sqrt_len_tokens" else totals)[:, None]


class UnitLength(nn.Module):
    def forward(self, vectors: Tensor) -> Tensor:
        return F.normalize(vectors, dim=1)
