"""Linear layers for bf16 on a CPU: weights are arranged once, and what follows is computed in the same operation.

`F.linear` has oneDNN arrange the weights anew for every batch, and writes a result that GELU or a sum then reads from
memory again. The operations are those that torch's compiler uses; where they are missing or give something else, a
model keeps its layers.
"""

from __future__ import annotations

import logging
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_ROWS = 2048  # tokens of a usual batch, for which weights are arranged; any number is computed
_TOLERANCE = 0.02  # of the trial's largest number; bf16 rounds to 0.004
_log = logging.getLogger(__name__)


class PackedLinear(nn.Module):
    """A linear layer without its weights in their usual layout."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach().contiguous(), _ROWS)
        self.bias = linear.bias

    def forward(self, states: Tensor, then: str = "none") -> Tensor:
        """The layer, and `then`: none or gelu."""
        return self._check_type(torch.ops.mkldnn._linear_pointwise(states, self.packed, self.bias, then, [], "none"))

    def add(self, states: Tensor, other: Tensor) -> Tensor:
        """The layer plus another tensor."""
        return self._check_type(torch.ops.mkldnn._linear_pointwise.binary(states, other, self.packed, self.bias, "add"))

    @staticmethod
    def _check_type(result: Any) -> Tensor:
        assert isinstance(result, Tensor)
        return result


def apply_gelu(layer: nn.Module, states: Tensor) -> Tensor:
    """GELU of a linear layer."""
    result: Tensor = layer(states, "gelu") if isinstance(layer, PackedLinear) else F.gelu(layer(states))
    return result


def add_residual(layer: nn.Module, states: Tensor, residual: Tensor) -> Tensor:
    """A linear layer plus what it is added to."""
    return layer.add(states, residual) if isinstance(layer, PackedLinear) else layer(states) + residual


@torch.inference_mode()
def pack_layers(model: nn.Module) -> None:
    """Replace the linear layers of a model by packed ones, if these do the same here."""
    parents = {
        (parent, name): child
        for parent in model.modules()
        for name, child in parent.named_children()
        if type(child) is nn.Linear and child.weight.dtype == torch.bfloat16 and child.weight.is_cpu
    }
    try:
        if not parents or not _agrees(next(iter(parents.values()))):
            return
        packed = {place: PackedLinear(linear) for place, linear in parents.items()}
    except (RuntimeError, AttributeError, TypeError) as error:  # another build of torch
        _log.info("Linear layers are not packed: %r", error)
        return
    for (parent, name), layer in packed.items():
        setattr(parent, name, layer)


def _agrees(linear: nn.Linear) -> bool:
    """Whether a packed layer gives what the plain one does, in all its forms."""
    layer = PackedLinear(linear)
    states = torch.linspace(-1, 1, 3 * linear.in_features, dtype=torch.bfloat16).view(3, -1)
    plain = linear(states)
    pairs = (
        (layer(states), plain),
        (apply_gelu(layer, states), F.gelu(plain)),
        (add_residual(layer, states, plain), 2 * plain),
    )
    limit = _TOLERANCE * float(plain.abs().max())
    return all(bool(((one - other).abs() <= 2 * limit).all()) for one, other in pairs)
