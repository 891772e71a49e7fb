"""Devices, precisions and threads of a teacher."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from stillvec.errors import UsageError
from stillvec.teachers.encoder_model import EncoderModel
from stillvec.teachers.packed_linear import pack_layers

LOAD_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float32, "int8": torch.float32}
DEVICES = ("auto", "cpu", "cuda")
_WITHOUT_PLANS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


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
        model = _quantize(model)
    if device.type == "cpu" and isinstance(model, EncoderModel):
        pack_layers(model)
    return model.to(device)


def _quantize(model: Any) -> Any:
    """Dynamic quantization of linear and LSTM layers, one scale per channel.

    `torch.ao.quantization` is deprecated, still in torch 2.13; its successor, torchao, is a package of its own.
    """
    try:
        from torch.ao.quantization import per_channel_dynamic_qconfig, quantize_dynamic
    except ImportError:
        message = f"Precision int8 needs torch.ao.quantization, which torch {torch.__version__} no longer has"
        raise UsageError.conflict(message, cure="use --precision fp32") from None
    layers = dict.fromkeys((nn.Linear, nn.LSTM), per_channel_dynamic_qconfig)  # MiniLM's cosine: 0.97; per tensor 0.93
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", UserWarning)
        return quantize_dynamic(model, layers, dtype=torch.qint8)


def avoid_plans() -> AbstractContextManager[None]:
    """Run attention without cuDNN, which is the fastest but compiles a plan for every new shape."""
    return sdpa_kernel(_WITHOUT_PLANS)


@contextmanager
def initialize_gpu(device: torch.device) -> Iterator[None]:
    """Initialize a GPU and its matrix library in a thread while something else is done, which takes seconds."""
    if device.type != "cuda":
        yield
        return

    def initialize() -> None:
        rows = torch.zeros(32, 32, dtype=torch.bfloat16, device=device)
        rows @ rows

    thread = threading.Thread(target=initialize, daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def count_threads(device: torch.device) -> int | None:
    """CPU threads that compute on a device, which decide the order of sums; None for a GPU."""
    return torch.get_num_threads() if device.type == "cpu" else None


@contextmanager
def torch_threads(n_threads: int | None) -> Iterator[None]:
    """Run with `n_threads` threads of torch (None: as many as now), a number that is global to the process."""
    if n_threads is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
