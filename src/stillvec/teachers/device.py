"""Where a teacher's weights stand, in which numbers they are, and the digest that depends on neither."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from stillvec.errors import UsageError, suggest

LOADED = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float32, "int8": torch.float32}
DEVICES = ("auto", "cpu", "cuda")


def device_of(name: str) -> torch.device:
    if name not in DEVICES:
        raise UsageError(f"There is no device {name!r}; {suggest(name, DEVICES)}")
    if name == "cuda" and not torch.cuda.is_available():
        raise UsageError("The device cuda was asked for, and torch sees none here; use --device cpu or auto.")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def precision_of(name: str, device: torch.device) -> str:
    if name == "auto":
        return "bf16" if device.type == "cuda" else "fp32"
    if name not in LOADED:
        raise UsageError(f"There is no precision {name!r}; {suggest(name, ['auto', *LOADED])}")
    if name == "int8" and device.type != "cpu":
        raise UsageError("The precision int8 is for CPUs; on a GPU use bf16, which is faster there.")
    return name


def to_device(model: Any, device: torch.device, precision: str) -> Any:
    """The model on its device and, if it was loaded in more, in its precision; take its digest before."""
    if precision == "fp16":
        model = model.half()  # only now: rounded twice, the weights would give another digest
    if precision == "int8":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the successor of this call is not in torch itself
            channels = torch.ao.quantization.per_channel_dynamic_qconfig  # MiniLM's cosine: 0.97; whole tensors: 0.93
            layers = {nn.Linear: channels, nn.LSTM: channels}
            model = torch.ao.quantization.quantize_dynamic(model, layers, dtype=torch.qint8)
    return model.to(device)


def digest_of(kind: str, pieces: Mapping[str, int], model: Any) -> str:
    """Same teacher, same digest, in any precision: its kind, its pieces and a sample of every weight."""
    state = hashlib.blake2b(digest_size=16)
    state.update(kind.encode())
    state.update(repr(sorted(pieces.items())).encode())
    for label, tensor in sorted(model.state_dict().items()):
        sample = tensor.flatten()[:: max(1, tensor.numel() // 64)].to(torch.bfloat16)
        state.update(label.encode() + sample.float().cpu().numpy().tobytes())
    return state.hexdigest()
