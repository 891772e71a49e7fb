"""A digest that identifies a teacher in any precision, so that only states of the same model are ever added up.

Weights are hashed as bf16, which is what every precision that a teacher can be loaded in rounds to: all numbers of all
tensors. MiniLM (22M weights) takes 0.1 s of CPU time, BERT base (110M weights, 440 MB) 0.5 s. One thread only: torch
fails at random ("Invalid thread pool") where its first operations come from several threads at once.

Until 0.1 the digest took 64 numbers per tensor and could not see a single changed word embedding. Such a digest is
`sampled_digest`; results that were made with it are still recognised.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

from stillvec.errors import TeacherError

_BLOCK = 1 << 22  # numbers converted at a time


def digest_teacher(kind: str, tokens: Mapping[str, int], model: Any) -> tuple[str, str]:
    """Digests of the kind of model, its subword vocabulary and all of its weights; and that of version 0.1."""
    import torch  # not needed to compare teachers

    whole, sampled = (hashlib.blake2b(digest_size=16) for _ in range(2))
    for state in (whole, sampled):
        state.update(kind.encode() + repr(sorted(tokens.items())).encode())
    for label, tensor in sorted(model.state_dict().items()):
        whole.update(label.encode() + _digest_tensor(tensor))
        sample = tensor.flatten()[:: max(1, tensor.numel() // 64)].to(torch.bfloat16)
        sampled.update(label.encode() + sample.float().cpu().numpy().tobytes())
    return whole.hexdigest(), sampled.hexdigest()


def join_digests(*digests: str) -> str:
    """One digest of several."""
    return hashlib.blake2b("".join(digests).encode(), digest_size=16).hexdigest()


def check_finite(name: str, model: Any) -> None:
    """Refuse weights with NaN or infinity, which would be noticed only after the whole pass."""
    import torch

    for label, tensor in model.named_parameters():
        if tensor.is_floating_point() and not torch.isfinite(tensor.sum(dtype=torch.float32)):
            raise TeacherError.expected("finite weights", f"NaN or infinity in {label}", where=f"teacher {name}")


def same_teacher(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Compare the teachers of two manifests; those of version 0.1 hold a sampled digest only."""
    if "sampled_digest" in one and "sampled_digest" in other:
        return bool(one["digest"] == other["digest"])
    return bool(one.get("sampled_digest", one["digest"]) == other.get("sampled_digest", other["digest"]))


def _digest_tensor(tensor: Tensor) -> bytes:
    import torch

    state = hashlib.blake2b(repr(tuple(tensor.shape)).encode(), digest_size=16)
    numbers = tensor.detach().flatten()
    for start in range(0, numbers.numel(), _BLOCK):
        block = numbers[start : start + _BLOCK]
        block = block.to(torch.bfloat16).view(torch.int16) if block.is_floating_point() else block.long()
        state.update(block.cpu().numpy().data)
    return state.digest()
