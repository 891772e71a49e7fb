"""Where training was, on disk."""

from __future__ import annotations

import hashlib
import math
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from stillvec.errors import StillvecWarning, TrainingError
from stillvec.files import atomic_file

_EVERY = 30.0  # seconds between checkpoints


class Kept(Protocol):
    """What can be written down."""

    def tensors(self) -> dict[str, Tensor]:
        """All that changes, in place."""


class Checkpoint:
    """Written now and then; `resume` goes on from there."""

    def __init__(self, path: Path, *, resume: bool = False) -> None:
        self.path = path
        self.resume = resume
        self._written = time.perf_counter()

    def restore(self, model: Kept) -> int:
        """Fill the model from the checkpoint and give the number of shards it has learnt; 0 without one."""
        if not self.resume or not self.path.exists():
            return 0
        mine = model.tensors()
        try:
            kept = load_file(self.path)
        except (SafetensorError, OSError):
            raise TrainingError(f"The checkpoint {self.path} cannot be read; remove it to begin anew.") from None
        wanted = {"done": torch.Size([])} | {name: each.shape for name, each in mine.items()}
        if {name: each.shape for name, each in kept.items()} != wanted:
            raise TrainingError(f"The checkpoint {self.path} is of other settings; remove it to begin anew.")
        for name, tensor in mine.items():
            tensor.copy_(kept[name])
        return int(kept["done"])

    def write(self, model: Kept, done: int) -> None:
        if time.perf_counter() - self._written < _EVERY:
            return
        kept = {name: tensor.detach().cpu().contiguous() for name, tensor in model.tensors().items()}
        self._written = time.perf_counter()
        try:
            with atomic_file(self.path) as part:
                save_file({**kept, "done": torch.tensor(done)}, part)
        except (SafetensorError, OSError) as error:  # what was learnt so far is worth more than where it could go on
            self._written = math.inf
            told = f"No checkpoint could be written beside {self.path.parent}, so none is: {error}."
            warnings.warn(told, StillvecWarning, stacklevel=2)

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def checkpoint_for(place: Path | None, settings: Mapping[str, object], *, resume: bool) -> Checkpoint | None:
    """The checkpoint of these settings, beside the contexts that are trained on."""
    if place is None:
        return None
    name = hashlib.blake2b(repr(sorted(settings.items())).encode(), digest_size=8).hexdigest()
    return Checkpoint(place / f"training-{name}.safetensors", resume=resume)
