"""A frozen contextual model: ids in, the states of chosen layers out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from stillvec.teachers.sdpa_backend import attending
from stillvec.teachers.sequence_packing import SequencePacking
from stillvec.teachers.subword_tokenizer import SubwordTokenizer


@dataclass(frozen=True, eq=False)
class Teacher:
    """What the pass needs of a model. Layer 0 is the input embeddings, layer `depth` the last."""

    name: str
    model: nn.Module = field(repr=False)
    cutter: SubwordTokenizer = field(repr=False)
    dim: int
    depth: int
    window: int  # pieces, special tokens included, that the model reads at once
    pad: int
    device: torch.device
    precision: str
    digest: str  # of configuration, weights and tokenizer
    packing: SequencePacking | None = None  # how it reads several sentences in a row, where it can and should

    @torch.inference_mode()
    def states(
        self, ids: Tensor, mask: Tensor | None, layers: Sequence[int], places: Tensor | None = None
    ) -> dict[int, Tensor]:
        """The states (B, T, D) of each asked layer for padded ids (B, T), or for packed ones and their places."""
        if not layers:
            return {}
        everything = any(layer != self.depth for layer in layers)
        told: Mapping[str, Tensor | None] = {"attention_mask": mask, **self._segments(ids)}
        if places is not None and self.packing is not None:
            told = self.packing.inputs(places, next(self.model.parameters()).dtype)
        with attending(ids):
            output: Any = self.model(input_ids=ids, output_hidden_states=everything, **told)
        if not everything:
            return {self.depth: output.last_hidden_state}
        return {layer: output.hidden_states[layer] for layer in layers}

    def _segments(self, ids: Tensor) -> dict[str, Tensor]:
        """Segment 0 is what models take for granted; where a special token has another, all are said."""
        if not self.cutter.segments:
            return {}
        segments = torch.zeros_like(ids)
        for token, segment in self.cutter.segments.items():
            segments[ids == token] = segment
        return {"token_type_ids": segments}
