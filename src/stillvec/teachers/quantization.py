"""int8 on CPUs by `torch.ao.quantization`: deprecated, still in torch 2.13, for which this was written.

Its successor, torchao, is a package of its own.
"""

import warnings
from typing import Any

import torch
from torch import nn

from stillvec.errors import UsageError


def quantize(model: Any) -> Any:
    """Dynamic quantization of linear and LSTM layers, one scale per channel."""
    try:
        from torch.ao.quantization import per_channel_dynamic_qconfig, quantize_dynamic
    except ImportError:
        message = f"Precision int8 needs torch.ao.quantization, which torch {torch.__version__} no longer has"
        raise UsageError.conflict(message, cure="use --precision fp32") from None
    layers = dict.fromkeys(
        (nn.Linear, nn.LSTM), per_channel_dynamic_qconfig
    )  # cosine of MiniLM: 0.97; per tensor: 0.93
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", UserWarning)
        return quantize_dynamic(model, layers, dtype=torch.qint8)
