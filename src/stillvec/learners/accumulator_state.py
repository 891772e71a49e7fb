"""The state of an accumulator as plain arrays, and back, so that a run that was stopped can continue.

An accumulator names in `state_fields` its attributes that change: tensors, arrays, numbers, lists of arrays (which are
concatenated) and dictionaries of tensors. They are restored bit for bit. Other kinds of state need `save_state`
and `load_state` of its own; one with neither cannot be continued.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from stillvec.statistics import Array

_OLD_NAMES = {"n_contexts": "heard"}  # of fields, in checkpoints of earlier versions


@runtime_checkable
class HasStateFields(Protocol):
    """Names the attributes that a checkpoint holds."""

    state_fields: Sequence[str]


@runtime_checkable
class HasOwnState(Protocol):
    """Saves and restores its state itself."""

    def save_state(self) -> dict[str, Array]:
        """All that changes during a pass."""

    def load_state(self, arrays: Mapping[str, Array]) -> None:
        """Continue from there."""


def can_checkpoint(accumulator: object) -> bool:
    return isinstance(accumulator, HasOwnState | HasStateFields)


def save_state(accumulator: object) -> dict[str, Array]:
    """The state of an accumulator, not copied where it is in this machine's memory."""
    if isinstance(accumulator, HasOwnState):
        return accumulator.save_state()
    assert isinstance(accumulator, HasStateFields)
    arrays: dict[str, Array] = {}
    for name in accumulator.state_fields:
        value = getattr(accumulator, name)
        if isinstance(value, list):
            arrays |= {name: np.concatenate(value)} if value else {}
        elif isinstance(value, dict):
            arrays |= {f"{name}.{key}": _to_array(item) for key, item in value.items()}
        else:
            arrays[name] = _to_array(value)
    return arrays


def load_state(accumulator: object, arrays: Mapping[str, Array]) -> None:
    """Restore the state of an empty accumulator."""
    if isinstance(accumulator, HasOwnState):
        accumulator.load_state(arrays)
        return
    assert isinstance(accumulator, HasStateFields)
    for name in accumulator.state_fields:
        setattr(accumulator, name, _from_arrays(name, getattr(accumulator, name), arrays))


def _to_array(value: Any) -> Array:
    return np.asarray(value.detach().cpu().numpy() if isinstance(value, Tensor) else value)


def _from_arrays(name: str, value: Any, arrays: Mapping[str, Array]) -> Any:
    """A value of the same kind as `value`, with the saved numbers."""
    if isinstance(value, dict):
        return {key: _convert(item, arrays[f"{name}.{key}"]) for key, item in value.items()}
    if isinstance(value, list):
        return [np.array(arrays[name])] if name in arrays else []
    return _convert(value, arrays[name if name in arrays else _OLD_NAMES.get(name, name)])


def _convert(value: Any, array: Array) -> Any:
    if isinstance(value, Tensor):
        tensor = torch.from_numpy(np.array(array))
        if tensor.shape != value.shape:  # a table that grows
            return tensor.to(value.device)
        return value.copy_(tensor)
    return np.array(array) if isinstance(value, np.ndarray) else type(value)(array)
