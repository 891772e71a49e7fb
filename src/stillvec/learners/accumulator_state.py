"""What a listener holds in the middle of a pass, as plain arrays, and back: so that a run that was stopped goes on.

A listener names in `memory` those of its attributes that change: tensors, arrays, numbers, lists of arrays (laid end to
end) and dictionaries of tensors. They come back bit for bit. One whose memory is not of this kind has `remember` and
`recall` of its own; one that has neither cannot be gone on with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from stillvec.statistics.mergeable import Array


@runtime_checkable
class Remembering(Protocol):
    """Looks after its memory itself."""

    def remember(self) -> dict[str, Array]:
        """All that changes in a pass."""

    def recall(self, kept: Mapping[str, Array]) -> None:
        """Go on from there."""


def can_remember(listener: object) -> bool:
    return isinstance(listener, Remembering) or hasattr(listener, "state_fields")


def remembered(listener: Any) -> dict[str, Array]:
    """The memory of a listener, not copied where it lies in this machine's memory."""
    if isinstance(listener, Remembering):
        return listener.remember()
    found: dict[str, Array] = {}
    for name in listener.state_fields:
        found |= _written(name, getattr(listener, name))
    return found


def recall(listener: Any, kept: Mapping[str, Array]) -> None:
    """Fill a listener that has heard nothing yet."""
    if isinstance(listener, Remembering):
        listener.recall(kept)
        return
    for name in listener.state_fields:
        setattr(listener, name, _read(name, getattr(listener, name), kept))


def _written(name: str, value: Any) -> dict[str, Array]:
    if isinstance(value, dict):
        return {f"{name}.{key}": _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return {name: np.concatenate(value)} if value else {}
    return {name: _plain(value)}


def _plain(value: Any) -> Array:
    return np.asarray(value.detach().cpu().numpy() if isinstance(value, Tensor) else value)


_OLD_NAMES = {"n_contexts": "heard"}  # of fields, in checkpoints of earlier versions


def _read(name: str, value: Any, kept: Mapping[str, Array]) -> Any:
    """As the listener has it now, with the numbers that were kept."""
    if isinstance(value, dict):
        return {key: _like(each, kept[f"{name}.{key}"]) for key, each in value.items()}
    if isinstance(value, list):
        return [np.array(kept[name])] if name in kept else []
    return _like(value, kept[name if name in kept else _OLD_NAMES.get(name, name)])


def _like(value: Any, kept: Array) -> Any:
    if isinstance(value, Tensor):
        fresh = torch.from_numpy(np.array(kept))
        if fresh.shape != value.shape:  # a table that grows
            return fresh.to(value.device)
        return value.copy_(fresh)
    return np.array(kept) if isinstance(value, np.ndarray) else type(value)(kept)
