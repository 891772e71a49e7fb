"""Devices and precisions of a teacher."""

from typing import Any

import torch

from stillvec.errors import UsageError
from stillvec.teachers.quantization import quantize

LOAD_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float32, "int8": torch.float32}
DEVICES = ("auto", "cpu", "cuda")


def resolve_device(name: str) -> torch.device:
    if name not in DEVICES:
        raise UsageError.unknown("device", name, DEVICES)
    if name == "cuda" and not torch.cuda.is_available():
        raise UsageError("Device 'cuda' is not available to torch; use --device cpu or auto.", code="no-gpu")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def resolve_precision(name: str, device: torch.device) -> str:
    if name == "auto":
        return "bf16" if device.type == "cuda" else "fp32"
    if name not in LOAD_DTYPES:
        raise UsageError.unknown("precision", name, ["auto", *LOAD_DTYPES])
    if name == "int8" and device.type != "cpu":
        raise UsageError.conflict("Precision 'int8' is for CPUs", cure="on a GPU use bf16, which is faster there")
    return name


def place_model(model: Any, device: torch.device, precision: str) -> Any:
    """Move the model to its device in its precision; take its digest before."""
    if precision == "fp16":
        model = model.half()  # only now: rounded twice, the weights would have another digest
    if precision == "int8":
        model = quantize(model)
    return model.to(device)
