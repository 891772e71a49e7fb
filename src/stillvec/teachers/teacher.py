"""A frozen contextual model: token ids in, states of chosen layers out."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from stillvec.teachers.device import avoid_plans
from stillvec.teachers.sentence_head import SentenceHead
from stillvec.teachers.sequence_packing import SequencePacking
from stillvec.teachers.subword_tokenizer import SubwordTokenizer

_ROWS, _WIDTH = 32, 128  # a round shape is a multiple of these


@dataclass(frozen=True, eq=False)
class Teacher:
    """What a forward pass needs of a model. Layer 0 is the input embeddings, layer `depth` the last."""

    name: str
    model: nn.Module = field(repr=False)
    tokenizer: SubwordTokenizer = field(repr=False)
    dim: int
    depth: int
    window: int  # tokens per window, special tokens included
    pad: int
    device: torch.device
    precision: str
    digest: str  # of configuration, weights and tokenizer
    sampled_digest: str = ""  # the digest that version 0.1 wrote into manifests
    packing: SequencePacking | None = None  # how to read several sentences per row, on a GPU and if the model can
    head: SentenceHead | None = field(default=None, repr=False)  # of a sentence-transformers folder
    agreement: float | None = None  # cosine of states in bf16 and fp32, where that decided the precision

    @property
    def text_dim(self) -> int:
        """Columns of its vector of a text."""
        return self.dim if self.head is None else self.head.dim

    @torch.inference_mode()
    def states(
        self, ids: Tensor, mask: Tensor | None, layers: Sequence[int], position_ids: Tensor | None = None
    ) -> dict[int, Tensor]:
        """Run the forward pass: states (B, T, D) per layer for padded ids (B, T), or for packed ids and positions."""
        if not layers:
            return {}
        all_layers = any(layer != self.depth for layer in layers)
        inputs: Mapping[str, Tensor | None] = {"attention_mask": mask, **self._segments(ids)}
        if position_ids is not None and self.packing is not None:
            inputs = self.packing.inputs(position_ids, next(self.model.parameters()).dtype)
        with _select_backend(ids):
            output: Any = self.model(input_ids=ids, output_hidden_states=all_layers, **inputs)
        if not all_layers:
            return {self.depth: output.last_hidden_state}
        return {layer: output.hidden_states[layer] for layer in layers}

    def _segments(self, ids: Tensor) -> dict[str, Tensor]:
        """Segment ids, only if a special token has another segment than 0, the default of all models."""
        if not self.tokenizer.segments:
            return {}
        segments = torch.zeros_like(ids)
        for token, segment in self.tokenizer.segments.items():
            segments[ids == token] = segment
        return {"token_type_ids": segments}


def _select_backend(ids: Tensor) -> AbstractContextManager[None]:
    """The context to run a forward pass over ids (B, T) in: which of torch's attention kernels a GPU uses.

    The fastest, cuDNN's, compiles a plan for every new shape, which takes longer than the forward pass itself. That
    pays off for round shapes, which recur; other shapes use the second fastest kernel.
    """
    if not ids.is_cuda or (ids.shape[0] % _ROWS == 0 and ids.shape[1] % _WIDTH == 0):
        return nullcontext()
    return avoid_plans()
