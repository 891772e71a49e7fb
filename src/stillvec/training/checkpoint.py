"""Checkpoints of a training: its tensors in a safetensors file, with the number of blocks or epochs done."""

import dataclasses
import hashlib
import math
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from stillvec.errors import StillvecWarning, TrainingError
from stillvec.files import digest_arrays, remove_abandoned, scratch_folder, sync_path
from stillvec.files.private_files import create_private_folder
from stillvec.registry import read_new_names

_CHECKSUM = "checksum"  # in the metadata; checkpoints of version 0.1 lack it
_EVERY = 30.0  # seconds between checkpoints


class HasTensors(Protocol):
    def tensors(self) -> Mapping[str, Any]:
        """Everything that training changes, in place, by name: tensors, or arrays on the CPU."""


class Checkpoint:
    """Written every 30 seconds at most; read only with `resume`."""

    def __init__(self, path: Path, *, resume: bool = False, threads: int | None = None) -> None:
        self.path = path
        self.resume = resume
        self.threads = threads
        self._written = time.perf_counter()

    def restore(self, model: HasTensors) -> int:
        """Fill the model from the checkpoint and return the number of blocks or epochs done; 0 without one."""
        if not self.resume or not self.path.exists():
            return 0
        tensors = {name: torch.as_tensor(table) for name, table in model.tensors().items()}
        try:
            with safe_open(self.path, "pt") as file:
                metadata, stored = file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if metadata.get(_CHECKSUM, checksum := _digest(stored)) != checksum:
                raise SafetensorError
        except (SafetensorError, OSError):
            message = f"Cannot read the checkpoint {self.path}; remove it to start again."
            raise TrainingError(message, code="unreadable-checkpoint", path=self.path) from None
        threads = stored.pop("threads", None)  # absent on a GPU and in older checkpoints
        expected = {"done": torch.Size([])} | {name: tensor.shape for name, tensor in tensors.items()}
        if {name: tensor.shape for name, tensor in stored.items()} != expected:
            message = f"The checkpoint {self.path} belongs to other settings; remove it to start again."
            raise TrainingError(message, code="other-checkpoint", path=self.path)
        for name, tensor in tensors.items():
            tensor.copy_(stored[name])
        warn_threads(None if threads is None else int(threads), self.threads)
        return int(stored["done"])

    def write(self, model: HasTensors, done: int) -> None:
        if time.perf_counter() - self._written < _EVERY:
            return
        tensors = {name: torch.as_tensor(table).detach().cpu().contiguous() for name, table in model.tensors().items()}
        self._written = time.perf_counter()
        try:
            with scratch_folder(
                create_private_folder(self.path.parent)
            ) as folder:  # safetensors has temporary files too
                part = folder / self.path.name
                numbers = {"done": done} | ({"threads": self.threads} if self.threads else {})
                whole = tensors | {name: torch.tensor(number) for name, number in numbers.items()}
                save_file(whole, part, {_CHECKSUM: _digest(whole)})
                part.chmod(0o600)
                sync_path(part)
                part.replace(self.path)
        except (SafetensorError, OSError) as error:  # not worth losing what was trained so far
            self._written = math.inf
            message = f"Cannot write a checkpoint to {self.path.parent}; training continues without: {error}."
            warnings.warn(message, StillvecWarning, stacklevel=2)

    def remove(self) -> None:
        """Remove it, and what a killed run had begun to write."""
        self.path.unlink(missing_ok=True)
        remove_abandoned(self.path.parent)


def _digest(tensors: Mapping[str, torch.Tensor]) -> str:
    arrays = {name: tensor.reshape(-1).view(torch.uint8).numpy() for name, tensor in tensors.items()}
    return digest_arrays(arrays)


def warn_threads(earlier: object, now: object) -> None:
    """Warn if a run is continued with another number of threads, which changes the order of sums."""
    if earlier is not None and now is not None and earlier != now:
        message = (
            f"The interrupted run had --threads {earlier}, this one has {now}: the result can differ from that "
            f"of an uninterrupted run; give --threads {earlier} for the same bytes."
        )
        warnings.warn(message, StillvecWarning, stacklevel=3)


def name_settings(method: object) -> dict[str, object]:
    """A method's settings by the names in checkpoints, which stay when a setting is renamed."""
    original = {new: old for old, new in read_new_names(method).items()}
    settings = dataclasses.asdict(method)  # type: ignore[call-overload]
    return {original.get(name, name): value for name, value in settings.items()}


def open_checkpoint(
    folder: Path | None, settings: Mapping[str, object], *, resume: bool, threads: int | None = None
) -> Checkpoint | None:
    """The checkpoint of these settings in a folder; None without a folder."""
    if folder is None:
        return None
    name = hashlib.blake2b(repr(sorted(settings.items())).encode(), digest_size=8).hexdigest()
    return Checkpoint(folder / f"training-{name}.safetensors", resume=resume, threads=threads)
