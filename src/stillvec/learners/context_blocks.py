"""Kept contexts a shard at a time: some thousand sentences on the device that trains."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from stillvec.statistics import Statistics
from stillvec.statistics.mergeable import Array

SHARD = 16_384  # sentences that are shuffled together, and after which a checkpoint may be written


class ContextBlock(NamedTuple):
    """Some sentences on the device that trains."""

    words: Tensor  # (T,) rows of the vocabulary, -1 for an unknown word
    lengths: Tensor  # (S,)
    contexts: Tensor  # (S, D)
    states: Tensor | None  # (T, D)


Sample = Callable[[], Iterable[ContextBlock]]  # contexts to be looked at before training


def count_blocks(kept: Statistics) -> int:
    return math.ceil(len(kept["stored:lengths"]) / SHARD)


def block_size(kept: Statistics, number: int) -> int:
    return min(SHARD, len(kept["stored:lengths"]) - number * SHARD)


def is_full(parts: Iterable[ContextBlock]) -> bool:
    """Whether these together have the sentences of a shard."""
    return sum(len(part.lengths) for part in parts) >= SHARD


def iterate_blocks(kept: Statistics, device: torch.device) -> Iterator[ContextBlock]:
    """All of them, as they lie."""
    for number in range(count_blocks(kept)):
        yield read_block(kept, number, device)


def read_block(
    kept: Statistics, number: int, device: torch.device, order: np.random.Generator | None = None
) -> ContextBlock:
    """A shard on the device, its sentences as they lie or shuffled."""
    begin, end = number * SHARD, min((number + 1) * SHARD, len(kept["stored:lengths"]))
    lengths = np.asarray(kept["stored:lengths"][begin:end], np.int64)
    first = _first_words(kept["stored:lengths"])[number]
    last = first + int(lengths.sum())
    scale = float(kept["stored:scale"])
    words = _rows(kept["stored:words"], first, last, device).long()
    contexts = _rows(kept["stored:contexts"], begin, end, device).float() * scale
    states = None
    if "stored:states" in kept.arrays:
        states = _rows(kept["stored:states"], first, last, device)
        states = states if scale == 1 else states.float() * scale
    sizes = torch.from_numpy(lengths).to(device)
    if order is None:
        return ContextBlock(words, sizes, contexts, states)
    chosen = order.permutation(len(lengths))
    starts = np.cumsum(lengths) - lengths
    ends = np.cumsum(lengths[chosen])
    places = np.arange(len(words)) + np.repeat(starts[chosen] - (ends - lengths[chosen]), lengths[chosen])
    sentence, word = torch.from_numpy(chosen).to(device), torch.from_numpy(places).to(device)
    return ContextBlock(words[word], sizes[sentence], contexts[sentence], None if states is None else states[word])


def _first_words(lengths: Array) -> list[int]:
    """Where the words of each shard begin; added up once for all shards, since there may be thousands."""
    for key, (alive, _) in [*_firsts.items()]:
        if alive() is None:
            del _firsts[key]
    key = id(lengths), SHARD
    if key not in _firsts:
        sums = [int(np.sum(lengths[at : at + SHARD], dtype=np.int64)) for at in range(0, len(lengths), SHARD)]
        _firsts[key] = weakref.ref(lengths), [0, *accumulate(sums)]
    return _firsts[key][1]


def _rows(array: Array, begin: int, end: int, device: torch.device) -> Tensor:
    """Rows of a kept array on the device: from disk, or, on a GPU with room for all of it, from what lies there."""
    for number, (alive, _) in [*_on_gpu.items()]:
        if alive() is None:
            del _on_gpu[number]
    if device.type == "cuda" and id(array) not in _on_gpu and array.nbytes < _ROOM * torch.cuda.mem_get_info(device)[0]:
        whole = torch.empty(array.shape, dtype=torch.from_numpy(np.zeros(0, array.dtype)).dtype, device=device)
        for at in range(0, len(array), 1 << 18):
            whole[at : at + (1 << 18)] = torch.from_numpy(np.array(array[at : at + (1 << 18)])).to(device)
        _on_gpu[id(array)] = weakref.ref(array), whole
    if id(array) in _on_gpu and device.type == "cuda":
        return _on_gpu[id(array)][1][begin:end]
    return torch.from_numpy(np.array(array[begin:end])).to(device)


_ROOM = 0.3  # of a GPU's free memory, for one array of contexts
_firsts: dict[tuple[int, int], tuple[weakref.ref[Array], list[int]]] = {}
_on_gpu: dict[int, tuple[weakref.ref[Array], Tensor]] = {}  # as long as the array itself is there


def joined(parts: list[ContextBlock]) -> ContextBlock:
    """One shard of many; no tensor of it belongs to the pass."""
    states = [part.states for part in parts if part.states is not None]
    words = torch.cat([part.words for part in parts])
    lengths = torch.cat([part.lengths for part in parts])
    contexts = torch.cat([part.contexts for part in parts])
    return ContextBlock(words, lengths, contexts, torch.cat(states) if states else None)


def kept_counts(kept: Statistics) -> Tensor:
    """How often each word stands in the contexts (V,)."""
    words = np.asarray(kept["stored:words"])
    return torch.from_numpy(np.bincount(words[words >= 0], minlength=len(kept.vocabulary)))
